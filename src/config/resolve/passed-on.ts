import type { Environment } from '../problems/environment.ts';

/**
 * What programs that tools start get of the daemon's environment: commands of `shell`, MCP servers. A list of what may
 * pass, since nobody can list all names of secrets. No variable that Parley is configured by is on it, and none that a
 * `${NAME}` of the configuration stands for should be one of these.
 */
export const PASSED_ON = [
  'HOME',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'LOGNAME',
  'PATH',
  'SHELL',
  'TERM',
  'TMPDIR',
  'TZ',
  'USER',
] as const;

export function passedOn(env: Environment): Readonly<Record<string, string>> {
  return Object.fromEntries(
    PASSED_ON.flatMap((name) => {
      const value = env[name];
      // An exported shell function is code, not a value.
      return value === undefined || value.startsWith('()') ? [] : [[name, value]];
    }),
  );
}
