import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { freeBytes } from '../../../kernel/index.ts';

/** What finding and installing a server asks of the machine; a test brings its own. */
export interface Host {
  readonly platform: NodeJS.Platform;
  /** The numeric user id; null where the system has none. */
  readonly userId: number | null;
  isExecutable(path: string): Promise<boolean>;
  run(command: string, args: readonly string[], timeoutMs: number): Promise<CommandResult>;
  /** Bytes that are left on the disk of this directory. */
  freeBytes(directory: string): Promise<number>;
}

export type CommandResult =
  /** It ran to its end. `output` is stdout and stderr, trimmed. */
  | { readonly kind: 'exited'; readonly code: number; readonly output: string }
  /** It could not be started, or was ended by a signal or the time limit. */
  | { readonly kind: 'failed'; readonly reason: string };

const OUTPUT_LIMIT = 16 * 1024 * 1024;

export function systemHost(): Host {
  return {
    platform: process.platform,
    userId: process.getuid?.() ?? null,
    isExecutable,
    run,
    freeBytes,
  };
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

function run(command: string, args: readonly string[], timeoutMs: number): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = { timeout: timeoutMs, maxBuffer: OUTPUT_LIMIT };
    const child = execFile(command, args, options, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`.trim();
      if (!error) resolve({ kind: 'exited', code: 0, output });
      else if (typeof error.code === 'number') resolve({ kind: 'exited', code: error.code, output });
      else
        resolve({ kind: 'failed', reason: error.killed ? `no end within ${timeoutMs} ms` : error.message });
    });
    child.stdin?.end(); // a command that asks a question gets no answer instead of waiting for ever
  });
}
