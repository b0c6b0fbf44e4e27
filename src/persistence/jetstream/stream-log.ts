import { headers, type MsgHdrs, nuid } from 'nats';
import type { Entry } from '../../conversation/index.ts';
import { hasCode, messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import { type Commit, GroupCommit, type QueuedAppend } from '../group-commit.ts';
import type { AppendOutcome, ConversationLog, OpenedLog, WorkStatus } from '../port.ts';
import { readRange as rangeWithin, serialiseBatch } from '../rules.ts';
import { type Broker, EXPECTED_HEADER, maxBody, publish, storeError } from './broker.ts';
import { lastMessage, readRange, type StoredMessage, subjectsOf } from './reader.ts';
import { ANY, type StoreNames } from './streams.ts';

/** The log of one conversation in the stream: the format of an append, reading it, and the open log with the place of each entry. */

/** Where the stream keeps the log of one conversation. */
export interface LogSource {
  readonly broker: Broker;
  readonly conversation: string;
  readonly stream: string;
  readonly subject: string;
  /** Called for each message on the subject that is not an append. */
  readonly onForeign: (sequence: number) => void;
}

export async function openStreamLog(source: LogSource, onClosed: () => void): Promise<OpenedLog> {
  const placement = new Placement();
  const entries: Entry[] = [];
  await follow(source, placement, (_, found) => {
    for (const entry of found) entries.push(entry);
  });
  return { log: new StreamLog(source, placement, onClosed), entries, tornTail: null };
}

/** Between two attempts when the outcome of an append is unknown. */
const RETRY_PAUSE_MS = 100;

/**
 * STREAM-LOG-1 An append is one message that names the last sequence of its subject: it is stored whole, directly after what its
 *              writer knew, or not at all (L3). The server decides between this writer and others. Queued appends share a
 *              message up to its size limit (GROUP-COMMIT-1).
 * STREAM-LOG-2 An append whose acknowledgement was lost is published again with the same expected sequence, until the server
 *              stores it or has another message there. At most one copy is stored; its id identifies it (L12).
 * STREAM-LOG-3 When the wait for an answer must end, the outcome is unknown (GROUP-COMMIT-4).
 */
class StreamLog implements ConversationLog {
  readonly conversation: string;
  readonly #source: LogSource;
  readonly #placement: Placement;
  readonly #writer: GroupCommit;
  readonly #onClosed: () => void;
  #closing: Promise<void> | null = null;

  constructor(source: LogSource, placement: Placement, onClosed: () => void) {
    const { conversation } = source;
    this.conversation = conversation;
    this.#source = source;
    this.#placement = placement;
    this.#writer = new GroupCommit({
      conversation,
      maxSize: () => maxBody(source.broker),
      durableLength: () => placement.length,
      commit: (group) => this.#commit(group),
      unavailable: (cause) => unavailable(conversation, cause),
    });
    this.#onClosed = onClosed;
  }

  get length(): number {
    return this.#writer.length;
  }

  get newestSequence(): number {
    return this.#placement.lastSequence;
  }

  async append(
    expectedLength: number,
    entries: readonly Entry[],
    status?: WorkStatus,
  ): Promise<AppendOutcome> {
    // Encoded now: the caller may change its entries before they are published.
    const json = serialiseBatch(this.conversation, expectedLength, entries);
    const bytes = bodySize(json);
    if (bytes > maxBody(this.#source.broker) && expectedLength === this.length) throw this.#tooLarge(bytes);
    return this.#writer.append(expectedLength, json, bytes, status);
  }

  async read(from: number, to?: number): Promise<Entry[]> {
    const refused = this.#writer.refusal();
    if (refused !== null) throw refused;
    const range = rangeWithin(from, to, this.#placement.length);
    return this.#entries(range.from, range.to);
  }

  /** `from` (inclusive) to `to` (exclusive), which the placement must cover. */
  async #entries(from: number, to: number): Promise<Entry[]> {
    if (from >= to) return [];
    const { broker, stream, subject: filter } = this.#source;
    const found: Entry[] = [];
    const first = this.#placement.appendOf(from);
    const last = this.#placement.appendOf(to - 1);
    let next = first.start;
    await readRange(broker, { stream, filter, from: first.sequence, to: last.sequence }, (message) => {
      const append = appendOf(message.headers);
      if (append === null) return true;
      const entries = decodeBody(message.body, next, append.length);
      if (entries === null) throw damaged(this.#source, message, next);
      next = append.length;
      for (const entry of entries) if (entry.index >= from && entry.index < to) found.push(entry);
      return true;
    });
    if (next < to) throw gone(this.#source);
    return found;
  }

  close(): Promise<void> {
    this.#closing ??= this.#writer.close().finally(this.#onClosed);
    return this.#closing;
  }

  async #commit(group: readonly QueuedAppend[]): Promise<Commit> {
    const { broker, stream, subject, conversation } = this.#source;
    const body = encodeBody(group.flatMap(({ lines }) => lines));
    const { length = 0, status } = group.at(-1) ?? {};
    const id = nuid.next();
    for (;;) {
      const { lastSequence } = this.#placement;
      const headers = appendHeaders(id, length, lastSequence, status);
      const outcome = await publish(broker, stream, { subject, body, headers });
      switch (outcome.kind) {
        case 'stored':
          this.#placement.add(outcome.sequence, length);
          return { kind: 'stored' };
        case 'refused':
          return {
            kind: 'failed',
            error: storeError(outcome.cause, `append to conversation ${conversation}`),
          };
        case 'unknown':
          await this.#waitForServer(outcome.cause);
          break;
        case 'conflict': {
          const found = await this.#resolveConflict(id);
          if (found !== null) return found;
        }
      }
    }
  }

  /** Reads what is stored instead of the append. Null: no append, so publish again. */
  async #resolveConflict(id: string): Promise<Commit | null> {
    const ids: string[] = [];
    const progress = await this.#follow(ids);
    if (progress.kind === 'replaced') {
      this.#writer.becomeUnavailable(new Error('another writer deleted the log'));
      return { kind: 'conflict', length: progress.length };
    }
    if (ids.includes(id)) return { kind: 'stored' };
    if (ids.length > 0) return { kind: 'conflict', length: this.#placement.length };
    await this.#waitForServer(new Error('the server refuses the append and has nothing in its place'));
    return null;
  }

  /** Adds the ids of new appends to `ids`. */
  async #follow(ids: string[]): Promise<Progress> {
    for (;;) {
      try {
        return await follow(this.#source, this.#placement, (id) => ids.push(id));
      } catch (error) {
        if (hasCode(error, 'LOG_CORRUPT')) throw error;
        await this.#waitForServer(error);
      }
    }
  }

  async #waitForServer(cause: unknown): Promise<void> {
    const { signal, connection } = this.#source.broker;
    await sleep(RETRY_PAUSE_MS, signal);
    if (signal.aborted || connection.isClosed()) throw cause;
  }

  #tooLarge(bytes: number): ParleyError {
    return new ParleyError(
      'APPEND_TOO_LARGE',
      `Conversation ${this.#source.conversation}: nothing was appended: ${bytes} bytes exceed the ${maxBody(this.#source.broker)} of one message`,
      { hint: 'Append fewer entries at once, or raise max_payload of the nats-server.' },
    );
  }
}

