import { headers, nuid } from 'nats';
import type { Entry } from '../../conversation/index.ts';
import { findStream, ParleyError } from '../../kernel/index.ts';
import { archiveOf, migrationTarget, refuseUnfinishedMigration } from '../archive.ts';
import type {
  ConversationStore,
  MigrationSource,
  MigrationTarget,
  NewestAppend,
  Removed,
  StoreArchive,
} from '../port.ts';
import { requireConversationId } from '../rules.ts';
import { type BlobContents, bytesFrom, type ReachStorePoint, type Storage } from '../storage.ts';
import { noteIn, openStore as openWith } from '../store.ts';
import {
  type Broker,
  type BrokerOptions,
  maxBody,
  openBroker,
  publish,
  requireStored,
  storeError,
} from './broker.ts';
import { BucketDocuments, createStreamAudit } from './documents.ts';
import {
  firstAfter,
  lastMessage,
  purgeSubject,
  readRange,
  type StoredMessage,
  subjectsOf,
} from './reader.ts';
import {
  appendOf,
  beginsLog,
  conversationsIn,
  decodeBody,
  follow,
  type LogSource,
  openStreamLog,
  Placement,
  statusOf,
} from './stream-log.ts';
import { ANY, ensureStoreStreams, idOf, type StoreNames } from './streams.ts';

/**
 * The store on a JetStream server: each log is one subject of a stream, and nothing is kept on this machine.
 *
 * STREAM-STORE-1 The server decides between writers (L3). There is no lock, so a store never waits for a dead one.
 * STREAM-STORE-2 A deletion removes the log as it is when the deletion begins, never a log that begins later under the same name, nor
 *                its records and outputs, however late the deletion continues.
 */

export type StoreEvent =
  /** A message on the subject of a log is not an append; it is ignored. */
  | { readonly type: 'foreign-message'; readonly conversation: string; readonly sequence: number }
  /** A projection could not be saved; it lags until the next save. */
  | { readonly type: 'projection-not-saved'; readonly name: string; readonly reason: string };

/** The connection is used by this store alone; the caller closes it after the store. */
export interface JetStreamStoreOptions extends BrokerOptions {
  readonly names: StoreNames;
  readonly log?: (event: StoreEvent) => void;
  /** Steps after which tests end the process. */
  readonly reach?: ReachStorePoint | undefined;
  /** True for a migration; other callers are refused while one is unfinished. */
  readonly isMigrating?: boolean;
}

export async function openJetStreamStore(options: JetStreamStoreOptions): Promise<ConversationStore> {
  return (await openStore(options)).store;
}

interface StreamParts {
  readonly broker: Broker;
  readonly names: StoreNames;
  readonly documents: BucketDocuments;
}

async function openStore(
  options: JetStreamStoreOptions,
): Promise<StreamParts & { readonly store: ConversationStore }> {
  const { names, log = () => undefined, isMigrating } = options;
  const broker = await openBroker(options);
  const id = await ensureStoreStreams(broker.manager, names);
  const report = (name: string, reason: string) => log({ type: 'projection-not-saved', name, reason });
  const documents = await BucketDocuments.open(broker, names, { mayCreate: true, report });
  if (!isMigrating) await refuseUnfinishedMigration(`stream ${names.logStream}`, documents);
  const parts = { broker, names, documents };
  const reportedForeign = new Set<string>();
  const sourceOf = (conversation: string): LogSource => ({
    broker,
    conversation,
    stream: names.logStream,
    subject: names.log(conversation),
    onForeign(sequence) {
      if (reportedForeign.has(conversation)) return;
      reportedForeign.add(conversation);
      log({ type: 'foreign-message', conversation, sequence });
    },
  });
  const shared = newestAppends(broker, names);
  const storage: Storage = {
    id,
    documents,
    isFeed: true,
    shared,
    audit: createStreamAudit(broker, names, documents),
    blobs: createStreamBlobs(broker, names),
    reach: options.reach,
    fault: () => broker.answers.fault,
    openLog: (conversation, onClosed) => openStreamLog(sourceOf(conversation), onClosed),
    hasLog: async (conversation) => (await shared.newest(conversation)) !== null,
    conversations: () => conversationsIn(broker, names),
    remove: (conversation, newest) => remove(parts, conversation, newest),
    close: () => documents.idle(),
  };
  return { store: await openWith(storage), ...parts };
}

/**
 * `log`: the sequence of its last append. Records and outputs are removed as they were before it was seen that no log has begun: one
 * that begins later is not affected (STREAM-STORE-2). Its opening has finished this deletion (STORE-5).
 */
