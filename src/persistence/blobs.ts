import { createHash } from 'node:crypto';
import type { Entry, FilePart } from '../conversation/index.ts';
import { ParleyError } from '../kernel/index.ts';
import type { BlobFacts, Blobs, NamedFiles } from './port.ts';
import { logClosed, requireBlobHash } from './rules.ts';
import { InOrder, type Storage, type StoredContent } from './storage.ts';

/**
 * Which blobs are stored, and which logs may name them, in the documents of a store.
 *
 * BLOBS-1 `blob.<sha256>` is written after the content is durable, and changed by compare-and-set. Its `in` lists the logs that
 *         may name the blob, each as `<conversation>.<life>`: a life is the log that begins with one first entry.
 * BLOBS-2 A log claims its files before an entry names them: first in `files.<conversation>`, by life, then in the record of each
 *         blob. So the records list at least what the logs name, and a deletion finds what to release.
 * BLOBS-3 A blob that no log may name any more is marked `erasing`, and from then on no log can claim it. Then its content is
 *         removed, then its record. Whoever finds the mark can finish. Where logs are shared, each stored content has a name
 *         of its own, so that this never removes what another daemon has just stored again.
 * BLOBS-4 A deletion releases the lives that it removed: a log that begins meanwhile under the same name keeps its files.
 * BLOBS-5 The claim of a log that has not begun may be that of an append under way, so a sweep releases it an hour later.
 *         Content without a record and blobs that were never claimed are older: a person may still be writing the message.
 */
type BlobRecord = Omit<BlobFacts, 'sha256'> & {
  /** ISO 8601: of the newest upload. */
  readonly storedAt: string;
  /** The name of the content in the storage. */
  readonly content: string;
  readonly in: readonly string[];
  readonly erasing?: true;
};

interface Claims {
  /** ISO 8601: of the newest claim. */
  readonly at: string;
  /** By hash; with the facts, so that one reading tells those of a conversation with many files. */
  readonly files: Readonly<Record<string, Omit<BlobFacts, 'sha256'>>>;
  /** Its log is gone, and its blobs are being released. */
  readonly released?: true;
}
/** By life. */
type Lives = Readonly<Record<string, Claims>>;

/** No append takes longer: the server of a shared log would be away for that time. */
const APPEND_MS = 3_600_000;

