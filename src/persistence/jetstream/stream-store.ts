import type { NatsConnection } from 'nats';
import { messageOf } from '../../kernel/index.ts';
import { OpenLogs } from '../open-logs.ts';
import type {
  BackupMark,
  ConversationRow,
  ConversationStore,
  DefinitionTexts,
  Deletion,
  IngressAttempts,
  IngressPosition,
  OpenedLog,
  Removed,
  SharedLogs,
} from '../port.ts';
import { byId, requireConversationId, storeClosed } from '../rules.ts';
import { type Broker, type ConnectionWatch, openBroker } from './broker.ts';
import { createDefinitions } from './definitions.ts';
import { Deletions } from './deletions.ts';
import { Documents, LatestPosition } from './documents.ts';
import { beginsLog, conversationsIn, holdsAppend, type LogSource } from './log-reader.ts';
import { createBackupMark, refuseUnfinishedMigration } from './migration-mark.ts';
import { firstAfter, lastMessage, purgeSubject } from './reader.ts';
import { createSharedLogs } from './shared-logs.ts';
import { openStreamLog } from './stream-log.ts';
import { ensureStreams, type StoreNames } from './streams.ts';
import { openToolRecords, type StreamToolRecords } from './tool-records.ts';

/**
 * The store on a JetStream server: each log is one subject of a stream, and nothing is kept on this machine.
 *
 * STREAM-STORE-1 The server decides between writers (L3). There is no lock, so a store never waits for a dead one.
 * STREAM-STORE-2 A process opens a conversation once at a time.
 * STREAM-STORE-3 Only `open` reads a log.
 * STREAM-STORE-4 A deletion is recorded before it begins, and the next opening finishes it. It removes the log as it is when
 *                the deletion begins, never a log that begins later under the same name.
 */

export type StoreEvent =
  /** A message on the subject of a log is not an append; it is ignored. */
  | { readonly type: 'foreign-message'; readonly conversation: string; readonly sequence: number }
  /** A projection could not be saved; it lags until the next save. */
  | { readonly type: 'projection-not-saved'; readonly name: string; readonly reason: string };

export interface JetStreamStoreOptions {
  /** Used by this store alone; the caller closes it after the store. */
  readonly connection: NatsConnection;
  readonly watch: ConnectionWatch;
  readonly names: StoreNames;
  readonly log?: (event: StoreEvent) => void;
  /** Ends every wait for the server. */
  readonly signal?: AbortSignal;
  /** For one answer of the server. */
  readonly timeoutMs?: number;
  /** False, for tests only: appends name no expected sequence, so two writers can both succeed. */
  readonly isFenced?: boolean;
  /** True for a migration; other callers are refused while one is unfinished. */
  readonly isMigrating?: boolean;
}

export async function openJetStreamStore(options: JetStreamStoreOptions): Promise<ConversationStore> {
  const { names } = options;
  const broker = await openBroker(options);
  const id = await ensureStreams(broker.manager, names);
  const documents = await Documents.open(broker, names.stateBucket);
  if (!options.isMigrating) await refuseUnfinishedMigration(documents, names.logStream);
  const toolRecords = await openToolRecords(broker, names, documents);
  const { log = () => undefined, isFenced = true } = options;
  const store = new JetStreamStore({ id, broker, names, documents, toolRecords, log, isFenced });
  await store.finishDeletions();
  return store;
}

interface StoreParts {
  readonly id: string;
  readonly broker: Broker;
  readonly names: StoreNames;
  readonly documents: Documents;
  readonly toolRecords: StreamToolRecords;
  readonly log: (event: StoreEvent) => void;
  readonly isFenced: boolean;
}