async function remove(
  { broker, names, documents }: StreamParts,
  conversation: string,
  log: number,
): Promise<Omit<Removed, 'files'>> {
  const [stream, subject] = [names.logStream, names.log(conversation)];
  for (let upTo = log; upTo > 0; ) {
    await purgeSubject(broker, stream, subject, upTo);
    const first = await firstAfter(broker, stream, subject, upTo);
    if (first === null || beginsLog(first)) break;
    upTo = first.sequence; // appended to the old log during its removal
  }
  const audit = names.audit(conversation);
  const newest = await lastMessage(broker, names.auditStream, audit);
  const [output, record] = [`output.${conversation}.`, `record.${conversation}.`];
  const [outputs, large] = [await documents.keys(output), await documents.keys(record)];
  if ((await extentOf(broker, names, conversation)).first !== null) return { records: 0, outputs: 0 };
  const records = newest && (await purgeSubject(broker, names.auditStream, audit, newest.sequence));
  await documents.removeAll(output, outputs);
  await documents.removeAll(record, large);
  for (const kind of ['row', 'state', 'open']) await documents.remove(`${kind}.${conversation}`);
  return { records: records ?? 0, outputs: outputs.length };
}

async function extentOf(broker: Broker, { logStream: stream, log }: StoreNames, conversation: string) {
  const subject = log(conversation);
  const last = (await lastMessage(broker, stream, subject))?.sequence ?? 0;
  for (let after = 0; ; ) {
    const found = await firstAfter(broker, stream, subject, after);
    if (found === null) return { last, first: null };
    const { headers, body, sequence } = found;
    const append = appendOf(headers);
    const [entry] = (append && decodeBody(body, 0, append.length)) ?? [];
    if (append !== null) return { last, first: entry ? { id: entry.id, sequence } : null };
    after = sequence;
  }
}

/** Owners and outstanding work of conversations, from the last message of each subject. */
function newestAppends(broker: Broker, names: StoreNames): NonNullable<Storage['shared']> {
  const stream = names.logStream;
  return {
    async newest(conversation) {
      requireConversationId(conversation);
      const filter = names.log(conversation);
      const last = await lastMessage(broker, stream, filter);
      if (last === null) return null;
      if (appendOf(last.headers) !== null) return newestOf(last);
      let newest: NewestAppend | null = null; // the last message is not an append: search for one
      await readRange(
        broker,
        { stream, filter, from: 1, to: last.sequence, headersOnly: true },
        (message) => {
          if (appendOf(message.headers) !== null) newest = newestOf(message);
          return true;
        },
      );
      return newest;
    },
    async origin(conversation) {
      requireConversationId(conversation);
      return (await firstAfter(broker, stream, names.log(conversation), 0))?.sequence ?? null;
    },
    extent: (conversation) => extentOf(broker, names, conversation),
    async all() {
      const found = new Map<string, NewestAppend>();
      const filter = names.log(ANY);
      const before = filter.length - ANY.length;
      await readRange(broker, { stream, filter, headersOnly: true }, (message) => {
        found.set(message.subject.slice(before), newestOf(message));
        return true;
      });
      return found;
    },
  };
}

function newestOf({ headers, sequence }: Pick<StoredMessage, 'headers' | 'sequence'>): NewestAppend {
  return { status: statusOf(headers), sequence, length: appendOf(headers)?.length ?? null };
}

/**
 * A JetStream store as the source or target of a migration.
 *
 * JETSTREAM-MIGRATION-1 The source is not changed: nothing is created, and a deletion that a crash interrupted is not
 *                       finished, but the log that it removes counts as deleted.
 * JETSTREAM-MIGRATION-2 The caller makes sure that no daemon serves these subjects during the migration.
 */
export async function openStreamSource(options: JetStreamStoreOptions): Promise<MigrationSource> {
  const { names } = options;
  const broker = await openBroker(options);
  const buckets = [`KV_${names.stateBucket}`, `OBJ_${names.outputBucket}`];
  for (const stream of [names.logStream, names.auditStream, ...buckets]) {
    if ((await findStream(broker.manager.streams, stream, storeError)) === null)
      throw new ParleyError('MIGRATION_NO_SOURCE', `there is no stream ${stream} on this server`, {
        hint: 'check --nats, the account and --prefix: no daemon has run there with --store jetstream',
      });
  }
  const documents = await BucketDocuments.open(broker, names, { mayCreate: false });
  await refuseUnfinishedMigration(`stream ${names.logStream}`, documents);
  const archive = streamArchive({ broker, names, documents });
  return { id: await idOf(broker.manager, names), archive, close: async () => undefined };
}

