/**
 * Installing a package whose service is not to run, neither now nor after the next boot.
 *
 * While apt works, `policy-rc.d` refuses starts of this service and of no other, so even one that a killed process left does
 * little. One that is there already is the administrator's and stays. A package that is installed already may have a service that
 * is in use: then nothing is added.
 */
const SCRIPT = [
  'policy=$1 service=$2',
  'shift 2',
  'if dpkg-query -W "$service" >/dev/null 2>&1; then exec "$@"; fi',
  'if [ ! -e "$policy" ]; then trap \'rm -f "$policy"\' EXIT',
  'trap "exit 1" HUP INT TERM',
  'printf \'#!/bin/sh\\ncase " $* " in *" %s"[\\ .]*) exit 101 ;; esac\\nexit 0\\n\' "$service" >"$policy" && chmod 755 "$policy"',
  'fi',
  '"$@"',
  'code=$?',
  'if [ "$code" = 0 ] && command -v systemctl >/dev/null; then systemctl disable --now "$service" >/dev/null 2>&1; fi',
  'exit "$code"',
].join('; ');

/** What to put before a command of apt; `policy` is replaced in tests. */
export function withoutService(service: string, policy = '/usr/sbin/policy-rc.d'): string[] {
  return ['sh', '-c', SCRIPT, 'sh', policy, service];
}
