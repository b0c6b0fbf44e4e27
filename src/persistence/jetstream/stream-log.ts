import { nuid } from 'nats';
import type { Entry } from '../../conversation/index.ts';
import { messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import type { AppendOutcome, ConversationLog, OpenedLog, WorkStatus } from '../port.ts';
import { logClosed, readRange, serialiseBatch } from '../rules.ts';
import { appendHeaders, bodySize, encodeBody, HEADER_RESERVE } from './append-message.ts';
import { publish, storeError } from './broker.ts';
import { follow, type LogSource, Placement, type Progress, readEntries } from './log-reader.ts';

/** One open log: its writer, and the position of each durable entry. */

export async function openStreamLog(source: LogSource, onClosed: () => void): Promise<OpenedLog> {
  const placement = new Placement();
  const entries: Entry[] = [];
  await follow(source, placement, (_, found) => {
    for (const entry of found) entries.push(entry);
  });
  return { log: new StreamLog(source, placement, onClosed), entries, tornTail: null };
}

class StreamLog implements ConversationLog {
  readonly conversation: string;
  readonly #source: LogSource;
  readonly #placement: Placement;
  readonly #writer: StreamLogWriter;
  readonly #onClosed: () => void;
  #closing: Promise<void> | null = null;

  constructor(source: LogSource, placement: Placement, onClosed: () => void) {
    this.conversation = source.conversation;
    this.#source = source;
    this.#placement = placement;
    this.#writer = new StreamLogWriter(source, placement);
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
    return this.#writer.append(expectedLength, json, status);
  }

  async read(from: number, to?: number): Promise<Entry[]> {
    const refused = this.#writer.refusal();
    if (refused !== null) throw refused;
    const range = readRange(from, to, this.#placement.length);
    return readEntries(this.#source, this.#placement, range.from, range.to);
  }

  close(): Promise<void> {
    this.#closing ??= this.#writer.close().finally(this.#onClosed);
    return this.#closing;
  }
}

/**
 * The only writer of one log in this process. The server decides between it and other writers.
 *
 * JETSTREAM-LOG-WRITER-1 An append is one message that names the last sequence of its subject: it is stored whole, directly
 *                        after what its writer knew, or not at all (L3). Queued appends share a message up to its size limit.
 * JETSTREAM-LOG-WRITER-2 The expected length is compared with the length after all queued appends, so callers need not wait
 *                        for each other.
 * JETSTREAM-LOG-WRITER-3 An append whose acknowledgement was lost is published again with the same expected sequence, until the
 *                        server stores it or has another message there. At most one copy is stored; its id identifies it (L12).
 * JETSTREAM-LOG-WRITER-4 When an append fails or conflicts, the appends queued after it fail too: their lengths no longer fit.
 * JETSTREAM-LOG-WRITER-5 When the wait for an answer must end, the writer refuses everything until the log is opened, and so
 *                        read, again.
 */

interface QueuedAppend {
  readonly json: readonly string[];
  readonly status: WorkStatus | undefined;
  readonly bytes: number;
  /** The log's length after this append. */
  readonly length: number;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
}

type WriterState =
  | { readonly kind: 'writable' }
  | { readonly kind: 'unavailable'; readonly cause: unknown }
  | { readonly kind: 'closed' };

type Commit =
  | { readonly kind: 'stored' }
  | { readonly kind: 'conflict'; readonly length: number }
  | { readonly kind: 'failed'; readonly error: ParleyError };

/** Between two attempts when the outcome of an append is unknown. */
const RETRY_PAUSE_MS = 100;

export class StreamLogWriter {
  readonly #source: LogSource;
  readonly #placement: Placement;
  #state: WriterState = { kind: 'writable' };
  #queue: QueuedAppend[] = [];
  #length: number;
  #draining: Promise<void> | null = null;

  constructor(source: LogSource, placement: Placement) {
    this.#source = source;
    this.#placement = placement;
    this.#length = placement.length;
  }

  /** Entries durable and queued (JETSTREAM-LOG-WRITER-2). */
  get length(): number {
    return this.#length;
  }

  append(expectedLength: number, json: readonly string[], status?: WorkStatus): Promise<AppendOutcome> {
    const refused = this.refusal();
    if (refused !== null) return Promise.reject(refused);
    if (expectedLength !== this.#length || json.length === 0) {
      const kind = expectedLength === this.#length ? 'appended' : 'conflict';
      return Promise.resolve({ kind, length: this.#length });
    }
    const bytes = bodySize(json);
    if (bytes > this.#maxBytes) return Promise.reject(this.#tooLarge(bytes));
    this.#length += json.length;
    return new Promise((resolve, reject) => {
      this.#queue.push({ json, status, bytes, length: this.#length, resolve, reject });
      this.#draining ??= this.#drain();
    });
  }

  /** Why appends and reads are refused; null: they are not. */
  refusal(): ParleyError | null {
    const { conversation } = this.#source;
    if (this.#state.kind === 'closed') return logClosed(conversation);
    return this.#state.kind === 'unavailable' ? unavailable(conversation, this.#state.cause) : null;
  }

  /** Refuses new appends and waits for those under way. */
  async close(): Promise<void> {
    this.#state = { kind: 'closed' };
    await this.#draining;
  }

  get #maxBytes(): number {
    return (this.#source.broker.connection.info?.max_payload ?? 1024 ** 2) - HEADER_RESERVE;
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = this.#takeGroup();
      const outcome = await this.#commit(group).catch((cause: unknown): Commit => {
        this.#becomeUnavailable(cause);
        return { kind: 'failed', error: unavailable(this.#source.conversation, cause) };
      });
      if (outcome.kind === 'stored') {
        for (const append of group) append.resolve({ kind: 'appended', length: append.length });
        // Another writer appended after this group before it was confirmed: the lengths of queued appends are taken
        // (JETSTREAM-LOG-WRITER-4), although their expected sequence would be the last one.
        if (group.at(-1)?.length !== this.#placement.length) {
          const conflict: AppendOutcome = { kind: 'conflict', length: this.#placement.length };
          for (const append of this.#takeQueue()) append.resolve(conflict);
        }
        continue;
      }
      for (const append of [...group, ...this.#takeQueue()]) {
        if (outcome.kind === 'failed') append.reject(outcome.error);
        else append.resolve(outcome);
      }
    }
    this.#draining = null;
  }

  async #commit(group: readonly QueuedAppend[]): Promise<Commit> {
    const { broker, stream, subject, conversation, isFenced } = this.#source;
    const body = encodeBody(group.flatMap((append) => append.json));
    const { length = 0, status } = group.at(-1) ?? {};
    const id = nuid.next();
    for (;;) {
      const { lastSequence } = this.#placement;
      const headers = appendHeaders(id, length, isFenced ? lastSequence : null, status);
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
          await this.#waitForServer(outcome.cause); // JETSTREAM-LOG-WRITER-3
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
      this.#becomeUnavailable(new Error('another writer deleted the log'));
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
        if (error instanceof ParleyError && error.code === 'LOG_CORRUPT') throw error;
        await this.#waitForServer(error);
      }
    }
  }

  /** JETSTREAM-LOG-WRITER-5 */
  async #waitForServer(cause: unknown): Promise<void> {
    const { signal, connection } = this.#source.broker;
    await sleep(RETRY_PAUSE_MS, signal);
    if (signal.aborted || connection.isClosed()) throw cause;
  }

  #becomeUnavailable(cause: unknown): void {
    if (this.#state.kind === 'writable') this.#state = { kind: 'unavailable', cause };
  }

  /** Queued appends that fit one message; at least one. */
  #takeGroup(): QueuedAppend[] {
    let bytes = 0;
    let count = 0;
    for (const append of this.#queue) {
      bytes += append.bytes;
      if (count > 0 && bytes > this.#maxBytes) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  /** Empties the queue; the length falls back to the durable one. */
  #takeQueue(): QueuedAppend[] {
    const taken = this.#queue;
    this.#queue = [];
    this.#length = this.#placement.length;
    return taken;
  }

  #tooLarge(bytes: number): ParleyError {
    return new ParleyError(
      'APPEND_TOO_LARGE',
      `Conversation ${this.#source.conversation}: nothing was appended: ${bytes} bytes exceed the ${this.#maxBytes} of one message`,
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
