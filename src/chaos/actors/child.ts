import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * A process of the run: known by its id, ended by its id.
 *
 * C1 No child outlives this process: whatever ends it, its children get SIGKILL first.
 */
export interface Child {
  readonly pid: number;
  readonly isAlive: boolean;
  /** Resolves with the exit code; null: ended by a signal. */
  readonly exited: Promise<number | null>;
  /** The last of what it said on stderr. */
  stderr(): string;
  /** Resolves with the first line of its stdout or stderr that fits; rejects when it ends before. */
  said(pattern: RegExp): Promise<string>;
  signal(name: NodeJS.Signals): void;
}

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
}

const KEPT = 16_384;

export function startChild({ command, args, env, workingDirectory }: ChildOptions): Child {
  const child = spawn(command, args, { cwd: workingDirectory, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const endWithUs = () => child.kill('SIGKILL'); // C1
  process.once('exit', endWithUs);
  const exited = once(child, 'exit')
    .catch(() => [-1])
    .then(([code]) => code as number | null);
  void exited.then(() => process.removeListener('exit', endWithUs));

  let output = '';
  let errors = '';
  const listeners = new Set<() => void>();
  const hear = (chunk: Buffer, isError: boolean) => {
    output = (output + chunk.toString()).slice(-KEPT);
    if (isError) errors = (errors + chunk.toString()).slice(-KEPT);
    for (const listener of listeners) listener();
  };
  child.stdout?.on('data', (chunk: Buffer) => hear(chunk, false));
  child.stderr?.on('data', (chunk: Buffer) => hear(chunk, true));

  return {
    get pid() {
      return child.pid ?? 0;
    },
    get isAlive() {
      return isRunning(child);
    },
    exited,
    stderr: () => errors,
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const line = output.split('\n').find((candidate) => pattern.test(candidate));
          if (line === undefined) return;
          listeners.delete(look);
          resolve(line);
        };
        listeners.add(look);
        look();
        void exited.then((code) => {
          listeners.delete(look);
          reject(new Error(`${command} ended with ${code}: ${errors.slice(-1_000)}`));
        });
      }),
    signal: (name) => void child.kill(name),
  };
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}