class JetStreamStore implements ConversationStore {
  readonly id: string;
  readonly isFeed = true;
  readonly toolRecords: StreamToolRecords;
  readonly definitions: DefinitionTexts;
  readonly backupMark: BackupMark;
  readonly shared: SharedLogs;
  readonly #parts: StoreParts;
  readonly #deletions: Deletions;
  readonly #position: LatestPosition;
  readonly #logs = new OpenLogs();
  readonly #reportedForeign = new Set<string>();
  #closing: Promise<void> | null = null;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.toolRecords = parts.toolRecords;
    this.definitions = createDefinitions(parts.broker, parts.documents);
    this.shared = createSharedLogs(parts.broker, parts.names, parts.documents);
    this.backupMark = createBackupMark(parts.documents);
    this.#deletions = new Deletions(parts.documents);
    this.#position = new LatestPosition(parts.documents, (reason) =>
      parts.log({ type: 'projection-not-saved', name: 'ingress', reason }),
    );
  }

  open(conversation: string): Promise<OpenedLog> {
    return this.#logs.open(
      conversation,
      (id) => this.#admit(id),
      (onClosed) => openStreamLog(this.#source(conversation), onClosed),
    );
  }

  async exists(conversation: string): Promise<boolean> {
    this.#admit(conversation);
    return holdsAppend(this.#source(conversation));
  }

  async delete(conversation: string, upTo: IngressPosition | null = null, newest?: number): Promise<Removed> {
    this.#admit(conversation);
    return this.#logs.delete(conversation, () => this.#delete(conversation, upTo, newest));
  }

  async #delete(conversation: string, upTo: IngressPosition | null, newest?: number): Promise<Removed> {
    const { broker, names } = this.#parts;
    if (upTo !== null) await this.#deletions.put(conversation, upTo);
    const last = async () => (await lastMessage(broker, names.logStream, names.log(conversation)))?.sequence;
    const log = newest ?? (await last()) ?? 0;
    await this.#deletions.begin(conversation, log); // STREAM-STORE-4
    return this.#remove(conversation, log);
  }

  /** `log`: the sequence of its last append. */
  async #remove(conversation: string, log: number): Promise<Removed> {
    const { broker, documents, names, toolRecords } = this.#parts;
    const [stream, subject] = [names.logStream, names.log(conversation)];
    for (let upTo = log; upTo > 0; ) {
      await purgeSubject(broker, stream, subject, upTo);
      const first = await firstAfter(broker, stream, subject, upTo);
      if (first === null || beginsLog(first)) break;
      upTo = first.sequence; // appended to the old log during its removal
    }
    const removed = await toolRecords.deleteAll(conversation);
    for (const kind of ['row', 'state', 'mark']) await documents.remove(`${kind}.${conversation}`);
    await this.#deletions.finish(conversation);
    return removed;
  }

  /** STREAM-STORE-4 */
  async finishDeletions(): Promise<void> {
    for (const conversation of await this.#deletions.unfinished()) {
      const begun = await this.#deletions.begun(conversation);
      if (begun === null) continue; // another daemon has finished it
      if (begun !== true) await this.#remove(conversation, begun.log);
      else await this.#delete(conversation, null);
    }
  }

  async deletedUpTo(conversation: string): Promise<IngressPosition | null> {
    this.#admit(conversation);
    return this.#deletions.upTo(conversation);
  }

  async cutDeletions(end: () => Promise<IngressPosition>): Promise<void> {
    this.#admit();
    await this.#deletions.cut(end);
  }

  async deletions(): Promise<Deletion[]> {
    this.#admit();
    return this.#deletions.all();
  }

  async markOpen(conversation: string): Promise<void> {
    this.#admit(conversation);
    await this.#parts.documents.put(`mark.${conversation}`, true);
  }

  async clearOpen(conversation: string): Promise<void> {
    this.#admit(conversation);
    await this.#parts.documents.remove(`mark.${conversation}`);
  }

  async openMarks(): Promise<string[] | null> {
    this.#admit();
    const { documents } = this.#parts;
    if ((await documents.get('marks')) === null) return null;
    return (await documents.keys('mark.')).sort();
  }

  async initialiseMarks(): Promise<void> {
    this.#admit();
    await this.#parts.documents.put('marks', true);
  }

  async conversations(): Promise<string[]> {
    this.#admit();
    return conversationsIn(this.#parts.broker, this.#parts.names);
  }

  async rows(): Promise<ConversationRow[]> {
    this.#admit();
    return ((await this.#parts.documents.values('row.')) as ConversationRow[]).sort(byId);
  }

  async saveRow(row: ConversationRow): Promise<void> {
    this.#admit(row.id);
    await this.#parts.documents.put(`row.${row.id}`, row);
  }

  /** A state that is too large for a message is not saved: it can be rebuilt from the log. */
  async saveState(conversation: string, state: Readonly<Record<string, unknown>>): Promise<void> {
    this.#admit(conversation);
    try {
      await this.#parts.documents.put(`state.${conversation}`, state);
    } catch (error) {
      this.#parts.log({
        type: 'projection-not-saved',
        name: `state.${conversation}`,
        reason: messageOf(error),
      });
    }
  }

  async ingressPosition(): Promise<IngressPosition | null> {
    this.#admit();
    return this.#position.get();
  }

  async saveIngressPosition(position: IngressPosition): Promise<void> {
    this.#admit();
    await this.#position.set(position);
  }

  async ingressAttempts(): Promise<IngressAttempts | null> {
    this.#admit();
    return (await this.#parts.documents.get('attempts')) as IngressAttempts | null;
  }

  async saveIngressAttempts(attempts: IngressAttempts): Promise<void> {
    this.#admit();
    await this.#parts.documents.put('attempts', attempts);
  }

  /** The next owner of a conversation counts its attempts in the log. */
  async lastDecision(): Promise<null> {
    this.#admit();
    return null;
  }

  noteDecision(): void {}

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#logs.close(); // first: the ingress position may lag the logs, never lead them
    await this.#position.close();
    await this.#parts.documents.idle();
  }

  #source(conversation: string): LogSource {
    const { broker, names, log, isFenced } = this.#parts;
    return {
      broker,
      conversation,
      stream: names.logStream,
      subject: names.log(conversation),
      isFenced,
      onForeign: (sequence) => {
        if (this.#reportedForeign.has(conversation)) return;
        this.#reportedForeign.add(conversation);
        log({ type: 'foreign-message', conversation, sequence });
      },
    };
  }

  /** Throws when the store is closed, and for what is not a conversation id. */
  #admit(conversation?: string): void {
    if (this.#closing !== null) throw storeClosed();
    if (conversation !== undefined) requireConversationId(conversation);
  }
}
