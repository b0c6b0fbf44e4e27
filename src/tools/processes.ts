import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errnoOf, messageOf, ParleyError } from '../kernel/index.ts';

/**
 * Starts programs for which one folder is empty: the daemon's data, with its credentials.
 *
 * HIDE-1  In a mount namespace of the program, an empty read-only file system covers the folder. The program replaces the
 *         wrapper: process id, group, signals and exit code are its own.
 * HIDE-2  The program cannot undo or bypass that. As root it lacks the capabilities to mount, to enter namespaces, to read
 *         other processes and disks; else it is in a user namespace without rights over the mounts and the daemon.
 *         A process of root with fewer capabilities stays readable: only a user of its own protects (docs/threat-model.md).
 * HIDE-3  If hiding fails, for one program or on the whole system, no program starts, unless the operator accepts that
 *         programs read the folder (`unhidden`).
 * HIDE-4  The covered folder is the original one: a program may move a parent folder and create another in its place.
 */

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

export type Enclose = (program: Program) => Program;

export const asIs: Enclose = (program) => program;

export interface Hiding {
  readonly enclose: Enclose;
  /** Why the folder is not hidden; null: it is hidden. */
  readonly fault: string | null;
}

const SHELL = '/bin/sh';
const UNSHARE = '/usr/bin/unshare';
/** HIDE-2. Numbers for names that an older `setpriv` does not know (perfmon, bpf). */
const DROPPED =
  '-sys_admin,-sys_ptrace,-sys_module,-sys_rawio,-sys_boot,-mknod,-dac_read_search,-cap_38,-cap_39';
/** HIDE-4: the subshell enters the folder, compares its identity, and covers it. */
const COVER = `folder=$1 identity=$2; shift 2
( cd -P -- "$folder" && [ "$(/usr/bin/stat -c %d:%i .)" = "$identity" ] &&
  /bin/mount --no-canonicalize -t tmpfs -o ro,nosuid,nodev,noexec,mode=0555,size=4k parley-hidden . ) || {
  echo "the daemon's data could not be hidden from this program"; exit 125; }`;
const AS_ROOT = `${COVER}
exec /usr/bin/setpriv --bounding-set ${DROPPED} --inh-caps=-all -- "$@"`;
const AS_USER = `${COVER}
user=$1; group=$2; shift 2
exec ${UNSHARE} --user --map-user="$user" --map-group="$group" -- "$@"`;
/** Tries to read the hidden file directly and after an attempt to unmount the cover. */
const PROBE = '[ ! -e "$1/mark" ] && ! umount "$1" 2>/dev/null && [ ! -e "$1/mark" ]';
const PROBE_MS = 10_000;

export async function hideFolder(folder: string, unhidden = false): Promise<Hiding> {
  const real = await realpath(folder).catch((error: unknown) => ({ fault: messageOf(error) }));
  const fault = typeof real === 'string' ? await hidingFault() : real.fault;
  if (typeof real === 'string' && fault === null) return { enclose: enclosing(real, ...identity()), fault };
  return { enclose: unhidden ? asIs : refusing, fault };
}

const refusing: Enclose = () => {
  throw new ParleyError(
    'DATA_NOT_HIDDEN',
    "no program is started: this system cannot hide the daemon's data from it",
    { hint: 'the operator finds the reason and the remedy with `parley doctor`' },
  );
};

/** Why this system cannot hide folders; null: it can. Tries it with a temporary folder. */
export async function hidingFault(): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-hiding-'));
  try {
    await writeFile(join(folder, 'mark'), '');
    const probe = enclosing(folder, ...identity())({ command: SHELL, args: ['-c', PROBE, 'sh', folder] });
    await promisify(execFile)(probe.command, probe.args, { timeout: PROBE_MS });
    return null;
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    return stderr || messageOf(error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function identity(): [number, number] {
  return [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
}

/** `user` and `group`: of the process that starts programs. */
export function enclosing(folder: string, user: number, group: number): Enclose {
  const [spaces, script, ids] =
    user === 0
      ? [['--mount', '--propagation', 'slave'], AS_ROOT, []]
      : [['--user', '--map-root-user', '--mount'], AS_USER, [`${user}`, `${group}`]];
  const there = statSync(folder, { bigint: true, throwIfNoEntry: false });
  const cover = [folder, there ? `${there.dev}:${there.ino}` : ''];
  return ({ command, args }) => ({
    command: UNSHARE,
    args: [...spaces, '--', SHELL, '-c', script, 'sh', ...cover, ...ids, command, ...args],
  });
}

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

/** False: the group has no process. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    return errnoOf(error) !== 'ESRCH';
  }
}
