import { headers, type MsgHdrs } from 'nats';
import type { Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { WorkStatus } from '../port.ts';
import type { Broker } from './broker.ts';
import { lastMessage, readRange, type StoredMessage, subjectsOf } from './reader.ts';
import { ANY, type StoreNames } from './streams.ts';

/** Where the stream keeps the log of one conversation. */
export interface LogSource {
  readonly broker: Broker;
  readonly conversation: string;
  readonly stream: string;
  readonly subject: string;
  /** False, for tests only. */
  readonly isFenced: boolean;
  /** Called for each message on the subject that is not an append. */
  readonly onForeign: (sequence: number) => void;
}

export type Progress =
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

/** The entries `from` (inclusive) to `to` (exclusive), which `placement` must cover. */
export async function readEntries(
  source: LogSource,
  placement: Placement,
  from: number,
  to: number,
): Promise<Entry[]> {
  if (from >= to) return [];
  const found: Entry[] = [];
  const first = placement.appendOf(from);
  let next = first.start;
  await readRange(
    source.broker,
    {
      stream: source.stream,
      filter: source.subject,
      from: first.sequence,
      to: placement.appendOf(to - 1).sequence,
    },
    (message) => {
      const append = appendOf(message.headers);
      if (append === null) return true;
      const entries = decodeBody(message.body, next, append.length);
      if (entries === null) throw damaged(source, message, next);
      next = append.length;
      for (const entry of entries) if (entry.index >= from && entry.index < to) found.push(entry);
      return true;
    },
  );
  if (next < to) throw gone(source);
  return found;
}

/** True if the message is the first append of a log, or not an append at all. */
export function beginsLog({ headers, body }: StoredMessage): boolean {
  const append = appendOf(headers);
  return append === null || decodeBody(body, 0, append.length) !== null;
}

/** Every conversation that has a log, by id. */
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
/** Compare-and-set: the server accepts a message only if this is the last sequence of its subject. */
export const EXPECTED_HEADER = 'Nats-Expected-Last-Subject-Sequence';
const CLAIM_HEADER = 'Parley-Claim';
const OWES_HEADER = 'Parley-Owes';
/** Bytes of a payload that are reserved for headers: the server counts them too. */
export const HEADER_RESERVE = 384;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true }); // bytes that are not UTF-8 are damage
const FRAME_BYTES = '{"entries":[]}'.length;

/** Size of the body that `encodeBody` makes. */
export function bodySize(json: readonly string[]): number {
  return json.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, FRAME_BYTES);
}

export function encodeBody(json: readonly string[]): Uint8Array {
  return encoder.encode(`{"entries":[${json.join(',')}]}`);
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
  lastSequence: number | null,
  status?: WorkStatus,
): MsgHdrs {
  const made = headers();
  made.set(APPEND_HEADER, id);
  made.set(LENGTH_HEADER, `${length}`);
  if (lastSequence !== null) made.set(EXPECTED_HEADER, `${lastSequence}`);
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
