import { delimiter, join } from 'node:path';
import { cut, isAtLeast, messageOf, ParleyError } from '../../../kernel/index.ts';
import { type CommandResult, type Host, type ManagedLog, systemHost } from './host.ts';

/**
 * Finds the nats-server to run, and installs one when there is none. `installPackage` also installs a browser for the tests.
 *
 * LOCATE-1 The file in NATS_BIN is used or refused, never replaced by another.
 * LOCATE-2 A file that cannot be run or is too old is skipped and logged.
 * INSTALL-1 Only without a password: as root, or where `sudo -n true` succeeds.
 * INSTALL-2 On a terminal the person is asked. Without one it is installed, after a notice, only if the caller allows that (`--install`).
 * INSTALL-3 When it cannot or may not install, the outcome has one command for this system that a person can type.
 * INSTALL-4 The service of the package is not started: Parley runs the server itself.
 */

export interface LocateOptions {
  /** NATS_BIN and PATH are read. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: ManagedLog;
  readonly host?: Host;
  /** Tells a person about an installation; default: a line on stderr. */
  readonly announce?: (line: string) => void;
  /** Whether a missing server is installed: true, also without a terminal; undefined, if a person agrees; false, never. */
  readonly mayInstall?: boolean | undefined;
}

/** A nats-server on this machine. */
export interface LocatedServer {
  readonly path: string;
  /** Without the `v`: `2.10.27`. */
  readonly version: string;
}

/** Folders that are often missing in PATH: Debian's for a normal user, brew's for a service. */
const USUAL_FOLDERS = [
  '/usr/sbin',
  '/usr/local/bin',
  '/usr/local/sbin',
  '/usr/bin',
  '/opt/homebrew/bin',
  '/home/linuxbrew/.linuxbrew/bin',
];

/** The oldest supported server (Debian 12). */
const OLDEST_VERSION = [2, 9, 10];
const VERSION_TIMEOUT_MS = 10_000;

/** Throws `NATS_SERVER_UNUSABLE` (for NATS_BIN) or `NATS_SERVER_MISSING` (with the command to type). */
export async function locateNatsServer(options: LocateOptions): Promise<LocatedServer> {
  const host = options.host ?? systemHost();
  const found = await findNatsServer(options);
  if (found) return found;
  const announce = options.announce ?? ((line: string) => void process.stderr.write(`parley: ${line}\n`));
  const say = (line: string): void => {
    options.log('info', line);
    announce(line);
  };
  const outcome = await installPackage(NATS_SERVER, host, say, options.mayInstall);
  if (outcome.kind === 'impossible') throw missing(outcome.why, outcome.instruction);
  const installed = await findNatsServer(options);
  if (installed) return installed;
  throw missing(
    'the package was installed, but none of the usual folders has a usable nats-server',
    'set NATS_BIN to the binary',
  );
}

const foldersOf = (path = '') => path.split(delimiter).filter((folder) => folder.startsWith('/'));

/** A name without `/` is looked for on the PATH. Where it is not found, its run says so. */
async function fileOf(named: string, path: string | undefined, host: Host): Promise<string> {
  if (named.includes('/')) return named;
  for (const folder of foldersOf(path))
    if (await host.isExecutable(join(folder, named))) return join(folder, named);
  return named;
}

type FindOptions = Pick<LocateOptions, 'env' | 'log' | 'host'>;

/** Null: there is none. Throws `NATS_SERVER_UNUSABLE` (for NATS_BIN). */
export async function findNatsServer(options: FindOptions): Promise<LocatedServer | null> {
  const { env, log, host = systemHost() } = options;
  if (env.NATS_BIN) return inspectBinary(await fileOf(env.NATS_BIN, env.PATH, host), host);
  for (const folder of new Set([...foldersOf(env.PATH), ...USUAL_FOLDERS])) {
    const path = join(folder, 'nats-server');
    if (!(await host.isExecutable(path))) continue;
    try {
      return await inspectBinary(path, host);
    } catch (error) {
      log('warn', `skipped: ${messageOf(error)}`);
    }
  }
  return null;
}

function missing(why: string, instruction: string): ParleyError {
  return new ParleyError('NATS_SERVER_MISSING', `parley needs a nats-server: ${why}`, { hint: instruction });
}

/** Runs the binary once. Throws `NATS_SERVER_UNUSABLE` when it is not a nats-server, or too old. */
export async function inspectBinary(path: string, host: Host): Promise<LocatedServer> {
  const oldest = OLDEST_VERSION.join('.');
  const unusable = (what: string) =>
    new ParleyError('NATS_SERVER_UNUSABLE', `${path} ${what}`, {
      hint: `set NATS_BIN to a nats-server of version ${oldest} or newer, or unset NATS_BIN so that parley searches for one`,
    });
  const result = await host.run(path, ['--version'], VERSION_TIMEOUT_MS);
  if (result.kind === 'failed') throw unusable(`cannot be run: ${result.reason}`);
  const version = /nats-server\D*?v?(\d+\.\d+\.\d+\S*)/i.exec(result.output)?.[1];
  if (result.code !== 0 || version === undefined)
    throw unusable(`is not a nats-server: \`--version\` says ${JSON.stringify(cut(result.output, 200))}`);
  if (!isAtLeast(version, OLDEST_VERSION))
    throw unusable(`is version ${version}, which is too old: ${oldest} or newer is required`);
  return { path, version };
}

export type InstallOutcome =
  | { readonly kind: 'installed' }
  /** `why` follows a colon in a message; `instruction` is the complete next step (INSTALL-3). */
  | { readonly kind: 'impossible'; readonly why: string; readonly instruction: string };

