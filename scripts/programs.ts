import { delimiter, join } from 'node:path';
import { type Host, systemHost } from '../src/bus/nats/managed/host.ts';
import { installPackage } from '../src/bus/nats/managed/install.ts';

/** Programs that tests start and that a small system lacks. Their packages have the same names. */
const PROGRAMS = [
  { name: 'git', size: 'about 50 MB, for the tests of tools' },
  { name: 'openssl', size: 'about 2 MB, for the tests of TLS' },
  { name: 'python3', size: 'about 30 MB, for the tests of the client for Python and of terminals' },
];

/** Installs the missing ones where that needs no password. Returns those that are still missing, and what to do. */
export async function ensurePrograms(
  env: Readonly<Record<string, string | undefined>>,
  say: (line: string) => void,
  host: Host = systemHost(),
): Promise<{ readonly name: string; readonly why: string; readonly instruction: string }[]> {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
  const missing = [];
  for (const program of PROGRAMS) {
    const found = await Promise.all(folders.map((folder) => host.isExecutable(join(folder, program.name))));
    if (found.includes(true)) continue;
    const wanted = { ...program, elsewhere: `install ${program.name} and put it on your PATH` };
    const outcome = await installPackage(wanted, host, say, true);
    if (outcome.kind === 'impossible') missing.push({ name: program.name, ...outcome });
  }
  return missing;
}