/** The life of the log that begins with this entry. */
export function lifeOf(first: Pick<Entry, 'id'>): string {
  return createHash('sha256').update(first.id).digest('hex').slice(0, 16);
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

  async read(sha256: string): Promise<AsyncIterable<Uint8Array> | null> {
    requireBlobHash(sha256);
    const known = await this.record(sha256);
    if (known === null) return null;
    const content = await this.#content.blobs.read(known.content);
    if (content !== null) return verified({ sha256, size: known.size }, content, () => damaged(sha256));
    if ((await this.record(sha256))?.content === known.content) throw damaged(sha256);
    return null; // it was erased meanwhile
  }

  /** BLOBS-2 */
  async isClaimed(sha256: string, conversation: string, first: Pick<Entry, 'id'>): Promise<boolean> {
    const life = lifeOf(first);
    const known = await this.record(sha256);
    const claims = (await this.lives(conversation))[life];
    return known?.in.includes(`${conversation}.${life}`) === true && claims?.files[sha256] !== undefined;
  }

  async record(sha256: string): Promise<BlobRecord | null> {
    return alive(await this.#content.documents.get(`blob.${sha256}`));
  }

  async lives(conversation: string): Promise<Lives> {
    return livesIn(await this.#content.documents.get(`files.${conversation}`));
  }
}

export class StoredBlobs extends BlobReader implements Blobs {
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
    this.#reach('blob-stored');
    let isDone = true as boolean;
    let replaced = null as string | null;
    await documents.change(`blob.${sha256}`, (stored) => {
      const now = alive(stored);
      const storedAt = new Date().toISOString();
      isDone = !isStored || now?.content === name;
      replaced = (stored as BlobRecord | null)?.content ?? null;
      return isDone ? { ...(now ?? { ...facts, in: [] }), content: name, storedAt } : null;
    });
    if (isDone && replaced !== null && replaced !== name) await blobs.remove(replaced);
    return isDone;
  }

  async of(conversation: string): Promise<readonly BlobFacts[]> {
    const lives = await this.lives(conversation);
    const current = await this.#current(conversation, lives);
    const files = Object.assign({}, ...current.map((life) => lives[life]?.files)) as Claims['files'];
    return Object.entries(files).map(([sha256, facts]) => ({ sha256, ...facts }));
  }

  /** Before the append of an entry that names these files (BLOBS-2). */
  async claim(
    conversation: string,
    life: string,
    files: readonly FilePart[],
    isBeginning: boolean,
  ): Promise<void> {
    const { documents } = this.#storage;
    const claimed = new Map<string, Omit<BlobFacts, 'sha256'>>();
    for (const { sha256 } of files) {
      const known = await this.record(sha256);
      if (known === null) throw missing(sha256);
      claimed.set(sha256, factsIn(known));
    }
    await documents.change(`files.${conversation}`, (stored) => {
      const lives = livesIn(stored);
      const known = lives[life];
      if (known?.released) throw logClosed(conversation);
      const isKnown = [...claimed.keys()].every((sha256) => known?.files[sha256] !== undefined);
      if (isKnown && !isBeginning) return null;
      const claims = {
        at: new Date().toISOString(),
        files: { ...known?.files, ...Object.fromEntries(claimed) },
      };
      return { ...lives, [life]: claims };
    });
    const holder = `${conversation}.${life}`;
    for (const sha256 of claimed.keys()) {
      await documents.change(`blob.${sha256}`, (stored) => {
        const known = alive(stored);
        if (known === null) throw missing(sha256);
        return known.in.includes(holder) ? null : { ...known, in: [...known.in, holder] };
      });
      this.#reach('blob-claimed', conversation);
    }
    if (isBeginning && (await this.#isBeingDeleted(conversation, life))) throw logClosed(conversation);
  }

  /** A deleted log is imported again, with its ids: a deletion of the earlier one releases the claims of both (BLOBS-4). */
  async #isBeingDeleted(conversation: string, life: string): Promise<boolean> {
    const noted = await this.#storage.documents.get(`deleting.${conversation}`);
    const { lives = [] } = (noted ?? {}) as { readonly lives?: readonly string[] };
    const claims = (await this.lives(conversation))[life];
    return lives.includes(life) || claims === undefined || claims.released === true;
  }

  /** The lives whose claims a deletion of the log up to `newest` releases (BLOBS-4). */
  async livesUpTo(conversation: string, newest: number): Promise<string[]> {
    const { shared } = this.#storage;
    if (shared === null) return Object.keys(await this.lives(conversation));
    const { first } = await shared.extent(conversation);
    return first !== null && first.sequence <= newest ? [lifeOf(first)] : [];
  }

  /** After the log of this life is gone. `before`: only if its newest claim is older. */
  async release(conversation: string, life: string, before: string | null = null): Promise<number> {
    const { documents } = this.#storage;
    const key = `files.${conversation}`;
    let files: string[] = [];
    await documents.change(key, (stored) => {
      const lives = livesIn(stored);
      const known = lives[life];
      const isDue = known !== undefined && (known.released || before === null || known.at < before);
      files = isDue ? Object.keys(known.files) : [];
      return isDue && !known.released ? { ...lives, [life]: { ...known, released: true } } : null;
    });
    let erased = 0;
    const isDead = (holder: string) => holder === `${conversation}.${life}`;
    for (const sha256 of files) if (await this.#drop(sha256, isDead, null)) erased += 1;
    await documents.change(key, (stored) => {
      const { [life]: released, ...others } = livesIn(stored);
      return released?.released ? others : null;
    });
    await documents.removeIf(key, (stored) => Object.keys(livesIn(stored)).length === 0);
    return erased;
  }

  /** Each list is read before what refers to it is written: content, records, claims. */
  async sweep(before: string): Promise<number> {
    const { documents, blobs } = this.#storage;
    const contents = await blobs.list();
    const records = await documents.entries('blob.');
    const claims = await documents.entries('files.');
    const anHourAgo = new Date(Date.now() - APPEND_MS).toISOString();
    const begunBefore = before > anHourAgo ? before : anHourAgo;
    let erased = 0;
    for (const [conversation, stored] of claims) {
      const lives = livesIn(stored);
      const current = await this.#current(conversation, lives);
      for (const [life, { released }] of Object.entries(lives)) {
        if (released) erased += await this.release(conversation, life);
        else if (!current.includes(life)) erased += await this.release(conversation, life, begunBefore);
      }
    }
    for (const [sha256, stored] of records) {
      const dead = new Set<string>();
      for (const holder of (stored as BlobRecord).in)
        if (!(await this.#isHeld(holder, claims))) dead.add(holder);
      if (await this.#drop(sha256, (holder) => dead.has(holder), before)) erased += 1;
    }
    const used = new Set([...records.values()].map((stored) => (stored as BlobRecord).content));
    for (const name of contents) {
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
      const stored: FilePart[] = [];
      for (const { type: _, name: __, ...facts } of files) {
        const content = (await this.record(facts.sha256)) ? null : await blobs.read(facts.sha256);
        if (content !== null) await this.put(facts, () => content);
        if ((await this.record(facts.sha256)) === null) continue;
        stored.push({ type: 'file', ...facts });
        named.add(`${conversation}.${lifeOf(first)} ${facts.sha256}`);
      }
      if (stored.length > 0) await this.claim(conversation, lifeOf(first), stored, false);
    }
    const isNamed = (holder: string, sha256: string) =>
      !logs.has(holder.split('.')[0] ?? '') || named.has(`${holder} ${sha256}`);
    for (const sha256 of await documents.keys('blob.'))
      await documents.change(`blob.${sha256}`, (stored) => {
        const known = alive(stored);
        const left = known?.in.filter((holder) => isNamed(holder, sha256)) ?? [];
        return known && left.length < known.in.length ? { ...known, in: left } : null;
      });
  }

  /** `known`: may lag. */
  async #isHeld(holder: string, known: ReadonlyMap<string, unknown>): Promise<boolean> {
    const [conversation = '', life = ''] = holder.split('.');
    if (livesIn(known.get(conversation))[life] !== undefined) return true;
    return (await this.lives(conversation))[life] !== undefined;
  }

  /**
   * Removes these logs from a record; true: no log may name the blob any more, and it was erased. `before`: erases one that none
   * ever claimed, if it is older.
   */
  #drop(sha256: string, isDead: (holder: string) => boolean, before: string | null): Promise<boolean> {
    const { documents, blobs } = this.#storage;
    return this.#order.run(sha256, async () => {
      let content = null as string | null;
      await documents.change(`blob.${sha256}`, (stored) => {
        const known = stored as BlobRecord | null;
        content = known?.erasing ? known.content : null;
        if (known === null || known.erasing) return null;
        const left = known.in.filter((holder) => !isDead(holder));
        const isDropped = left.length < known.in.length;
        const isUnclaimed = !isDropped && before !== null && known.storedAt < before;
        if (left.length > 0 || !(isDropped || isUnclaimed)) return isDropped ? { ...known, in: left } : null;
        content = known.content;
        return { ...known, in: [], erasing: true };
      });
      if (content === null) return false;
      const erasing = content;
      this.#reach('blob-erasing');
      await blobs.remove(erasing);
      this.#reach('blob-erased');
      await documents.removeIf(`blob.${sha256}`, (stored) => {
        const now = stored as BlobRecord;
        return now.erasing === true && now.content === erasing;
      });
      return true;
    });
  }

  /** The lives that are not over: where logs are shared, that of the log that is there now. */
  async #current(conversation: string, lives: Lives): Promise<string[]> {
    const { shared } = this.#storage;
    if (shared === null) return (await this.#storage.hasLog(conversation)) ? Object.keys(lives) : [];
    const { first } = await shared.extent(conversation);
    return first === null ? [] : [lifeOf(first)];
  }

  async #isWhole(sha256: string, known: BlobRecord): Promise<boolean> {
    const content = await this.#storage.blobs.read(known.content);
    if (content === null) return false;
    try {
      for await (const _ of verified({ sha256, size: known.size }, content, () => damaged(sha256)));
      return true;
    } catch (error) {
      if (error instanceof ParleyError && error.code === 'BLOB_DAMAGED') return false;
      throw error;
    }
  }

  #reach(point: Parameters<NonNullable<Storage['reach']>>[0], conversation?: string): void {
    this.#storage.reach?.(point, conversation);
  }
}

function factsIn({
  storedAt: _,
  content: __,
  in: ___,
  erasing: ____,
  ...facts
}: BlobRecord): Omit<BlobFacts, 'sha256'> {
  return facts;
}

function alive(stored: unknown): BlobRecord | null {
  const record = stored as BlobRecord | null;
  return record?.erasing ? null : record;
}

function livesIn(stored: unknown): Lives {
  return (stored ?? {}) as Lives;
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

function missing(sha256: string): ParleyError {
  return new ParleyError('MISSING_BLOB', `the file ${sha256} is not stored, so nothing was appended`, {
    hint: 'upload it, then post the message again',
  });
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
