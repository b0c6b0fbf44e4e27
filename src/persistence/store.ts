import { type Entry, filesIn } from '../conversation/index.ts';
import { InOrder, isRecord, type ParleyError, sleep } from '../kernel/index.ts';
import { lifeOf, StoredBlobs } from './blobs.ts';
import type {
  AppendOutcome,
  AuditRecord,
  AuditTrail,
  BackupFacts,
  BackupMark,
  Blobs,
  ConversationLog,
  ConversationRow,
  ConversationStore,
  DefinitionTexts,
  Deletion,
  IngressPosition,
  OpenedLog,
  PersonRecords,
  Removed,
  SharedLogs,
  ToolRecords,
  WorkStatus,
} from './port.ts';
import {
  byId,
  isBeyond,
  isCovered,
  logAlreadyOpen,
  logClosed,
  requireConversationId,
  requireOutputId,
  requireTextHash,
  storeClosed,
} from './rules.ts';
import { type AuditLog, coalesce, type Documents, type Storage } from './storage.ts';

/**
 * The records of every store, in the documents and audit logs of its storage.
 *
 * STORE-1 A conversation is open, or is being deleted, once at a time in this process. `open`, a deletion and `blobs.of`
 *         read a log, and nothing else does.
 * STORE-2 A tombstone is durable before the log of its conversation is touched. It never moves back in one ingress
 *         stream, unless the stream lost the post that it names. One of a stream that was created again removes those of
 *         earlier streams: their posts are gone.
 * STORE-3 Marks count only if the document `marks` is there: without it, conversations may lack their mark. A superfluous mark
 *         costs reading one log; a missing mark loses work. So a removal is not synced, and a later `markOpen` wins.
 * STORE-4 The ingress position may lag the logs, never lead them: it is saved at intervals, and after the logs are closed.
 * STORE-5 A deletion is noted in `deleting.<conversation>` after its tombstone and before anything else: which logs it removes, by
 *         their newest message or (`lives`) by their first entry. The next opening of the store or of the conversation, or a sweep,
 *         finishes it.
 */

export async function openStore(storage: Storage): Promise<ConversationStore> {
  const store = new Store(storage);
  await store.finishDeletions();
  return store;
}

interface DeletionNote {
  readonly log: number;
  readonly lives: readonly string[];
}

/** `openStore` also finishes interrupted deletions. */
export class Store implements ConversationStore {
  readonly id: string;
  readonly isFeed: boolean;
  readonly toolRecords: ToolRecords;
  readonly definitions: DefinitionTexts;
  readonly people: PersonRecords;
  readonly backupMark: BackupMark;
  readonly blobs: Blobs;
  readonly shared: SharedLogs | null;
  readonly #storage: Storage;
  readonly #documents: Documents;
  readonly #blobs: StoredBlobs;
  readonly #position: ReturnType<typeof latestPosition>;
  readonly #open = new Map<string, Promise<OpenedLog & { readonly log: ClaimingLog }>>();
  readonly #deleting = new Map<string, Promise<Removed>>();
  /** Conversations whose newest request was to mark them (STORE-3). */
  readonly #marked = new Set<string>();
  readonly #markOrder = new InOrder();
  /** The ingress stream whose tombstones alone are left (STORE-2). */
  #buriedIn: string | null = null;
  #closing: Promise<void> | null = null;

  constructor(storage: Storage) {
    const { documents } = storage;
    this.#storage = storage;
    this.#documents = documents;
    this.id = storage.id;
    this.isFeed = storage.isFeed;
    this.toolRecords = toolRecordsIn(documents, storage.audit);
    this.definitions = definitionsIn(documents);
    this.people = {
      get: (person) => documents.get(personKey(person)),
      change: (person, next) => documents.change(personKey(person), next),
    };
    this.backupMark = {
      get: () => readBackup(documents),
      put: (facts) => documents.put('backup', facts, 'durable'),
      remove: () => documents.remove('backup'),
    };
    this.#blobs = new StoredBlobs(storage);
    this.blobs = this.#admittedBlobs();
    this.shared = storage.shared && {
      ...storage.shared,
      async forgetRow(conversation) {
        for (const kind of ['row', 'state']) await documents.remove(`${kind}.${conversation}`);
      },
    };
    this.#position = latestPosition(documents);
  }

