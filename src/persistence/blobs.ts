import { createHash } from 'node:crypto';
import type { Entry } from '../conversation/index.ts';
import { hasCode, InOrder, ParleyError, sha256Of } from '../kernel/index.ts';
import type { BlobFacts, Blobs, NamedFiles } from './port.ts';
import { logClosed, requireBlobHash } from './rules.ts';
import type { Storage, StoredContent } from './storage.ts';

/**
 * Which blobs are stored, and which logs may name them, in the documents of a store.
 *
 * BLOBS-1 `blob.<sha256>` is written after the content is durable, and changed by compare-and-set. Its `in` lists the logs that
 *         may name the blob, each as `<conversation>.<life>`: a life is the log that begins with one first entry.
 * BLOBS-2 A log claims its files in their records before an entry names them. So the records list at least what the logs name.
 * BLOBS-3 A blob that no log may name any more is marked `erasing`, and from then on no log can claim it. Then its content is
 *         removed, then its record. Whoever finds the mark can finish. Where logs are shared, each stored content has a name
 *         of its own, so that this never removes what another daemon has just stored again.
 * BLOBS-4 A deletion releases the files that its log names, by life, before it removes the log: it can be repeated, and a log that
 *         begins meanwhile under the same name keeps its files.
 * BLOBS-5 Any other claim of a log that is not there may be that of an append under way, so a sweep releases it an hour later.
 *         Content without a record and blobs that no log claimed since their newest upload are older: a person may still be writing
 *         the message.
 */
type BlobRecord = Omit<BlobFacts, 'sha256'> & {
  /** ISO 8601: of the newest upload. */
  readonly storedAt: string;
  /** The name of the content in the storage. */
  readonly content: string;
  /** By log: when it claimed the blob (ISO 8601). */
  readonly in: Readonly<Record<string, string>>;
  /** No log has claimed it since the newest upload. */
  readonly unclaimed?: true;
  readonly erasing?: true;
};
type IsOver = (log: string, claimedAt: string) => boolean;

/** No append takes longer: the server of a shared log would be away for that time. */
const APPEND_MS = 3_600_000;

/** The life of the log that begins with this entry. */
export function lifeOf(first: Pick<Entry, 'id'>): string {
  return sha256Of(first.id).slice(0, 16);
}

/** Reads the blobs of a store, which another process may own. */
export class BlobReader {
  readonly #content: Pick<StoredContent, 'documents' | 'blobs'>;

  constructor(content: Pick<StoredContent, 'documents' | 'blobs'>) {
    this.#content = content;
  }

  async facts(sha256: string): Promise<BlobFacts | null> {
    requireBlobHash(sha256);
    const known = await this.record(sha256);
    return known && { sha256, ...factsIn(known) };
  }

  async read(sha256: string, from = 0): Promise<AsyncIterable<Uint8Array> | null> {
    requireBlobHash(sha256);
    const known = await this.record(sha256);
    if (known === null) return null;
    const content = await this.#content.blobs.read(known.content, from);
    if (content !== null && from > 0) return content;
    if (content !== null) return verified({ sha256, size: known.size }, content, () => damaged(sha256));
    if ((await this.record(sha256))?.content === known.content) throw damaged(sha256);
    return null; // it was erased meanwhile
  }

  /** BLOBS-2 */
  async isClaimed(sha256: string, conversation: string, first: Pick<Entry, 'id'>): Promise<boolean> {
    return (await this.record(sha256))?.in[`${conversation}.${lifeOf(first)}`] !== undefined;
  }

  async record(sha256: string): Promise<BlobRecord | null> {
    return alive(await this.#content.documents.get(`blob.${sha256}`));
  }
}

export class StoredBlobs extends BlobReader implements Omit<Blobs, 'of'> {
  readonly #storage: Storage;
  /** By hash: the storage of one process may use the same name for content that is stored again (BLOBS-3). */
  readonly #order = new InOrder();

  constructor(storage: Storage) {
    super(storage);
    this.#storage = storage;
  }

  put(facts: BlobFacts, content: () => AsyncIterable<Uint8Array>): Promise<void> {
    const { sha256 } = facts;
    requireBlobHash(sha256);
    return this.#order.run(sha256, async () => {
      while (!(await this.#put(facts, content)));
    });
  }

