import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, syncDirectory } from '../../../kernel/index.ts';
import type { ManagedLog } from './host.ts';

/**
 * Syncs the files of a server that cannot do so itself (before 2.10).
 *
 * SYNC-LOOP-1 The contents of the store at the start of a pass are on disk at its end: files first, then their folders.
 * SYNC-LOOP-2 Unchanged files are not synced again: an idle server costs no disk access.
 * SYNC-LOOP-3 A failed pass is logged once and retried; nothing counts as synced.
 */
export interface SyncLoop {
  /** Runs one pass now. */
  pass(): Promise<void>;
  /** Runs a last pass. Never rejects. */
  stop(): Promise<void>;
}

export interface SyncLoopOptions {
  readonly store: string;
  readonly log: ManagedLog;
  readonly everyMs: number;
  /** Replaced in tests; the default also syncs files. */
  readonly sync?: (path: string) => Promise<void>;
}

export function startSyncLoop({ store, log, everyMs, sync = syncDirectory }: SyncLoopOptions): SyncLoop {
  let synced = new Map<string, string>();
  let failing = false;
  let last = Promise.resolve();
  let timer: NodeJS.Timeout | null = null;

  const passOnce = async (): Promise<void> => {
    try {
      synced = await syncChanged(store, synced, sync);
      failing = false;
    } catch (error) {
      if (!failing) log('warn', `cannot sync ${store}: ${messageOf(error)}`);
      failing = true;
    }
  };
  const pass = (): Promise<void> => {
    last = last.then(passOnce); // the current pass may have read older contents (SYNC-LOOP-1)
    return last;
  };
  const schedule = (): void => {
    timer = setTimeout(() => void pass().then(() => timer && schedule()), everyMs).unref();
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

/** Returns the synced state of each path. */
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
    // The size too, because two writes can have the same mtime.
    if (facts)
      (facts.isDirectory() ? folders : files).push([path, `${facts.mtimeNs}/${facts.size}/${facts.ino}`]);
  }
  const now = new Map<string, string>();
  for (const [path, state] of [...files, ...folders]) {
    if (synced.get(path) !== state) await sync(path).catch(unlessGone(undefined));
    now.set(path, state);
  }
  return now;
}

/** The server may remove files during a pass. */
function unlessGone<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return instead;
    throw error;
  };
}
