import { nuid } from 'nats';
import type { Entry } from '../../conversation/index.ts';
import { messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import { type Commit, GroupCommit, type QueuedAppend } from '../group-commit.ts';
import type { AppendOutcome, ConversationLog, OpenedLog, WorkStatus } from '../port.ts';
import { readRange, serialiseBatch } from '../rules.ts';
import { publish, storeError } from './broker.ts';
import { maxBody } from './documents.ts';
import {
  appendHeaders,
  bodySize,
  encodeBody,
  follow,
  type LogSource,
  Placement,
  type Progress,
  readEntries,
} from './log-reader.ts';

/** One open log, and the position of each durable entry. */

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
    const range = readRange(from, to, this.#placement.length);
    return readEntries(this.#source, this.#placement, range.from, range.to);
  }

  close(): Promise<void> {
    this.#closing ??= this.#writer.close().finally(this.#onClosed);
    return this.#closing;
  }

  async #commit(group: readonly QueuedAppend[]): Promise<Commit> {
    const { broker, stream, subject, conversation, isFenced } = this.#source;
    const body = encodeBody(group.flatMap(({ lines }) => lines));
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
        if (error instanceof ParleyError && error.code === 'LOG_CORRUPT') throw error;
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
