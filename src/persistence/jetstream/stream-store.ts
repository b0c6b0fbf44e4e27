import type { NatsConnection } from 'nats';
import { messageOf } from '../../kernel/index.ts';
import type {
  ConversationRow,
  ConversationStore,
  Deletion,
  IngressAttempts,
  IngressPosition,
  OpenedLog,
  Removed,
  SharedLogs,
} from '../port.ts';
import { byId, isBeyond, isCovered, logAlreadyOpen, requireConversationId, storeClosed } from '../rules.ts';
import { type Broker, type ConnectionWatch, openBroker } from './broker.ts';
import { DELETED, DELETING, deletionsIn } from './deletions.ts';
import { Documents } from './documents.ts';
import { LatestPosition } from './latest-position.ts';
import { beginsLog, holdsAppend, type LogSource } from './log-reader.ts';
import { refuseUnfinishedMigration } from './migration-mark.ts';
import { firstAfter, lastMessage, purgeSubject, subjectsOf } from './reader.ts';
import { createSharedLogs } from './shared-logs.ts';
import { openStreamLog } from './stream-log.ts';
import { ANY, ensureStreams, type StoreNames } from './streams.ts';
import { openToolRecords, type StreamToolRecords } from './tool-records.ts';

/**
 * The store that is a stream: every log is one subject of it, and nothing is kept on this machine.
 *
 * STREAM-STORE-1 The server decides between writers (L3); there is no lock, so a store never waits for another that died.
 * STREAM-STORE-2 A conversation is opened once at a time in one process.
 * STREAM-STORE-3 Nothing here reads a log except `open`.
 * STREAM-STORE-4 A deletion that began is ended: what is to go is written down first, and taken up at the next opening. It removes
 *    the log as it is when the deletion begins, never a log that begins later under the same name.
 */

export type StoreEvent =
  /** Somebody published on the subject of a log; that is passed over. */
  | { readonly type: 'foreign-message'; readonly conversation: string; readonly sequence: number }
  /** A projection could not be saved; it lags until it is saved again. */
  | { readonly type: 'projection-not-saved'; readonly name: string; readonly reason: string };