export async function openStreamTarget(options: JetStreamStoreOptions): Promise<MigrationTarget> {
  const opened = await openStore({ ...options, isMigrating: true });
  const name = `stream ${options.names.logStream}`;
  return migrationTarget(name, opened.store, streamArchive(opened), opened.documents);
}

function streamArchive({ broker, names, documents }: StreamParts): StoreArchive {
  return archiveOf(`jetstream:${names.logStream}`, {
    documents,
    audit: createStreamAudit(broker, names, documents),
    blobs: createStreamBlobs(broker, names),
    async conversations() {
      const gone = new Set<string>();
      for (const id of await documents.keys('deleting.')) {
        const { log } = noteIn(await documents.get(`deleting.${id}`));
        const { first } = await extentOf(broker, names, id);
        if (first === null || first.sequence <= log) gone.add(id);
      }
      return (await conversationsIn(broker, names)).filter((id) => !gone.has(id));
    },
    async log(conversation) {
      const entries: Entry[] = [];
      const ends: number[] = [];
      const [stream, subject] = [names.logStream, names.log(conversation)];
      const source = { broker, conversation, stream, subject, onForeign: () => undefined };
      await follow(source, new Placement(), (_, found) => {
        for (const entry of found) entries.push(entry);
        ends.push(entries.length);
      });
      return { entries, ends };
    },
  });
}

/**
 * The content of blobs: the pieces of one content are the messages of one subject, in order.
 *
 * STREAM-BLOBS-1 Each stored content has a name of its own, so that a removal never meets what another daemon stores (BLOBS-3).
 * STREAM-BLOBS-2 Nothing else refers to the pieces. So those of an interrupted upload are found by their subject.
 * STREAM-BLOBS-3 A piece whose acknowledgement was lost may be there twice; its ordinal says so. Pieces are read from the leader,
 *                one at a time.
 */
const PIECE_BYTES = 128 * 1_024;
const ORDINAL_HEADER = 'Parley-Piece';
const MAX_ATTEMPTS = 3;

function createStreamBlobs(broker: Broker, names: StoreNames): BlobContents {
  const stream = names.blobStream;

  async function publishPiece(subject: string, body: Uint8Array, ordinal: number): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const made = headers();
      made.set(ORDINAL_HEADER, `${ordinal}`);
      const outcome = await publish(broker, stream, { subject, body, headers: made });
      if (outcome.kind === 'unknown' && attempt < MAX_ATTEMPTS) continue;
      return requireStored(outcome, 'store a file');
    }
  }

  async function* pieces(name: string): AsyncGenerator<Uint8Array> {
    let after = 0;
    for (let ordinal = 0; ; ) {
      const found = await firstAfter(broker, stream, names.blob(name), after);
      if (found === null) return;
      after = found.sequence;
      if (Number(found.headers?.get(ORDINAL_HEADER)) !== ordinal) continue;
      ordinal += 1;
      yield found.body;
    }
  }

  return {
    async put(_, content) {
      const name = nuid.next();
      try {
        let ordinal = 0;
        for await (const piece of inPieces(content, Math.min(PIECE_BYTES, maxBody(broker)))) {
          await publishPiece(names.blob(name), piece, ordinal);
          ordinal += 1;
        }
      } catch (error) {
        await purgeSubject(broker, stream, names.blob(name)).catch(() => undefined); // else a sweep removes it
        throw error;
      }
      return name;
    },
    read: async (name, from = 0) =>
      (await firstAfter(broker, stream, names.blob(name), 0)) === null ? null : bytesFrom(pieces(name), from),
    remove: async (name) => void (await purgeSubject(broker, stream, names.blob(name))),
    async list() {
      const before = names.blob(ANY).length - ANY.length;
      return (await subjectsOf(broker, stream, names.blob(ANY))).map((subject) => subject.slice(before));
    },
    async storedAt(name) {
      const last = await lastMessage(broker, stream, names.blob(name));
      return last?.time ?? null;
    },
  };
}

/** Pieces of this size, except the last one. */
async function* inPieces(content: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let kept = Buffer.alloc(0);
  for await (const given of content) {
    kept = kept.length === 0 ? Buffer.from(given) : Buffer.concat([kept, given]);
    while (kept.length > size) {
      yield kept.subarray(0, size);
      kept = kept.subarray(size);
    }
  }
  yield kept;
}
