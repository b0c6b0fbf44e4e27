import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Ends a process group when this process ends, even by `kill -9`. A shell waits at a pipe that only this process holds.
 * If the pipe closes without a message, the shell sends SIGTERM to the group and SIGKILL a second later.
 *
 * The shell leads its own session, so that it gets no signals from a terminal.
 */
const WATCH = [
  'read -r group || exit 0',
  'read -r over && exit 0',
  'kill -s TERM -- "-$group"',
  'sleep 1',
  'kill -s KILL -- "-$group"',
].join('; ');

export class OrphanWatch {
  readonly #shell: ChildProcess;
  #isGuarding = false;
  /** Resolves with the error if the shell could not be started. */
  readonly failure: Promise<Error>;

  constructor() {
    this.#shell = spawn('/bin/sh', ['-c', WATCH], {
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.failure = new Promise((resolve) => void this.#shell.once('error', resolve));
    this.#shell.stdin?.on('error', () => {}); // the shell was ended: it watches no longer
    this.#shell.unref();
  }

  get isRunning(): boolean {
    return this.#shell.pid !== undefined;
  }

  /** From now on this group ends with this process. */
  guard(group: number): void {
    this.#isGuarding = true;
    this.#shell.stdin?.write(`${group}\n`);
  }

  /** The group has ended or never started. */
  over(): void {
    const { stdin } = this.#shell;
    // `end` alone would close the pipe only after the shell has ended.
    stdin?.end(this.#isGuarding ? 'over\n' : '', () => stdin.destroy());
  }
}
