import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../../kernel/index.ts';
import type { ManagedLog } from '../log.ts';

/**
 * Puts on disk what a server that cannot do so by itself (before 2.10) has written.
 *
 * SYNC-LOOP-1 What stood in the store when a pass began is on disk when it ends: files first, then the folders that name them.
 * SYNC-LOOP-2 What has not changed since its last sync is not synced again: an idle server costs no disk access.
 * SYNC-LOOP-3 A failing pass is reported once, tried again, and counts for nothing.
 */
export interface SyncLoop {
  /** One pass now; resolves when it is over. */
  pass(): Promise<void>;
  /** A last pass, then none. Never rejects. */
  stop(): Promise<void>;
}

export interface SyncLoopOptions {
  readonly store: string;
  readonly log: ManagedLog;
  readonly everyMs: number;
  /** Replaced in tests. */
  readonly sync?: (path: string) => Promise<void>;
}

export function startSyncLoop(options: SyncLoopOptions): SyncLoop {
  const sync = options.sync ?? syncPath;
  let synced = new Map<string, string>();
  let failing = false;
  let running: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;

  const passOnce = async (): Promise<void> => {
    try {
      synced = await syncChanged(options.store, synced, sync);
      failing = false;
    } catch (error) {
      if (!failing) options.log('warn', `cannot sync ${options.store}: ${messageOf(error)}`); // SYNC-LOOP-3
      failing = true;
    }
  };
  const pass = (): Promise<void> => {
    // A pass under way may be past what the caller cares about: it gets one that begins now (SYNC-LOOP-1).
    const mine: Promise<void> = (running ?? Promise.resolve()).then(passOnce).finally(() => {
      if (running === mine) running = null;
    });
    running = mine;
    return mine;
  };
  const schedule = (): void => {
    timer = setTimeout(() => void pass().then(() => timer && schedule()), options.everyMs).unref();
  };
  schedule();
  return {
    pass,
    stop: () => {
      if (timer) clearTimeout(timer);
      timer = null;
      return pass();
    },
  };
}

/** Answers with what is on disk now: path → the state that was synced. */
async function syncChanged(
  store: string,
  synced: ReadonlyMap<string, string>,
  sync: (path: string) => Promise<void>,
): Promise<Map<string, string>> {
  const files: [string, string][] = [];
  const folders: [string, string][] = [];
  for (const name of ['.', ...(await readdir(store, { recursive: true }).catch(unlessGone<string[]>([])))]) {
    const path = join(store, name);
    const facts = await stat(path, { bigint: true }).catch(unlessGone(null));
    // The size too: two writes can fall into one tick of the clock that stamps files.
    if (facts)
      (facts.isDirectory() ? folders : files).push([path, `${facts.mtimeNs}/${facts.size}/${facts.ino}`]);
  }
  const now = new Map<string, string>();
  for (const [path, state] of [...files, ...folders]) {
    if (synced.get(path) !== state) await sync(path).catch(unlessGone(undefined)); // SYNC-LOOP-2
    now.set(path, state);
  }
  return now;
}

/** The server removes files while they are looked at. */
function unlessGone<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return instead;
    throw error;
  };
}

async function syncPath(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
