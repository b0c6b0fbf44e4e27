import { nuid } from 'nats';
import { messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import type { AppendOutcome, Standing } from '../port.ts';
import { logClosed } from '../rules.ts';
import { appendHeaders, bodySize, encodeBody, HEADER_ROOM } from './append-message.ts';
import { publish, storeError } from './broker.ts';
import { follow, type LogSource, type Progress } from './log-reader.ts';
import type { Placement } from './placement.ts';

/**
 * The one writer of one log in this process; the server decides between it and others.
 *
 * JETSTREAM-LOG-WRITER-1 An append is one message that names the last sequence of its subject: it is stored whole, behind what its writer
 *    knew, or not at all (L3). Appends that wait for one another share a message, as far as the payload goes.
 * JETSTREAM-LOG-WRITER-2 The expected length is compared with the length that all queued appends will make, so callers need not wait for
 *    one another.
 * JETSTREAM-LOG-WRITER-3 An append whose acknowledgement was lost is neither done nor failed until the stream says so: it is published
 *    again, naming the same sequence, until the server takes it or has something else there. Of the two copies one at
 *    most is stored; its id tells whose it is (L12).
 * JETSTREAM-LOG-WRITER-4 An append that fails or meets a conflict takes those queued behind it along: they named lengths that will not be.
 * JETSTREAM-LOG-WRITER-5 When nobody may wait any longer for the answer, the writer refuses everything: the log has to be opened, and so
 *    read, again.
 */

interface QueuedAppend {
  readonly json: readonly string[];
  readonly standing: Standing | undefined;
  readonly bytes: number;
  /** The log's length with this append. */
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

/** Between two attempts at an append whose outcome is unknown. */
const PAUSE_MS = 100;

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

  append(expectedLength: number, json: readonly string[], standing?: Standing): Promise<AppendOutcome> {
    const refused = this.refusal();
    if (refused !== null) return Promise.reject(refused);
    if (expectedLength !== this.#length || json.length === 0) {
      const kind = expectedLength === this.#length ? 'appended' : 'conflict';
      return Promise.resolve({ kind, length: this.#length });
    }
    const bytes = bodySize(json);
    if (bytes > this.#room) return Promise.reject(this.#tooLarge(bytes));
    this.#length += json.length;
    return new Promise((resolve, reject) => {
      this.#queue.push({ json, standing, bytes, length: this.#length, resolve, reject });
      this.#draining ??= this.#drain();
    });
  }

  /** Why nothing is taken or read; null: nothing is wrong. */
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

  get #room(): number {
    return (this.#source.broker.connection.info?.max_payload ?? 1024 ** 2) - HEADER_ROOM;
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
        // Somebody wrote behind it before that was found out: what is queued named lengths that are taken (JETSTREAM-LOG-WRITER-4), and so
        // will what comes later from who does not know it yet, though the sequence that it would name is the last one.
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
    const { length = 0, standing } = group.at(-1) ?? {};
    const id = nuid.next();
    for (;;) {
      const { lastSequence } = this.#placement;
      const headers = appendHeaders(id, length, isFenced ? lastSequence : null, standing);
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
          const found = await this.#whatIsThere(id);
          if (found !== null) return found;
        }
      }
    }
  }

  /** What stands where the append wanted to stand; null: nothing that matters, so it is published again. */
  async #whatIsThere(id: string): Promise<Commit | null> {
    const ids: string[] = [];
    const progress = await this.#follow(ids);
    if (progress.kind === 'replaced') {
      this.#becomeUnavailable(new Error('the log was deleted by somebody else'));
      return { kind: 'conflict', length: progress.length };
    }
    if (ids.includes(id)) return { kind: 'stored' };
    if (ids.length > 0) return { kind: 'conflict', length: this.#placement.length };
    await this.#waitForServer(new Error('the server refuses it and has nothing in its place'));
    return null;
  }

  /** Adds the ids of the appends that are new. */
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
    await sleep(PAUSE_MS, signal);
    if (signal.aborted || connection.isClosed()) throw cause;
  }

  #becomeUnavailable(cause: unknown): void {
    if (this.#state.kind === 'writable') this.#state = { kind: 'unavailable', cause };
  }

  /** All that waits, within one payload; at least one append. */
  #takeGroup(): QueuedAppend[] {
    let bytes = 0;
    let count = 0;
    for (const append of this.#queue) {
      bytes += append.bytes;
      if (count > 0 && bytes > this.#room) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  /** Everything queued; the length falls back to what is durable. */
  #takeQueue(): QueuedAppend[] {
    const taken = this.#queue;
    this.#queue = [];
    this.#length = this.#placement.length;
    return taken;
  }

  #tooLarge(bytes: number): ParleyError {
    return new ParleyError(
      'APPEND_TOO_LARGE',
      `Conversation ${this.#source.conversation}: nothing was appended, its ${bytes} bytes are more than the ${this.#room} of one message`,
      { hint: 'Append fewer entries at once, or raise max_payload of the nats-server.' },
    );
  }
}

function unavailable(conversation: string, cause: unknown): ParleyError {
  return new ParleyError(
    'LOG_UNAVAILABLE',
    `Conversation ${conversation}: whether the last append was stored is not known: ${messageOf(cause)}`,
    {
      hint: 'Open the conversation again when the nats-server answers: what the stream holds is read afresh.',
      cause,
    },
  );
}