  fault(): ParleyError | null {
    return this.#storage.fault?.() ?? null;
  }

  /** Waits for a deletion of the same conversation (STORE-1), and finishes one that a crash interrupted (STORE-5). */
  async open(conversation: string): Promise<OpenedLog> {
    this.#admit(conversation);
    do {
      await this.#deleting.get(conversation);
      const noted = await this.#documents.get(`deleting.${conversation}`);
      if (noted !== null) await this.#finishDeletion(conversation);
    } while (this.#deleting.has(conversation));
    this.#admit(conversation);
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    const forget = () => void this.#open.delete(conversation);
    const opening = this.#storage
      .openLog(conversation, forget)
      .then((opened) => ({ ...opened, log: new ClaimingLog(this.#blobs, opened) }));
    this.#open.set(conversation, opening);
    try {
      return await opening;
    } catch (error) {
      forget();
      throw error;
    }
  }

  async exists(conversation: string): Promise<boolean> {
    this.#admit(conversation);
    return this.#storage.hasLog(conversation);
  }

  /** A call during a deletion of the same conversation shares its result. */
  async delete(conversation: string, upTo: IngressPosition | null = null, newest?: number): Promise<Removed> {
    this.#admit(conversation);
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    const underWay = this.#deleting.get(conversation);
    if (underWay !== undefined) return underWay;
    return this.#exclusively(conversation, () => this.#delete(conversation, upTo, newest));
  }

  #exclusively(conversation: string, work: () => Promise<Removed>): Promise<Removed> {
    const deleting = work().finally(() => this.#deleting.delete(conversation));
    this.#deleting.set(conversation, deleting);
    return deleting;
  }

  async #delete(conversation: string, upTo: IngressPosition | null, newest?: number): Promise<Removed> {
    if (upTo !== null) await this.#bury(conversation, upTo);
    this.#marked.delete(conversation);
    const { shared } = this.#storage;
    const { last = 0, first = null } = (await shared?.extent(conversation)) ?? {};
    const log = newest ?? last;
    const lives = first !== null && first.sequence <= log ? [lifeOf(first)] : [];
    let note: DeletionNote = { log, lives };
    await this.#documents.change(`deleting.${conversation}`, (stored) => {
      const known = noteIn(stored);
      note = { log: Math.max(log, known.log), lives: [...new Set([...known.lives, ...lives])] };
      return note;
    });
    this.#storage.reach?.('deletion-noted');
    return this.#finish(conversation, note);
  }

  /** STORE-5. Idempotent. Where logs are shared, an append may precede the note: the log is read after it. */
  async #finish(conversation: string, note: DeletionNote): Promise<Removed> {
    await forgetRead(this.#documents, conversation);
    const named = await this.#filesOf(conversation);
    const lives = this.#storage.shared && note.lives;
    const files = await this.#blobs.release(conversation, lives, named.keys());
    const removed = await this.#storage.remove(conversation, note.log);
    this.#storage.reach?.('log-removed');
    await this.#documents.removeIf(
      `deleting.${conversation}`,
      (stored) => JSON.stringify(noteIn(stored)) === JSON.stringify(note),
    );
    return { ...removed, files };
  }

  /** From the log. Of one that cannot be read: none, and a sweep erases them when it is gone. */
  async #filesOf(conversation: string): Promise<ReturnType<typeof filesIn>> {
    const open = await this.#open.get(conversation);
    if (open) return open.log.files;
    const opened = (await this.#storage.hasLog(conversation))
      ? await this.#storage.openLog(conversation, () => undefined).catch(() => null)
      : null;
    await opened?.log.close();
    return filesIn(opened?.entries ?? []);
  }

  /** One that is open is left for later. */
  async finishDeletions(signal?: AbortSignal): Promise<void> {
    for (const conversation of await this.#documents.keys('deleting.'))
      if (!signal?.aborted && !this.#open.has(conversation)) await this.#finishDeletion(conversation);
  }

  async #finishDeletion(conversation: string): Promise<void> {
    const underWay = this.#deleting.get(conversation);
    await (underWay ??
      this.#exclusively(conversation, async () => {
        const stored = await this.#documents.get(`deleting.${conversation}`);
        if (stored !== null) return this.#finish(conversation, noteIn(stored));
        return NOTHING; // another daemon has finished it
      }));
  }

