import { execFile } from 'node:child_process';
import { cut, inOneLine, ParleyError } from '../../kernel/index.ts';

/**
 * The command of `blobs.scan`, which decides whether a file is kept: it gets the path as its last argument, and the name that
 * the sender gave as PARLEY_FILE_NAME. Exit code 0 accepts. A command that cannot run, or not in time, accepts nothing.
 */
interface Scan {
  readonly command: readonly string[];
  /** The variables that commands of tools get, too. */
  readonly environment: Readonly<Record<string, string>>;
}

const TIME_LIMIT_MS = 60_000;
const MOST_OUTPUT_BYTES = 1_024 * 1_024;
const MOST_SHOWN = 200;

/** Throws `BLOB_REFUSED` with the first line that the command printed. */
export async function scan(
  { command: [program = '', ...args], environment }: Scan,
  { path, name = '' }: { readonly path: string; readonly name?: string | undefined },
  timeLimitMs: number = TIME_LIMIT_MS,
): Promise<void> {
  const env = { ...environment, PARLEY_FILE_NAME: name.replaceAll('\0', '') };
  const limits = { timeout: timeLimitMs, killSignal: 'SIGKILL', maxBuffer: MOST_OUTPUT_BYTES } as const;
  const fault = await new Promise<string | null>((resolve) => {
    execFile(program, [...args, path], { ...limits, env }, (error, stdout, stderr) => {
      if (error === null) return resolve(null);
      const said = `${stdout}\n${stderr}`.split('\n').find((line) => line.trim() !== '');
      if (error.killed && error.signal) resolve(`the scan did not end in ${timeLimitMs / 1_000} s`);
      else if (typeof error.code === 'number') resolve(said ?? `the scan ended with exit code ${error.code}`);
      else resolve(`the scan could not run: ${error.message}`);
    });
  });
  if (fault === null) return;
  throw new ParleyError('BLOB_REFUSED', `the file is refused: ${cut(inOneLine(fault), MOST_SHOWN)}`, {
    hint: 'blobs.scan in parley.yaml names the command that decides',
  });
}