export interface JetStreamStoreOptions {
  /** The store's own; its opener closes it after the store. */
  readonly connection: NatsConnection;
  readonly watch: ConnectionWatch;
  readonly names: StoreNames;
  readonly log?: (event: StoreEvent) => void;
  /** Aborted when what is under way may not wait for the server any longer. */
  readonly signal?: AbortSignal;
  /** How long an answer may take. */
  readonly timeoutMs?: number;
  /** False, for tests only: appends do not name their place, and nothing keeps two writers apart. */
  readonly isFenced?: boolean;
  /** Opened by whoever moves conversations into it; else a move that is under way refuses everybody. */
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
  await store.endDeletions();
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
  readonly shared: SharedLogs;
  readonly #parts: StoreParts;
  readonly #position: LatestPosition;
  readonly #open = new Map<string, Promise<OpenedLog>>();
  readonly #deleting = new Map<string, Promise<Removed>>();
  readonly #toldForeign = new Set<string>();
  #closing: Promise<void> | null = null;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.toolRecords = parts.toolRecords;
    this.shared = createSharedLogs(parts.broker, parts.names, parts.documents);
    this.#position = new LatestPosition(parts.documents, (reason) =>
      parts.log({ type: 'projection-not-saved', name: 'ingress', reason }),
    );
  }

  async open(conversation: string): Promise<OpenedLog> {
    this.#admit(conversation);
    await this.#deleting.get(conversation);
    this.#admit(conversation);
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    const opening = openStreamLog(this.#source(conversation), () => this.#open.delete(conversation));
    this.#open.set(conversation, opening);
    try {
      return await opening;
    } catch (error) {
      this.#open.delete(conversation);
      throw error;
    }
  }

  async exists(conversation: string): Promise<boolean> {
    this.#admit(conversation);
    return holdsAppend(this.#source(conversation));
  }

  async delete(conversation: string, upTo: IngressPosition | null = null, newest?: number): Promise<Removed> {
    this.#admit(conversation);
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    const underWay = this.#deleting.get(conversation);
    if (underWay !== undefined) return underWay;
    const deleting = this.#delete(conversation, upTo, newest).finally(() =>
      this.#deleting.delete(conversation),
    );
    this.#deleting.set(conversation, deleting);
    return deleting;
  }

  async #delete(conversation: string, upTo: IngressPosition | null, newest?: number): Promise<Removed> {
    const { broker, documents, names } = this.#parts;
    if (upTo !== null) {
      await documents.change(`${DELETED}${conversation}`, (known) =>
        isCovered(upTo, known as IngressPosition | null) ? null : upTo,
      );
    }
    const last = async () => (await lastMessage(broker, names.logStream, names.log(conversation)))?.sequence;
    const log = newest ?? (await last()) ?? 0;
    await documents.put(`${DELETING}${conversation}`, { log }); // STREAM-STORE-4
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
      upTo = first.sequence; // appended to the old log while it was being removed
    }
    const removed = await toolRecords.deleteAll(conversation);
    for (const kind of ['row', 'state', 'mark', 'deleting'])
      await documents.remove(`${kind}.${conversation}`);
    return removed;
  }

  /** STREAM-STORE-4 */
  async endDeletions(): Promise<void> {
    const { documents } = this.#parts;
    for (const conversation of await documents.keys(DELETING)) {
      const begun = (await documents.get(`${DELETING}${conversation}`)) as { log: number } | true | null;
      if (begun === null) continue; // another daemon has ended it
      if (begun !== true) await this.#remove(conversation, begun.log);
      else await this.#delete(conversation, null); // written by a version that did not note how far
    }
  }

  async deletedUpTo(conversation: string): Promise<IngressPosition | null> {
    this.#admit(conversation);
    return (await this.#parts.documents.get(`${DELETED}${conversation}`)) as IngressPosition | null;
  }

  async cutDeletions(end: () => Promise<IngressPosition>): Promise<void> {
    this.#admit();
    const { documents } = this.#parts;
    const known = (await documents.entries(DELETED)) as Map<string, IngressPosition>;
    const last = await end();
    for (const [conversation, position] of known) {
      if (!isBeyond(position, last)) continue;
      await documents.change(`${DELETED}${conversation}`, (now) =>
        (now as IngressPosition | null)?.stream === position.stream &&
        (now as IngressPosition).sequence === position.sequence
          ? last
          : null,
      );
    }
  }

  async deletions(): Promise<Deletion[]> {
    this.#admit();
    return deletionsIn(this.#parts.documents);
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
    const { broker, names } = this.#parts;
    const before = names.log(ANY).length - ANY.length;
    const subjects = await subjectsOf(broker, names.logStream, names.log(ANY));
    return subjects.map((subject) => subject.slice(before)).sort();
  }

  async rows(): Promise<ConversationRow[]> {
    this.#admit();
    return ((await this.#parts.documents.values('row.')) as ConversationRow[]).sort(byId);
  }

  async saveRow(row: ConversationRow): Promise<void> {
    this.#admit(row.id);
    await this.#parts.documents.put(`row.${row.id}`, row);
  }

  /** One that no message can carry is left out: it is made of the log at any time. */
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
    this.#position.set(position);
  }

  async ingressAttempts(): Promise<IngressAttempts | null> {
    this.#admit();
    return (await this.#parts.documents.get('attempts')) as IngressAttempts | null;
  }

  async saveIngressAttempts(attempts: IngressAttempts): Promise<void> {
    this.#admit();
    await this.#parts.documents.put('attempts', attempts);
  }

  /** Whoever takes over a conversation counts its attempts in the log. */
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
    const opened = await Promise.allSettled(this.#open.values());
    const logs = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value.log] : []));
    // Logs first: the ingress position may lag them, never lead them.
    await Promise.allSettled(logs.map((log) => log.close()));
    await Promise.allSettled(this.#deleting.values());
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
        if (this.#toldForeign.has(conversation)) return;
        this.#toldForeign.add(conversation);
        log({ type: 'foreign-message', conversation, sequence });
      },
    };
  }

  /** The door: refuses when closed, and what is not a conversation id. */
  #admit(conversation?: string): void {
    if (this.#closing !== null) throw storeClosed();
    if (conversation !== undefined) requireConversationId(conversation);
  }
}
