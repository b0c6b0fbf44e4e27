import { mkdir, symlink } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { type CliOutcome, runCli, strangersEnvironment } from './cli.ts';

/** A project of `parley init`, as `npm install` completes it. */

/** Links the package and its command into `node_modules`. Returns the environment of the project's scripts. */
export async function linkPackage(project: string, folder: string): Promise<Record<string, string>> {
  const bin = join(project, 'node_modules', '.bin');
  await mkdir(bin, { recursive: true });
  await symlink(folder, join(project, 'node_modules', 'parleyd'));
  await symlink('../parleyd/bin/parley.js', join(bin, 'parley'));
  return { PATH: `${bin}${delimiter}${strangersEnvironment().PATH}`, PARLEY_HTTP: '127.0.0.1:0' };
}

type Command = (...args: readonly string[]) => Promise<CliOutcome>;

/** Runs `up` in the project, then the work, then a stop. Returns the result of `up`. `program`: the launcher. */
export async function withDaemon(
  project: string,
  options: { readonly env?: Readonly<Record<string, string>>; readonly program?: string },
  work: (parley: Command) => Promise<void>,
): Promise<CliOutcome> {
  const stopped = new AbortController();
  const own = { ...options, workingDirectory: project };
  let daemon: Promise<CliOutcome> | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      daemon = runCli(['up', '--json'], { ...own, signal: stopped.signal, onOutput: () => resolve() });
      daemon.then(({ stderr }) => reject(new Error(stderr)), reject);
    });
    await work((...args) => runCli(args, own));
  } finally {
    stopped.abort();
  }
  return daemon as unknown as Promise<CliOutcome>;
}
