import { closeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tryLock } from 'fs-native-extensions';
import { errnoOf, messageOf, openPrivate, ParleyError } from '../../../kernel/index.ts';
import { readPidFile, readRecord, type ServerFiles } from './directory.ts';
import type { Host, ManagedLog } from './host.ts';

/**
 * The lock that prevents two servers on one directory, and the process of its server.
 *
 * MANAGED-LOCK-1 It is a kernel lock on an open file description: it lasts until the last process that inherited it has ended,
 *    in whatever way. It depends on no timestamp and no process id.
 * MANAGED-LOCK-2 The starting process takes it, passes it to the server as an extra file, and closes its own copy. So the lock
 *    is free exactly when no server runs here and none is being started.
 * MANAGED-LOCK-3 A process id alone proves nothing, because ids are reused. A process is the server of a directory only if it was
 *    started with that directory's configuration file; only such a process gets a signal.
 */
export interface HeldLock {
  /** The server inherits it. */
  readonly fd: number;
  /** Closes this process's copy; the lock itself is free once no copy is left (MANAGED-LOCK-1). */
  release(): Promise<void>;
}

/** Null when another process holds it. Throws `NATS_LOCK_FAILED` if the file system has no locks. */
export async function takeLock(path: string): Promise<HeldLock | null> {
  const fd = openPrivate(path);
  let taken = false;
  try {
    taken = tryLock(fd);
  } catch (error) {
    throw new ParleyError('NATS_LOCK_FAILED', `cannot lock ${path}: ${messageOf(error)}`, {
      hint: 'move the data directory (--data) to a local file system that supports locks',
      cause: error,
    });
  } finally {
    if (!taken) closeSync(fd);
  }
  return taken ? { fd, release: async () => closeSync(fd) } : null;
}

/** Whether no server runs and none is being started (MANAGED-LOCK-2). */
export async function isLockFree(path: string): Promise<boolean> {
  const lock = await takeLock(path);
  await lock?.release();
  return lock !== null;
}

const PS_TIMEOUT_MS = 5_000;

export async function isServerProcess(pid: number, configuration: string, host: Host): Promise<boolean> {
  if (host.platform !== 'linux') {
    const listed = await host.run('ps', ['-ww', '-o', 'command=', '-p', String(pid)], PS_TIMEOUT_MS);
    return listed.kind === 'exited' && listed.code === 0 && listed.output.includes(`-c ${configuration}`);
  }
  // Empty for a process that has ended and was not reaped yet.
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
  return words.some((word, at) => word === '-c' && words[at + 1] === configuration);
}

/** The server process of this directory, from its records; null when none of them is valid. */
export async function findServerProcess(
  files: ServerFiles,
  host: Host,
  log: ManagedLog,
): Promise<number | null> {
  const candidates = [(await readRecord(files, log))?.pid ?? null, await readPidFile(files)];
  for (const pid of candidates) {
    if (pid !== null && (await isServerProcess(pid, files.configuration, host))) return pid;
  }
  return null;
}

/** Ignores a process that has already ended. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw error;
  }
}
