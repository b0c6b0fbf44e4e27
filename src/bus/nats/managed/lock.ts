import { closeSync } from 'node:fs';
import { tryLock } from 'fs-native-extensions';
import { messageOf, openPrivate, ParleyError } from '../../../kernel/index.ts';

/**
 * The lock that prevents two servers on one directory.
 *
 * MANAGED-LOCK-1 It is a kernel lock on an open file description: it lasts until the last process that inherited it has ended,
 *    in whatever way. It depends on no timestamp and no process id.
 * MANAGED-LOCK-2 The starting process takes it, passes it to the server as an extra file, and closes its own copy. So the lock
 *    is free exactly when no server runs here and none is being started.
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
