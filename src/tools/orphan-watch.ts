import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Sees to it that a process group does not outlive this process, whatever ends that: `kill -9` too, when nothing of ours
 * runs any more. A shell waits at a pipe that only we hold. While the pipe is open nothing happens; when it closes
 * without a word, the group is asked to end, and a second later ended.
 *
 * It leads a session of its own, so that no signal from a terminal reaches it.
 */
const WATCH = [
  'read -r group || exit 0',
  'read -r over && exit 0',
  'kill -s TERM -- "-$group"',
  'sleep 1',
  'kill -s KILL -- "-$group"',
].join('; ');

export class OrphanWatch {
  private readonly shell: ChildProcess;
  private isGuarding = false;
  /** Why there is none, when it could not be started. */
  readonly failure: Promise<Error>;

  constructor() {
    this.shell = spawn('/bin/sh', ['-c', WATCH], {
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.failure = new Promise((resolve) => void this.shell.once('error', resolve));
    this.shell.stdin?.on('error', () => {}); // it was ended: what it watched is not watched any more
    this.shell.unref();
  }

  get isThere(): boolean {
    return this.shell.pid !== undefined;
  }

  /** From now on this group ends with us. */
  guard(group: number): void {
    this.isGuarding = true;
    this.shell.stdin?.write(`${group}\n`);
  }

  /** The group has ended, or there never was one. */
  over(): void {
    const { stdin } = this.shell;
    // Ended alone it would be closed only when the shell has: nothing is to be left of it here.
    stdin?.end(this.isGuarding ? 'over\n' : '', () => stdin.destroy());
  }
}