/** A missing package. */
export interface Wanted {
  readonly name: string;
  readonly size: string;
  /** The instruction for a system with an unknown package manager. */
  readonly elsewhere: string;
  /** The service that the package would start. */
  readonly service?: string;
}

const NATS_SERVER: Wanted = {
  name: 'nats-server',
  size: 'about 10 MB',
  elsewhere:
    'download the official release from https://github.com/nats-io/nats-server/releases and put ' +
    '`nats-server` on your PATH, or name it in NATS_BIN',
  service: 'nats-server',
};

const APT_GET = '/usr/bin/apt-get';
const installOf = ({ name }: Wanted) => ['install', '-y', '--no-install-recommends', name];
/** Waits for another apt on this machine instead of failing. */
const WAIT_FOR_LOCK = ['-o', 'DPkg::Lock::Timeout=120'];
/** Without it, `update` succeeds although package lists cannot be downloaded. An apt that does not know it ignores it. */
const REPORT_ALL = ['-o', 'APT::Update::Error-Mode=any'];
const UPDATE_TIMEOUT_MS = 180_000;
const INSTALL_TIMEOUT_MS = 420_000;
const SUDO_TIMEOUT_MS = 10_000;

/** `mayInstall`: as in `LocateOptions`. */
export async function installPackage(
  wanted: Wanted,
  host: Host,
  say: (line: string) => void,
  mayInstall: boolean | undefined,
): Promise<InstallOutcome> {
  if (host.platform === 'darwin') return impossible('none is installed', `run: brew install ${wanted.name}`);
  if (host.platform !== 'linux' || !(await host.isExecutable(APT_GET)))
    return impossible('parley knows no package of it for this system', wanted.elsewhere);
  const byHand = `run: ${typedCommand(wanted, host.userId === 0 ? '' : 'sudo ')}`;
  if (mayInstall === false)
    return impossible('none is found, and --no-install refuses to install it', byHand);
  const privileges = await passwordless(host);
  if (!privileges) return impossible('installing it needs a password', byHand);
  const agreed = await host.confirm?.(`Install ${wanted.name} with apt-get? [Y/n] `);
  const isAsked = typeof agreed === 'boolean';
  if (!isAsked && !mayInstall) return impossible('none is found, and there is no terminal to ask on', byHand);
  if (agreed === false) return impossible('none is found, and installing it was declined', byHand);
  const how = isAsked ? '' : '; there is no terminal to ask on';
  say(`no ${wanted.name} found: installing it with apt-get (${wanted.size}${how})`);
  return installWithApt(wanted, host, privileges, say);
}

/** The words before a command to run it as root without a password; null if that is not possible. */
async function passwordless(host: Host): Promise<readonly string[] | null> {
  if (host.userId === 0) return [];
  const answer = await host.run('sudo', ['-n', 'true'], SUDO_TIMEOUT_MS);
  return succeeded(answer) ? ['sudo', '-n'] : null;
}

async function installWithApt(
  wanted: Wanted,
  host: Host,
  privileges: readonly string[],
  say: (line: string) => void,
): Promise<InstallOutcome> {
  const apt = (args: readonly string[], timeoutMs: number, before: readonly string[] = []) => {
    const [command = '', ...words] = [...privileges, 'env', 'DEBIAN_FRONTEND=noninteractive', ...before];
    return host.run(command, [...words, APT_GET, ...WAIT_FOR_LOCK, ...args], timeoutMs);
  };
  const updated = await apt([...REPORT_ALL, 'update'], UPDATE_TIMEOUT_MS);
  // One broken package source must not prevent the installation.
  const stale = succeeded(updated) ? '' : `apt-get update failed: ${reasonOf(updated)}`;
  if (stale !== '') say(`${stale}; trying to install anyway`);
  const quietly = wanted.service === undefined ? [] : withoutService(wanted.service);
  const installed = await apt(installOf(wanted), INSTALL_TIMEOUT_MS, quietly);
  if (!succeeded(installed)) {
    return impossible(
      `apt-get could not install it: ${reasonOf(installed)}${stale && ` (before that, ${stale})`}`,
      `run: ${typedCommand(wanted, host.userId === 0 ? '' : 'sudo ')}`,
    );
  }
  const aside = wanted.service === undefined ? '' : '; the service of the package is not started';
  say(`${wanted.name} is installed${aside}`);
  return { kind: 'installed' };
}

function typedCommand(wanted: Wanted, prefix: string): string {
  return `${prefix}apt-get update && ${prefix}apt-get ${installOf(wanted).join(' ')}`;
}

function impossible(why: string, instruction: string): InstallOutcome {
  return { kind: 'impossible', why, instruction };
}

function succeeded(result: CommandResult): boolean {
  return result.kind === 'exited' && result.code === 0;
}

/** The last lines of the output: with apt, they name the reason. */
function reasonOf(result: CommandResult): string {
  if (result.kind === 'failed') return result.reason;
  return result.output.split('\n').slice(-3).join(' | ') || `exit code ${result.code}`;
}

/**
 * Installs a package without starting its service, now or after the next boot.
 *
 * While apt works, `policy-rc.d` refuses starts of this service only, so a leftover file of a killed process does little. An
 * existing `policy-rc.d` belongs to the administrator and stays. For a package that is already installed nothing is added.
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

/** The words before an apt command. Tests replace `policy`. */
export function withoutService(service: string, policy = '/usr/sbin/policy-rc.d'): string[] {
  return ['sh', '-c', SCRIPT, 'sh', policy, service];
}