function unavailable(conversation: string, cause: unknown): ParleyError {
  return new ParleyError(
    'LOG_UNAVAILABLE',
    `Conversation ${conversation}: it is unknown whether the last append was stored: ${messageOf(cause)}`,
    {
      hint: 'Open the conversation again when the nats-server answers, to read what the stream holds.',
      cause,
    },
  );
}

type Progress =
  | { readonly kind: 'followed' }
  /** The known appends are gone: the log was deleted, and possibly begun again. */
  | { readonly kind: 'replaced'; readonly length: number };

/**
 * Reads what the stream has after `placement`, adds it there, and passes each append with its id to `onAppend`. After a
 * failure, the next call continues after the last append that was passed on (PERSISTENCE-PORT-4).
 */
export async function follow(
  source: LogSource,
  placement: Placement,
  onAppend: (id: string, entries: readonly Entry[]) => void,
): Promise<Progress> {
  const { broker, stream, subject } = source;
  const last = await lastMessage(broker, stream, subject);
  const known = placement.lastSequence;
  if (last === null || last.sequence < known)
    return known === 0 ? { kind: 'followed' } : { kind: 'replaced', length: lengthIn(last) };
  if (last.sequence === known) return { kind: 'followed' };
  let isReplaced = false;
  await readRange(broker, { stream, filter: subject, from: known + 1, to: last.sequence }, (message) => {
    const append = appendOf(message.headers);
    if (append === null) {
      source.onForeign(message.sequence);
      placement.lastSequence = message.sequence;
      return true;
    }
    const entries = decodeBody(message.body, placement.length, append.length);
    if (entries === null && placement.length > 0 && decodeBody(message.body, 0, append.length) !== null) {
      isReplaced = true;
      return false;
    }
    if (entries === null) throw damaged(source, message, placement.length);
    placement.add(message.sequence, append.length);
    onAppend(append.id, entries);
    return true;
  });
  return isReplaced ? { kind: 'replaced', length: lengthIn(last) } : { kind: 'followed' };
}

/** True if the message is the first append of a log, or not an append at all. */
export function beginsLog({ headers, body }: StoredMessage): boolean {
  const append = appendOf(headers);
  return append === null || decodeBody(body, 0, append.length) !== null;
}

export async function conversationsIn(broker: Broker, names: StoreNames): Promise<string[]> {
  const prefixLength = names.log(ANY).length - ANY.length;
  const subjects = await subjectsOf(broker, names.logStream, names.log(ANY));
  return subjects.map((subject) => subject.slice(prefixLength)).sort();
}

function lengthIn(last: StoredMessage | null): number {
  return appendOf(last?.headers)?.length ?? 0;
}

