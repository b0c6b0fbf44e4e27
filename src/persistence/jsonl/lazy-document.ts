import { readFile, rename } from 'node:fs/promises';
import { type Adapter, Low } from 'lowdb';
import { coalesce, messageOf, orNullIfMissing } from '../../kernel/index.ts';
import { fileTimestamp, replaceFile } from './log/durable.ts';
import type { StoreLog } from './log/log-file.ts';

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

/** lowdb's adapter to one file (LAZY-DOCUMENT-1). `parse` throws on a document of another shape. */
class DurableJsonFile<T> implements Adapter<T> {
  readonly #path: string;
  readonly #parse: (value: unknown) => T;
  readonly #log: StoreLog;

  constructor(path: string, parse: (value: unknown) => T, log: StoreLog) {
    this.#path = path;
    this.#parse = parse;
    this.#log = log;
  }

  async read(): Promise<T | null> {
    try {
      const text = await orNullIfMissing(readFile(this.#path, 'utf8'));
      return text === null ? null : this.#parse(JSON.parse(text));
    } catch (error) {
      await this.#setAside(error);
      return null;
    }
  }

  async write(data: T): Promise<void> {
    // Encoded before the first await, so that it contains no later change.
    const text = `${JSON.stringify(data)}\n`;
    await replaceFile(this.#path, text, { durable: true });
  }

  async #setAside(cause: unknown): Promise<void> {
    const keptIn = `${this.#path}.bad-${fileTimestamp()}`;
    await rename(this.#path, keptIn);
    this.#log({ type: 'projection-set-aside', file: this.#path, keptIn, reason: messageOf(cause) });
  }
}

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
  readonly parse: (value: unknown) => T;
  readonly log: StoreLog;
}): Promise<LazyDocument<T>> {
  const { path, log } = options;
  const low = new Low<T>(new DurableJsonFile(path, options.parse, log), options.empty);
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
