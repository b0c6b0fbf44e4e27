import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type AnswerOf, FOUND, type RequestOf } from '../../bus/index.ts';
import { type Log, makeDirectory, messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import {
  documentsOf,
  type IndexedConversation,
  openSearchIndex,
  type SearchIndex,
} from '../../search/index.ts';
import type { ListedRow } from '../conversations/projections.ts';
import type { Workers } from '../conversations/workers.ts';

/**
 * Searches the messages of all conversations.
 *
 * MESSAGE-SEARCH-1 The index is a projection: each search first adds what the conversation list has beyond it, so a missing or
 *    outdated index is filled from the logs. A search waits for that a short time and reports how many are pending.
 * MESSAGE-SEARCH-2 Before the first search there is no thread and no file, and nothing is read.
 * MESSAGE-SEARCH-3 A deletion removes the texts from the index before it is answered. What another daemon deletes is removed
 *    before the next search, and once an hour.
 * MESSAGE-SEARCH-4 An index that fails is deleted and built again, once for all searches that it fails.
 * MESSAGE-SEARCH-5 Where daemons share the logs, each has an index of all of them, and the one that works on a conversation
 *    has its newest messages: `shared-api.ts` merges their answers.
 */

const WAIT_MS = 1_500;
const SWEEP_MS = 3_600_000;
/** Documents of one message to the thread. */
const BATCH = 2_000;
/** Faults of a log that stay until it changes. After any other, the next search reads it. */
const LASTING: ReadonlySet<string> = new Set(['LOG_CORRUPT', 'LOG_UNREADABLE', 'NOT_FOUND']);

type Batch = Parameters<SearchIndex['put']>[0];

interface SearchContext {
  readonly store: Pick<ConversationStore, 'conversations'>;
  readonly log: Log;
  readonly shutdown: AbortSignal;
}

export class Search {
  readonly #daemon: SearchContext;
  readonly #workers: Pick<Workers, 'rows' | 'existing'>;
  readonly #path: string | null;
  #sweeper: NodeJS.Timeout | null = null;
  #index: Promise<SearchIndex> | null = null;
  /** A new index is opened only after the failed one is deleted. */
  #discarding: Promise<void> = Promise.resolve();
  /** What the index has, by conversation. */
  #known = new Map<string, IndexedConversation>();
  /** Logs that cannot be read, until they change (`LASTING`). */
  readonly #unreadable = new Map<string, string>();
  /** Deleted since the running catch-up began. */
  readonly #forgotten = new Set<string>();
  #catchingUp: Promise<void> | null = null;

  /** `path`: of the index; null keeps it in memory. */
  constructor(daemon: SearchContext, workers: Pick<Workers, 'rows' | 'existing'>, path: string | null) {
    this.#daemon = daemon;
    this.#workers = workers;
    this.#path = path;
    if (this.#exists) this.#sweepHourly();
  }

  async search(request: RequestOf<'search'>): Promise<AnswerOf<'search'>> {
    const opened = this.#open();
    try {
      return await this.#search(request, opened);
    } catch (error) {
      await this.#discard(opened, error); // MESSAGE-SEARCH-4
      return this.#search(request, this.#open());
    }
  }

  async forget(conversation: string): Promise<void> {
    this.#forgotten.add(conversation);
    if (!this.#exists) return;
    const opened = this.#open();
    try {
      await (await opened).remove([conversation]);
      this.#known.delete(conversation);
    } catch (error) {
      await this.#discard(opened, error);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper ?? undefined);
    await this.#catchingUp?.catch(() => undefined);
    await (await this.#index?.catch(() => null))?.close();
  }

  get #exists(): boolean {
    return this.#index !== null || (this.#path !== null && existsSync(this.#path));
  }

  async #search(
    { q, limit = FOUND, ...filters }: RequestOf<'search'>,
    opened: Promise<SearchIndex>,
  ): Promise<AnswerOf<'search'>> {
    const index = await opened;
    const rows = new Map((await this.#workers.rows()).map((row) => [row.id, row]));
    await this.#removeOthers(index, rows);
    this.#catchUp(index, opened);
    await Promise.race([this.#catchingUp, sleep(WAIT_MS)]);
    const found = await index.search({ text: q, limit, ...filters });
    const hits = found.flatMap((hit) => {
      const row = rows.get(hit.conversation);
      const isThere = row !== undefined && !this.#forgotten.has(row.id);
      return isThere ? [{ ...hit, title: row.title }] : [];
    });
    return { hits, pending: [...rows.values()].filter((row) => this.#isOutdated(row)).length };
  }

  #open(): Promise<SearchIndex> {
    this.#index ??= this.#discarding.catch(() => undefined).then(() => this.#begin());
    return this.#index;
  }

  async #begin(): Promise<SearchIndex> {
    if (this.#path !== null) await makeDirectory(dirname(this.#path)); // for its owner only, as all that SQLite writes there
    const index = openSearchIndex(this.#path);
    this.#sweepHourly();
    this.#known = new Map((await index.conversations()).map((one) => [one.id, one]));
    return index;
  }

  #isOutdated({ id, length, updatedAt }: ListedRow): boolean {
    if (this.#unreadable.get(id) === updatedAt) return false;
    const known = this.#known.get(id);
    return known === undefined || known.length !== length || known.updatedAt !== updatedAt;
  }

  async #removeOthers(index: SearchIndex, rows: ReadonlyMap<string, unknown>): Promise<void> {
    const gone = [...this.#known.keys()].filter((id) => !rows.has(id));
    if (gone.length === 0) return;
    await index.remove(gone);
    for (const id of gone) this.#known.delete(id);
  }

  /** One at a time; newest conversations first. */
  #catchUp(index: SearchIndex, opened: Promise<SearchIndex>): void {
    if (this.#catchingUp) return;
    this.#forgotten.clear();
    this.#catchingUp = this.#addOutdated(index)
      .catch((error: unknown) => this.#discard(opened, error))
      .finally(() => {
        this.#catchingUp = null;
      });
  }

  async #addOutdated(index: SearchIndex): Promise<void> {
    const rows = (await this.#workers.rows()).filter((row) => this.#isOutdated(row));
    rows.sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
    let [batch, documents]: [Batch[number][], number] = [[], 0];
    for (const row of rows) {
      if (this.#daemon.shutdown.aborted) return;
      const added = await this.#read(index, row);
      if (added === null) continue;
      batch.push(added);
      documents += added.documents.length;
      if (documents >= BATCH) {
        await this.#put(index, batch);
        [batch, documents] = [[], 0];
      }
      await sleep(0); // posts and turns go first
    }
    await this.#put(index, batch);
  }

  /** Null: it cannot be read now. */
  async #read(index: SearchIndex, { id, updatedAt }: ListedRow): Promise<Batch[number] | null> {
    try {
      const worker = await this.#workers.existing(id);
      const known = this.#known.get(id);
      const overlap = known ? worker.entries(known.length - 1, 1)[0] : undefined;
      const isSameLog = known !== undefined && overlap?.id === known.lastId;
      if (known && !isSameLog) await index.remove([id]);
      const entries = worker.entries(isSameLog ? known.length : 0);
      const length = worker.state.length;
      const lastId = worker.entries(length - 1, 1)[0]?.id ?? '';
      return { id, length, lastId, updatedAt, documents: documentsOf(entries) };
    } catch (error) {
      if (error instanceof ParleyError && LASTING.has(error.code)) this.#unreadable.set(id, updatedAt);
      this.#daemon.log.warn(
        { conversation: id, error: messageOf(error) },
        'a conversation cannot be searched',
      );
      return null;
    }
  }

  async #put(index: SearchIndex, batch: Batch): Promise<void> {
    const kept = batch.filter(({ id }) => !this.#forgotten.has(id));
    if (kept.length === 0) return;
    await index.put(kept);
    for (const { documents, ...known } of kept) this.#known.set(known.id, known);
    const gone = kept.filter(({ id }) => this.#forgotten.has(id)).map(({ id }) => id); // deleted meanwhile
    for (const id of gone) this.#known.delete(id);
  }

  #sweepHourly(): void {
    this.#sweeper ??= setInterval(() => void this.#sweep(), SWEEP_MS).unref();
  }

  async #sweep(): Promise<void> {
    if (!this.#exists) return;
    const opened = this.#open();
    try {
      const rows = new Set(await this.#daemon.store.conversations());
      await this.#removeOthers(await opened, new Map([...rows].map((id) => [id, null])));
    } catch (error) {
      await this.#discard(opened, error);
    }
  }

  /** MESSAGE-SEARCH-4 */
  #discard(failed: Promise<SearchIndex>, error: unknown): Promise<void> {
    if (this.#index !== failed) return this.#discarding; // another search has discarded it
    this.#daemon.log.warn({ error: messageOf(error) }, 'the search index failed and is built again');
    this.#index = null;
    this.#known.clear();
    this.#discarding = this.#remove(failed);
    return this.#discarding;
  }

  async #remove(failed: Promise<SearchIndex>): Promise<void> {
    await (await failed.catch(() => null))?.close();
    if (this.#path !== null) await rm(dirname(this.#path), { recursive: true, force: true });
  }
}

/** MESSAGE-SEARCH-5: each message once, best first. */
export function mergeSearch<
  Hit extends { readonly conversation: string; readonly index: number; readonly score: number },
>(
  pages: readonly { readonly hits: readonly Hit[]; readonly pending: number }[],
  limit = FOUND,
): { readonly hits: readonly Hit[]; readonly pending: number } {
  const found = new Map(
    pages.flatMap(({ hits }) => hits).map((hit) => [`${hit.conversation}/${hit.index}`, hit]),
  );
  const hits = [...found.values()].sort((a, b) => b.score - a.score).slice(0, limit);
  return { hits, pending: Math.min(...pages.map(({ pending }) => pending)) };
}