  #admittedBlobs(): Blobs {
    const blobs = this.#blobs;
    const admitted =
      <A extends unknown[], T>(work: (...args: A) => Promise<T>) =>
      async (...args: A): Promise<T> => {
        this.#admit();
        return work(...args);
      };
    return {
      put: admitted((facts, content) => blobs.put(facts, content)),
      facts: admitted((sha256) => blobs.facts(sha256)),
      read: admitted((sha256, from) => blobs.read(sha256, from)),
      of: admitted(async (conversation) => {
        requireConversationId(conversation);
        return [...(await this.#filesOf(conversation)).values()].map(
          ([, { type: _, name: __, ...facts }]) => facts,
        );
      }),
      isIn: admitted((conversation, sha256) => blobs.isIn(conversation, sha256)),
      sweep: admitted(async (before, signal) => {
        await this.finishDeletions(signal);
        return blobs.sweep(before, signal);
      }),
      rebuild: admitted((logs) => blobs.rebuild(logs)),
    };
  }

  async #bury(conversation: string, { stream, sequence }: IngressPosition): Promise<void> {
    const upTo = { stream, sequence };
    if (this.#buriedIn !== stream) {
      for (const [id, position] of await this.#documents.entries('deleted.'))
        if ((position as IngressPosition).stream !== stream)
          await this.#documents.remove(`deleted.${id}`, 'derived');
      this.#buriedIn = stream;
    }
    await this.#documents.change(`deleted.${conversation}`, (known) =>
      isCovered(upTo, known as IngressPosition | null) ? null : upTo,
    );
  }

  async deletedUpTo(conversation: string): Promise<IngressPosition | null> {
    this.#admit(conversation);
    return (await this.#documents.get(`deleted.${conversation}`)) as IngressPosition | null;
  }

  async cutDeletions(end: () => Promise<IngressPosition>): Promise<void> {
    this.#admit();
    const known = (await this.#documents.entries('deleted.')) as ReadonlyMap<string, IngressPosition>;
    const last = await end();
    for (const [id, position] of known) {
      if (!isBeyond(position, last)) continue;
      await this.#documents.change(`deleted.${id}`, (stored) => {
        const now = stored as IngressPosition | null;
        return now?.stream === position.stream && now.sequence === position.sequence ? last : null;
      });
    }
  }

  async deletions(): Promise<Deletion[]> {
    this.#admit();
    return deletionsIn(this.#documents);
  }

  async markOpen(conversation: string): Promise<void> {
    this.#admit(conversation);
    this.#marked.add(conversation);
    await this.#markOrder.run(conversation, () =>
      this.#documents.put(`open.${conversation}`, true, 'durable'),
    );
  }

  async clearOpen(conversation: string): Promise<void> {
    this.#admit(conversation);
    this.#marked.delete(conversation);
    await this.#documents.flush('row');
    await this.#markOrder.run(conversation, async () => {
      if (!this.#marked.has(conversation)) await this.#documents.remove(`open.${conversation}`, 'derived');
    });
  }

  async openMarks(): Promise<string[] | null> {
    this.#admit();
    if ((await this.#documents.get('marks')) === null) return null;
    return this.#documents.keys('open.');
  }

  async initialiseMarks(): Promise<void> {
    this.#admit();
    await this.#documents.put('marks', true, 'durable');
  }

  async conversations(): Promise<string[]> {
    this.#admit();
    return (await this.#storage.conversations()).sort();
  }

  async rows(): Promise<ConversationRow[]> {
    this.#admit();
    const rows = (await this.#documents.entries('row.')) as ReadonlyMap<string, ConversationRow>;
    return [...rows.values()].sort(byId);
  }

  async saveRow(row: ConversationRow): Promise<void> {
    this.#admit(row.id);
    await this.#documents.put(`row.${row.id}`, { ...row }, 'derived');
  }

  async saveState(conversation: string, state: Readonly<Record<string, unknown>>): Promise<void> {
    this.#admit(conversation);
    await this.#documents.put(`state.${conversation}`, state, 'derived');
  }

  async ingressPosition(): Promise<IngressPosition | null> {
    this.#admit();
    return this.#position.get();
  }

  async saveIngressPosition(position: IngressPosition): Promise<void> {
    this.#admit();
    await this.#position.set(position);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Reports no failure of a log: its callers get those. */
  async #close(): Promise<void> {
    try {
      const opened = await Promise.allSettled(this.#open.values());
      const logs = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value.log] : []));
      await Promise.allSettled(logs.map((log) => log.close()));
      await Promise.allSettled(this.#deleting.values());
      await this.#position.close();
    } finally {
      await this.#storage.close();
    }
  }

  /** Throws when the store is closed, and for what is not a conversation id. */
  #admit(conversation?: string): void {
    if (this.#closing !== null) throw storeClosed();
    if (conversation !== undefined) requireConversationId(conversation);
  }
}

const NOTHING: Removed = { records: 0, outputs: 0, files: 0 };

export function noteIn(stored: unknown): DeletionNote {
  const { log = 0, lives = [] } = (stored ?? {}) as Partial<DeletionNote>;
  return { log, lives };
}

/** Posts settle more often than this. */
const SAVE_INTERVAL_MS = 200;

/** How far the ingress stream was read (STORE-4). The first position in a stream is durable at once. */
function latestPosition(documents: Documents) {
  const closing = new AbortController();
  let newest: IngressPosition | null = null;
  let saved: IngressPosition | null = null;
  let saving: Promise<void> = Promise.resolve();
  const save = coalesce(async () => {
    await sleep(SAVE_INTERVAL_MS, closing.signal);
    const position = newest;
    if (position === saved) return;
    await documents.put('ingress', position, 'derived');
    saved = position;
  });
  return {
    get: async () => newest ?? ((await documents.get('ingress')) as IngressPosition | null),
    async set({ stream, sequence }: IngressPosition): Promise<void> {
      const position = { stream, sequence };
      const isOfNewStream = newest?.stream !== stream;
      newest = position;
      saving = save();
      if (!isOfNewStream) return;
      const isNew = (known: unknown) => (known as IngressPosition | null)?.stream !== stream;
      await documents.change('ingress', (known) => (isNew(known) ? position : null)); // another daemon may be further
    },
    async close(): Promise<void> {
      closing.abort();
      await saving;
    },
  };
}

function toolRecordsIn(documents: Documents, audit: AuditLog): ToolRecords {
  return {
    async append(conversation, records) {
      requireConversationId(conversation);
      await audit.append(conversation, records);
    },
    async read(conversation) {
      requireConversationId(conversation);
      return auditTrailOf(await audit.read(conversation));
    },
    async saveOutput(conversation, entryId, content) {
      await documents.put(outputKey(conversation, entryId), content, 'durable');
    },
    async readOutput(conversation, entryId) {
      return (await documents.get(outputKey(conversation, entryId))) as string | null;
    },
  };
}

function personKey(person: string): string {
  requireTextHash(person);
  return `person.${person}`;
}

async function forgetRead(documents: Documents, conversation: string): Promise<void> {
  for (const person of await documents.keys('person.'))
    await documents.change(`person.${person}`, (stored) => {
      if (!isRecord(stored) || !isRecord(stored.lengths)) return null;
      if (!Object.hasOwn(stored.lengths, conversation)) return null;
      const { [conversation]: _, ...lengths } = stored.lengths;
      return { ...stored, lengths };
    });
}

export function outputKey(conversation: string, entryId: string): string {
  requireConversationId(conversation);
  requireOutputId(entryId);
  return `output.${conversation}.${entryId}`;
}

export function auditTrailOf(texts: readonly string[]): AuditTrail {
  const records: AuditRecord[] = [];
  const unreadable: number[] = [];
  for (const [at, text] of texts.entries()) {
    if (text === '') continue;
    const record = parseRecord(text);
    if (record !== null) records.push(record);
    else unreadable.push(at + 1);
  }
  return { records, unreadable };
}

/** Null: not a record; incomplete after a crash, or of another program. */
function parseRecord(text: string): AuditRecord | null {
  try {
    const value = (JSON.parse(text) ?? {}) as { readonly type?: unknown; readonly call?: unknown };
    const { entry, position } = (value.call ?? {}) as Partial<Record<'entry' | 'position', unknown>>;
    const isRecord =
      typeof value.type === 'string' && typeof entry === 'number' && typeof position === 'number';
    return isRecord ? (value as AuditRecord) : null;
  } catch {
    return null;
  }
}

/** A text that is stored is not written again; a damaged one is replaced. */
function definitionsIn(documents: Documents): DefinitionTexts {
  return {
    async put(texts) {
      for (const hash of texts.keys()) requireTextHash(hash);
      const put = (hash: string, text: string) =>
        documents.change(`definition.${hash}`, (known) => (known === text ? null : text));
      await Promise.all([...texts].map(([hash, text]) => put(hash, text)));
    },
    async get(hash) {
      requireTextHash(hash);
      return (await documents.get(`definition.${hash}`)) as string | null;
    },
  };
}

/** Each position is read by itself: `entries` may lag, and a migration compares what it has just written. */
export async function deletionsIn(documents: Pick<Documents, 'get' | 'keys'>): Promise<Deletion[]> {
  const found: Deletion[] = [];
  for (const conversation of await documents.keys('deleted.')) {
    const position = (await documents.get(`deleted.${conversation}`)) as IngressPosition | null;
    if (position !== null) found.push({ conversation, ...position });
  }
  return found;
}

/** Damaged content counts as a mark. */
export async function readBackup(documents: Pick<Documents, 'get'>): Promise<BackupFacts | null> {
  const stored = await documents.get('backup');
  if (stored === null) return null;
  const { from = 'an unknown store', madeAt = 'an unknown time' } = Object(stored) as Partial<BackupFacts>;
  return { from: String(from), madeAt: String(madeAt) };
}

/** An open log that claims files before entries name them (BLOBS-2). Appends keep their order; those after a refused one fail too. */
class ClaimingLog implements ConversationLog {
  /** What its entries name, by hash. */
  readonly files: ReturnType<typeof filesIn>;
  readonly #log: ConversationLog;
  readonly #blobs: StoredBlobs;
  #life: string | null;
  /** Entries whose append waits for a claim. */
  #waiting = 0;
  #claiming: Promise<void> | null = null;
  #closing: Promise<void> | null = null;

  constructor(blobs: StoredBlobs, { log, entries }: OpenedLog) {
    this.#log = log;
    this.#blobs = blobs;
    this.files = filesIn(entries);
    this.#life = entries[0] ? lifeOf(entries[0]) : null;
  }

  get conversation(): string {
    return this.#log.conversation;
  }

  get length(): number {
    return this.#log.length + this.#waiting;
  }

  get newestSequence(): number {
    return this.#log.newestSequence ?? 0;
  }

  async append(expected: number, entries: readonly Entry[], status?: WorkStatus): Promise<AppendOutcome> {
    const files = filesIn(entries);
    const [first] = entries;
    if (expected === 0 && this.length === 0 && first) this.#life = lifeOf(first);
    const isRefused = expected !== this.length || this.#closing !== null;
    if (this.#claiming === null && (files.size === 0 || isRefused))
      return this.#log.append(expected, entries, status);
    if (this.#closing !== null) throw logClosed(this.conversation);
    this.#waiting += entries.length;
    const claiming = (this.#claiming ?? Promise.resolve()).then(() => this.#claim(files, expected === 0));
    this.#claiming = claiming;
    try {
      await claiming;
    } finally {
      this.#waiting -= entries.length;
      if (this.#claiming === claiming) this.#claiming = null;
    }
    return this.#log.append(expected, entries, status);
  }

  read(from: number, to?: number): Promise<Entry[]> {
    return this.#log.read(from, to);
  }

  close(): Promise<void> {
    this.#closing ??= (this.#claiming ?? Promise.resolve())
      .catch(() => undefined) // its caller gets the error
      .then(() => this.#log.close());
    return this.#closing;
  }

  async #claim(files: ReturnType<typeof filesIn>, isBeginning: boolean): Promise<void> {
    if (files.size === 0 || this.#life === null) return;
    await this.#blobs.claim(this.conversation, this.#life, [...files.keys()], isBeginning);
    for (const [sha256, named] of files) this.files.set(sha256, named);
  }
}
