import type { Entry } from '../../../conversation/index.ts';
import { messageOf, ParleyError } from '../../../kernel/index.ts';
import type { AppendOutcome, ConversationLog, OpenedLog } from '../../port.ts';
import { logClosed, readRange, serialiseBatch } from '../../rules.ts';
import { decodeLines, encodeBatch, isSealed } from './line.ts';
import type { LogFile, LogFiles, StoreLog } from './log-file.ts';
import { type DurableLog, LogWriter } from './log-writer.ts';
import { recoverLog, UNREADABLE_HINT } from './recovery.ts';

/** One open log: its file, its writer, and the offset of each durable entry. */

interface FileLogOptions {
  readonly conversation: string;
  readonly path: string;
  readonly files: LogFiles;
  readonly log: StoreLog;
  /** Called once, after the log is closed. */
  readonly onClosed: () => void;
}

export async function openFileLog(options: FileLogOptions): Promise<OpenedLog> {
  const { conversation, path, files } = options;
  const file = await files.open(path).catch((cause: unknown) => {
    throw new ParleyError('LOG_UNREADABLE', `${path} cannot be opened: ${messageOf(cause)}`, {
      hint: UNREADABLE_HINT,
      cause,
    });
  });
  if (file === null) {
    return { log: new FileLog(options, { offsets: [], bytes: 0 }, null), entries: [], tornTail: null };
  }
  const recovered = await recoverLog(conversation, path, file, options.log).catch(async (error: unknown) => {
    await file.close();
    throw error;
  });
  const { entries, offsets, bytes, tornTail } = recovered;
  if (entries.length > 0) return { log: new FileLog(options, { offsets, bytes }, file), entries, tornTail };
  // The name of an empty file may not be durable: the first append creates it again.
  await file.close();
  return { log: new FileLog(options, { offsets, bytes }, null), entries, tornTail };
}

class FileLog implements ConversationLog {
  readonly conversation: string;
  readonly #options: FileLogOptions;
  readonly #durable: DurableLog;
  readonly #writer: LogWriter;
  #file: LogFile | null;
  #closing: Promise<void> | null = null;

  constructor(options: FileLogOptions, durable: DurableLog, file: LogFile | null) {
    this.conversation = options.conversation;
    this.#options = options;
    this.#durable = durable;
    this.#file = file;
    this.#writer = new LogWriter({
      conversation: options.conversation,
      path: options.path,
      durable,
      openFile: async () => {
        this.#file ??= await options.files.create(options.path);
        return this.#file;
      },
    });
  }

  get length(): number {
    return this.#writer.length;
  }

  // Not `async`: that would cost a second promise for each of thousands of appends a second.
  append(expectedLength: number, entries: readonly Entry[]): Promise<AppendOutcome> {
    try {
      // Encoded now: the caller may change its entries before they are written.
      const json = serialiseBatch(this.conversation, expectedLength, entries);
      return this.#writer.append(expectedLength, encodeBatch(entries, json));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async read(from: number, to?: number): Promise<Entry[]> {
    if (this.#closing !== null) throw logClosed(this.conversation);
    const { offsets, bytes: end } = this.#durable;
    const range = readRange(from, to, offsets.length);
    const start = offsets[range.from];
    if (this.#file === null || start === undefined || range.from === range.to) return [];
    const bytes = await this.#file.read(start, (offsets[range.to] ?? end) - start);
    const entries: Entry[] = [];
    let lineStart = 0;
    for (let index = range.from; index < range.to; index += 1) {
      const lineEnd = (offsets[index + 1] ?? end) - start - 1;
      entries.push(this.#entryAt(bytes, lineStart, lineEnd, index));
      lineStart = lineEnd + 1;
    }
    return entries;
  }

  /** PERSISTENCE-PORT-4: the file may have been damaged after the log was opened. */
  #entryAt(bytes: Buffer, start: number, end: number, index: number): Entry {
    const whole = end <= bytes.length && isSealed(bytes, start, end);
    const [decoded] = whole ? decodeLines(bytes, start, [end]) : [];
    if (decoded?.entry.index === index) return decoded.entry;
    throw new ParleyError(
      'LOG_CORRUPT',
      `${this.#options.path} is damaged at line ${index + 1}: it changed since it was opened`,
      {
        hint: 'Another program writes to this file, or its disk fails. Stop the daemon, copy the file, check the disk, then start again.',
      },
    );
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await this.#writer.close();
      await this.#file?.close();
    } finally {
      this.#options.onClosed();
    }
  }
}
