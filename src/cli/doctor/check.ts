/** The result of one check. `fix`: the next step. */
export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
  readonly fix?: string;
}

const NEEDED = [20, 19] as const;

export function nodeCheck(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const enough = major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
  const name = 'node';
  if (enough) return { name, status: 'ok', message: version };
  return {
    name,
    status: 'fail',
    message: `${version} is too old: Parley needs ${NEEDED.join('.')} or newer`,
    fix: 'install a newer Node.js, for example from https://nodejs.org',
  };
}
