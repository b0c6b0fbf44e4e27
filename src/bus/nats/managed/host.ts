import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { freeBytes } from '../../../kernel/index.ts';

/** The operations on the machine that the managed server needs. Tests replace it. */
export interface Host {
  readonly platform: NodeJS.Platform;
  /** The numeric user id; null where the system has none. */
  readonly userId: number | null;
  isExecutable(path: string): Promise<boolean>;
  run(command: string, args: readonly string[], timeoutMs: number): Promise<CommandResult>;
  /** Asks the person at the terminal; null when there is no terminal. */
  confirm?(question: string): Promise<boolean | null>;
  freeBytes(directory: string): Promise<number>;
}

export type CommandResult =
  /** `output` is stdout and stderr, trimmed. */
  | { readonly kind: 'exited'; readonly code: number; readonly output: string }
  /** It could not be started, or a signal or the time limit ended it. */
  | { readonly kind: 'failed'; readonly reason: string };

const OUTPUT_LIMIT = 16 * 1024 * 1024;

export function systemHost(): Host {
  return {
    platform: process.platform,
    userId: process.getuid?.() ?? null,
    isExecutable,
    run,
    confirm,
    freeBytes,
  };
}

/** Without an answer in this time the answer is no. */
const ANSWER_WITHIN_MS = 120_000;

/** Enter is yes. Ctrl-C and Ctrl-D are no. */
async function confirm(question: string): Promise<boolean | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
  const lines = createInterface({ input: process.stdin, terminal: false });
  process.stderr.write(question);
  const giveUp = () => lines.close();
  const timer = setTimeout(giveUp, ANSWER_WITHIN_MS);
  process.once('SIGINT', giveUp);
  const answer = await new Promise<string | null>((resolve) => {
    lines.once('line', resolve);
    lines.once('close', () => resolve(null));
  });
  clearTimeout(timer);
  process.off('SIGINT', giveUp);
  lines.close();
  process.stdin.unref?.();
  if (answer === null) process.stderr.write('\n');
  return answer !== null && /^\s*(y|yes)?\s*$/i.test(answer);
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
    child.stdin?.end(); // a command that asks a question would wait forever
  });
}

/** Fields never contain a secret. */
export type ManagedLog = (level: 'info' | 'warn', message: string, fields?: object) => void;
