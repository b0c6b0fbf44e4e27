import { closeSync } from 'node:fs';
import { tryLock } from 'fs-native-extensions';
import { messageOf, openPrivate, ParleyError } from '../../../kernel/index.ts';

/**
 * The lock that makes two servers on one directory impossible.
 *
 * MANAGED-LOCK-1 It is the kernel's, on an open file description: it lasts until the last process that inherited it is gone,
 *    however that one ends. It has no age, and no process id that could be somebody else's by now.
 * MANAGED-LOCK-2 The starter takes it, hands it to the server as an extra file, and closes its own copy. So the lock being
 *    free means exactly: no server runs here and none is being started.
 */
export interface HeldLock {
  /** To be inherited by the server. */
  readonly fd: number;
  /** Closes this process's copy; the lock itself is free once no copy is left (MANAGED-LOCK-1). */
  release(): Promise<void>;
}

/** Null when somebody holds it. Throws `NATS_LOCK_FAILED` where there are no locks. */
export async function takeLock(path: string): Promise<HeldLock | null> {
  const fd = openPrivate(path);
  let taken = false;
  try {
    taken = tryLock(fd);
  } catch (error) {
    throw new ParleyError('NATS_LOCK_FAILED', `cannot lock ${path}: ${messageOf(error)}`, {
      hint: 'put the data directory (--data) on a local file system that knows locks',
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
