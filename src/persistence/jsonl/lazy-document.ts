import { readFile, rename } from 'node:fs/promises';
import { type Adapter, Low } from 'lowdb';
import { coalesce, messageOf, orNullIfMissing, replaceFile } from '../../kernel/index.ts';
import { fileTimestamp, type StoreLog } from './log/durable.ts';

/**
 * A document that is saved later, kept with lowdb.
 *
 * LAZY-DOCUMENT-1 A document is replaced as a whole, under a temporary name, and synced; lowdb's own writer does not sync.
 * LAZY-DOCUMENT-2 A missing document is empty. A damaged one is set aside and starts empty; it is never fatal.
 * LAZY-DOCUMENT-3 Saves are lazy: a change is on the disk after `SAVE_DELAY_MS`, or earlier after `flush`.
 * LAZY-DOCUMENT-4 A failed save keeps the change and is retried. It is reported once, and then each minute while saves fail.
 */

const SAVE_DELAY_MS = 500;
const REPORT_AGAIN_MS = 60_000;

export interface LazyDocument<T> {
  /** The last state that was loaded or saved. */
  readonly data: T;
  /** The next save writes what `data` returns then. */
  change(data: () => T): void;
  /** Resolves when every change so far is durable; calls share a save. */
  flush(): Promise<void>;
  /** Saves pending changes. A failure is reported, not thrown: the document can be rebuilt. */
  close(): Promise<void>;
}

export async function openLazyDocument<T>(options: {
  readonly path: string;
  readonly empty: T;
  /** Throws on a document of another form. */
  readonly parse: (value: unknown) => T;
  readonly log: StoreLog;
}): Promise<LazyDocument<T>> {
  const { path, parse, log } = options;
  const file: Adapter<T> = {
    async read() {
      try {
        const text = await orNullIfMissing(readFile(path, 'utf8'));
        return text === null ? null : parse(JSON.parse(text));
      } catch (error) {
        const keptIn = `${path}.bad-${fileTimestamp()}`;
        await rename(path, keptIn);
        log({ type: 'projection-set-aside', file: path, keptIn, reason: messageOf(error) });
        return null;
      }
    },
    // Encoded before anything is awaited, so that it contains no later change.
    write: (data) => replaceFile(path, `${JSON.stringify(data)}\n`),
  };
  const low = new Low<T>(file, options.empty);
  await low.read();
  let changed: (() => T) | null = null;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;
  let reportedAt = Number.NEGATIVE_INFINITY;

  const save = coalesce(async () => {
    const latest = changed;
    if (latest === null) return;
    changed = null;
    if (timer !== null) clearTimeout(timer);
    timer = null;
    try {
      low.data = latest();
      await low.write();
      reportedAt = Number.NEGATIVE_INFINITY;
    } catch (error) {
      changed ??= latest;
      schedule();
      throw error;
    }
  });

  async function saveOrReport(): Promise<void> {
    await save().catch((error: unknown) => {
      if (performance.now() - reportedAt < REPORT_AGAIN_MS) return;
      reportedAt = performance.now();
      log({ type: 'projection-not-saved', file: path, reason: messageOf(error) });
    });
  }

  /** The delay begins with the first change, so that continuous changes cannot postpone the save forever. */
  function schedule(): void {
    if (timer !== null || closed) return;
    timer = setTimeout(() => {
      timer = null;
      void saveOrReport();
    }, SAVE_DELAY_MS);
    timer.unref();
  }

  return {
    get data() {
      return low.data;
    },
    change(data) {
      changed = data;
      schedule();
    },
    flush: save,
    async close() {
      closed = true;
      await saveOrReport();
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
}