  /** False: it was stored, and was erased meanwhile. */
  async #put({ sha256, ...facts }: BlobFacts, content: () => AsyncIterable<Uint8Array>): Promise<boolean> {
    const { documents, blobs } = this.#storage;
    const known = await this.record(sha256);
    if (known !== null && known.size !== facts.size) throw wrongHash(sha256);
    const isStored = known !== null && (await this.#isWhole(sha256, known));
    const checked = () => verified({ sha256, size: facts.size }, content(), () => wrongHash(sha256));
    const name = isStored ? known.content : await blobs.put(sha256, checked());
    this.#storage.reach?.('blob-stored');
    let isDone = true as boolean;
    let replaced = null as string | null;
    await documents.change(`blob.${sha256}`, (stored) => {
      const now = alive(stored);
      const storedAt = new Date().toISOString();
      isDone = !isStored || now?.content === name;
      replaced = (stored as BlobRecord | null)?.content ?? null;
      return isDone ? { ...(now ?? { ...facts, in: {} }), content: name, storedAt, unclaimed: true } : null;
    });
    if (isDone && replaced !== null && replaced !== name) await blobs.remove(replaced);
    return isDone;
  }

  /** Whether the log of a conversation may name a blob. */
  async isIn(conversation: string, sha256: string): Promise<boolean> {
    const logs = Object.keys((await this.record(sha256))?.in ?? {});
    for (const log of logs) if (log.startsWith(`${conversation}.`) && (await this.#isThere(log))) return true;
    return false;
  }

  /** Before the append of an entry that names these files (BLOBS-2). */
  async claim(
    conversation: string,
    life: string,
    hashes: readonly string[],
    isBeginning: boolean,
  ): Promise<void> {
    const { documents } = this.#storage;
    const log = `${conversation}.${life}`;
    const claimedAt = new Date().toISOString();
    for (const sha256 of hashes) {
      await documents.change(`blob.${sha256}`, (stored) => {
        const known = alive(stored);
        if (known === null)
          throw new ParleyError('MISSING_BLOB', `the file ${sha256} is not stored, so nothing was appended`, {
            hint: 'upload it, then post the message again',
          });
        const { unclaimed, ...claimed } = known;
        const isKnown = known.in[log] !== undefined && !isBeginning && !unclaimed;
        return isKnown ? null : { ...claimed, in: { ...known.in, [log]: claimedAt } };
      });
      this.#storage.reach?.('blob-claimed');
    }
    if (this.#storage.shared === null) return;
    // A deletion of an earlier log with the same ids, which was imported again, releases the claims of both.
    const { lives = [] } = ((await documents.get(`deleting.${conversation}`)) ?? {}) as { lives?: string[] };
    if (lives.includes(life)) throw logClosed(conversation);
    for (const sha256 of hashes)
      if ((await this.record(sha256))?.in[log] === undefined) throw logClosed(conversation);
  }

  /** Erases those of these files that no log may name but the lives that a deletion removes (BLOBS-4); null: all. Returns how many. */
  async release(
    conversation: string,
    lives: readonly string[] | null,
    hashes: Iterable<string>,
  ): Promise<number> {
    const isOver = (log: string) => {
      const [of, life = ''] = log.split('.');
      return of === conversation && (lives === null || lives.includes(life));
    };
    let erased = 0;
    for (const sha256 of hashes) if (await this.#drop(sha256, isOver, null)) erased += 1;
    return erased;
  }

  /** Each list is read before what refers to it is written: content, records. */
  async sweep(before: string, signal?: AbortSignal): Promise<number> {
    const { documents, blobs } = this.#storage;
    const contents = await blobs.list();
    const records = await documents.entries('blob.');
    const anHourAgo = new Date(Date.now() - APPEND_MS).toISOString();
    const claimedBefore = before > anHourAgo ? before : anHourAgo;
    const gone = new Map<string, boolean>();
    let erased = 0;
    for (const [sha256, stored] of records) {
      if (signal?.aborted) return erased;
      for (const log of Object.keys((stored as BlobRecord).in))
        if (!gone.has(log)) gone.set(log, !(await this.#isThere(log)));
      const isOver: IsOver = (log, claimedAt) => gone.get(log) === true && claimedAt < claimedBefore;
      if (await this.#drop(sha256, isOver, before)) erased += 1;
    }
    const used = new Set([...records.values()].map((stored) => (stored as BlobRecord).content));
    for (const name of contents) {
      if (signal?.aborted) return erased;
      if (used.has(name) || ((await blobs.storedAt(name)) ?? before) >= before) continue;
      await this.#order.run(name, async () => {
        const stored = (await documents.get(`blob.${name}`)) as BlobRecord | null; // of `<sha256>.tmp`: that of the blob
        if (stored?.content !== name) await blobs.remove(name);
      });
    }
    return erased;
  }

  /** A record that is lost is written again from the content of that name, if its storage names content by its hash. */
  async rebuild(logs: ReadonlyMap<string, NamedFiles>): Promise<void> {
    const { documents, blobs } = this.#storage;
    const named = new Set<string>();
    for (const [conversation, { first, files }] of logs) {
      if (first === null) continue;
      const stored: string[] = [];
      for (const { type: _, name: __, ...facts } of files) {
        const content = (await this.record(facts.sha256)) ? null : await blobs.read(facts.sha256);
        if (content !== null) await this.put(facts, () => content);
        if ((await this.record(facts.sha256)) === null) continue;
        stored.push(facts.sha256);
        named.add(`${conversation}.${lifeOf(first)} ${facts.sha256}`);
      }
      if (stored.length > 0) await this.claim(conversation, lifeOf(first), stored, false);
    }
    for (const sha256 of await documents.keys('blob.'))
      await documents.change(`blob.${sha256}`, (stored) => {
        const known = alive(stored);
        const isOver = (log: string) => logs.has(log.split('.')[0] ?? '') && !named.has(`${log} ${sha256}`);
        const left = without(known?.in ?? {}, isOver);
        return known && left.isLess ? { ...known, in: left.logs } : null;
      });
  }

  /**
   * Removes these logs from a record; true: no log may name the blob any more, and it was erased. One that was uploaded since the last
   * claim stays (BLOBS-5). `before`: erases one that no log may name, if it is older.
   */
  #drop(sha256: string, isOver: IsOver, before: string | null): Promise<boolean> {
    const { documents, blobs } = this.#storage;
    return this.#order.run(sha256, async () => {
      let content = null as string | null;
      await documents.change(`blob.${sha256}`, (stored) => {
        const known = stored as BlobRecord | null;
        content = known?.erasing ? known.content : null;
        if (known === null || known.erasing) return null;
        const { logs, isLess } = without(known.in, isOver);
        const isErased = (isLess && !known.unclaimed) || (before !== null && known.storedAt < before);
        if (Object.keys(logs).length > 0 || !isErased) return isLess ? { ...known, in: logs } : null;
        content = known.content;
        return { ...known, in: {}, erasing: true };
      });
      if (content === null) return false;
      const erasing = content;
      this.#storage.reach?.('blob-erasing');
      await blobs.remove(erasing);
      this.#storage.reach?.('blob-erased');
      await documents.removeIf(`blob.${sha256}`, (stored) => {
        const now = stored as BlobRecord;
        return now.erasing === true && now.content === erasing;
      });
      return true;
    });
  }

  /** A log of this life, or where logs are not shared, any log of that name. */
  async #isThere(log: string): Promise<boolean> {
    const { shared } = this.#storage;
    const [conversation = '', life] = log.split('.');
    if (shared === null) return this.#storage.hasLog(conversation);
    const { first } = await shared.extent(conversation);
    return first !== null && lifeOf(first) === life;
  }

  async #isWhole(sha256: string, known: BlobRecord): Promise<boolean> {
    const content = await this.#storage.blobs.read(known.content);
    if (content === null) return false;
    try {
      for await (const _ of verified({ sha256, size: known.size }, content, () => damaged(sha256)));
      return true;
    } catch (error) {
      if (hasCode(error, 'BLOB_DAMAGED')) return false;
      throw error;
    }
  }
}

function factsIn({
  storedAt: _,
  content: __,
  in: ___,
  unclaimed: ____,
  erasing: _____,
  ...facts
}: BlobRecord): Omit<BlobFacts, 'sha256'> {
  return facts;
}

function alive(stored: unknown): BlobRecord | null {
  const record = stored as BlobRecord | null;
  return record?.erasing ? null : record;
}

function without(claims: BlobRecord['in'], isOver: IsOver) {
  const left = Object.entries(claims).filter(([log, claimedAt]) => !isOver(log, claimedAt));
  return { logs: Object.fromEntries(left), isLess: left.length < Object.keys(claims).length };
}

/** The last piece comes only after the hash of all was compared. */
async function* verified(
  { sha256, size }: Pick<BlobFacts, 'sha256' | 'size'>,
  content: AsyncIterable<Uint8Array>,
  fault: () => ParleyError,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let bytes = 0;
  let last: Uint8Array | null = null;
  for await (const piece of content) {
    bytes += piece.length;
    if (bytes > size) throw fault();
    hash.update(piece);
    if (last !== null) yield last;
    last = piece;
  }
  if (bytes !== size || hash.digest('hex') !== sha256) throw fault();
  if (last !== null) yield last;
}

function wrongHash(sha256: string): ParleyError {
  return new ParleyError('BLOB_WRONG_HASH', `the content does not have the size and the SHA-256 ${sha256}`, {
    hint: 'nothing was stored; upload the file again',
  });
}

function damaged(sha256: string): ParleyError {
  return new ParleyError('BLOB_DAMAGED', `the stored file ${sha256} is damaged or its content is missing`, {
    hint: 'upload the same file again, which repairs it, or restore it from a backup',
  });
}