function damaged({ stream, subject }: LogSource, { sequence }: StoredMessage, index: number): ParleyError {
  return new ParleyError(
    'LOG_CORRUPT',
    `stream ${stream}: message ${sequence} of ${subject} is not the append that belongs at entry ${index}`,
    {
      hint: 'Another program writes to this stream, or messages were removed from it. Back it up (`nats stream backup`), then inspect that message.',
    },
  );
}

function gone({ stream, subject, conversation }: LogSource): ParleyError {
  return new ParleyError(
    'LOG_UNAVAILABLE',
    `Conversation ${conversation}: messages of ${subject} were removed from stream ${stream}`,
    {
      hint: 'The conversation may have been deleted by another program. Open it again to read what the stream holds.',
    },
  );
}

/** The position of each durable entry in the stream. All that is kept of a log in memory. */
export class Placement {
  readonly #starts: number[] = [];
  readonly #sequences: number[] = [];
  #length = 0;
  /** The subject's last sequence, including messages that are not appends; 0: there is none. */
  lastSequence = 0;

  /** Durable entries. */
  get length(): number {
    return this.#length;
  }

  add(sequence: number, length: number): void {
    this.#starts.push(this.#length);
    this.#sequences.push(sequence);
    this.#length = length;
    this.lastSequence = sequence;
  }

  /** The append that contains this entry. */
  appendOf(index: number): { readonly start: number; readonly sequence: number } {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#starts[middle] ?? 0) <= index) low = middle;
      else high = middle - 1;
    }
    return { start: this.#starts[low] ?? 0, sequence: this.#sequences[low] ?? 0 };
  }
}

const APPEND_HEADER = 'Parley-Append';
const LENGTH_HEADER = 'Parley-Length';
const CLAIM_HEADER = 'Parley-Claim';
const OWES_HEADER = 'Parley-Owes';

const decoder = new TextDecoder('utf-8', { fatal: true }); // bytes that are not UTF-8 are damage
const FRAME_BYTES = '{"entries":[]}'.length;

/** Size of the body that `encodeBody` makes. */
function bodySize(json: readonly string[]): number {
  return json.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, FRAME_BYTES);
}

export function encodeBody(json: readonly string[]): Uint8Array {
  return Buffer.from(`{"entries":[${json.join(',')}]}`);
}

/**
 * One append as one message: `{"entries":[…]}`, as followers of `parley.log` read it.
 *
 * APPEND-MESSAGE-1 `Parley-Append` is unique to one append. A writer whose acknowledgement was lost finds its append by it.
 * APPEND-MESSAGE-2 `Parley-Length` is the log's length after this append, so the last message alone gives the length.
 * APPEND-MESSAGE-3 A message without `Parley-Append` is not an append, and is ignored.
 * APPEND-MESSAGE-4 `Parley-Claim` (`<daemon>:<epoch>`) names the owner of the conversation, and `Parley-Owes` is `1` while it
 *                  has outstanding work.
 */
export function appendHeaders(
  id: string,
  length: number,
  lastSequence: number,
  status?: WorkStatus,
): MsgHdrs {
  const made = headers();
  made.set(APPEND_HEADER, id);
  made.set(LENGTH_HEADER, `${length}`);
  made.set(EXPECTED_HEADER, `${lastSequence}`);
  if (status) {
    const { claim, hasOutstandingWork } = status;
    if (claim) made.set(CLAIM_HEADER, `${claim.daemon}:${claim.epoch}`);
    made.set(OWES_HEADER, hasOutstandingWork ? '1' : '0');
  }
  return made;
}

/** APPEND-MESSAGE-4. Null: the append does not say, or the message is not an append. */
export function statusOf(made: MsgHdrs | undefined): WorkStatus | null {
  const owes = made?.get(OWES_HEADER) ?? '';
  if (made === undefined || appendOf(made) === null || owes === '') return null;
  const [, daemon, epoch] = /^([A-Za-z0-9_-]+):(\d+)$/.exec(made.get(CLAIM_HEADER)) ?? [];
  const claim = daemon === undefined ? null : { daemon, epoch: Number(epoch) };
  return { claim, hasOutstandingWork: owes !== '0' };
}

/** Null for a message that is not an append (APPEND-MESSAGE-3). */
export function appendOf(made: MsgHdrs | undefined): { readonly id: string; readonly length: number } | null {
  const id = made?.get(APPEND_HEADER) ?? '';
  const length = Number(made?.get(LENGTH_HEADER));
  return id === '' || !Number.isSafeInteger(length) ? null : { id, length };
}

/** The entries of an append, if their indexes are `from` to `length` - 1; else null. */
export function decodeBody(body: Uint8Array, from: number, length: number): Entry[] | null {
  try {
    const { entries } = JSON.parse(decoder.decode(body)) as { entries: Entry[] };
    const fits = entries.every((entry, place) => entry.index === from + place);
    return fits && from + entries.length === length ? entries : null;
  } catch {
    return null; // not UTF-8, not JSON, or no list of entries: damage that the caller reports
  }
}
