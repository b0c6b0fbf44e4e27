import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * A process of the run, identified and ended by its process id.
 *
 * CHILD-1 No child outlives this process, unless this process gets SIGKILL.
 * CHILD-2 A child has its own process group: Ctrl-C reaches only the run, which then ends its children in order.
 */
export interface Child {
  readonly pid: number;
  readonly isAlive: boolean;
  /** Resolves with the exit code; null: ended by a signal. */
  readonly exited: Promise<number | null>;
  /** The end of its output. */
  lastOutput(): string;
  /** Resolves with the first line of stdout or stderr that matches; rejects if the process ends before. */
  said(pattern: RegExp): Promise<string>;
  signal(name: NodeJS.Signals): void;
}

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
}

const KEPT_OUTPUT = 16_384;

export function startChild({ command, args, env, workingDirectory }: ChildOptions): Child {
  const child = spawn(command, args, {
    cwd: workingDirectory,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const endWithUs = () => child.kill('SIGKILL'); // CHILD-1
  process.once('exit', endWithUs);
  const exited = once(child, 'exit')
    .catch(() => [-1])
    .then(([code]) => code as number | null);
  void exited.then(() => process.removeListener('exit', endWithUs));

  let output = '';
  const listeners = new Set<() => void>();
  const hear = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-KEPT_OUTPUT);
    for (const listener of listeners) listener();
  };
  child.stdout?.on('data', hear);
  child.stderr?.on('data', hear);

  return {
    get pid() {
      return child.pid ?? 0;
    },
    get isAlive() {
      return isRunning(child);
    },
    exited,
    lastOutput: () => output,
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
          reject(new Error(`${command} ended with ${code}: ${output.slice(-1_000)}`));
        });
      }),
    signal: (name) => void child.kill(name),
  };
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}
