import type { Entry } from '../../conversation/index.ts';
import type { AppendOutcome, ConversationLog, OpenedLog, WorkStatus } from '../port.ts';
import { readRange, serialiseBatch } from '../rules.ts';
import { follow, type LogSource, Placement, readEntries } from './log-reader.ts';
import { StreamLogWriter } from './log-writer.ts';

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
