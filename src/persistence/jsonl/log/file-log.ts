import { nextTick } from 'node:process';
import type { Entry } from '../../../conversation/index.ts';
import { messageOf, ParleyError } from '../../../kernel/index.ts';
import type { AppendOutcome, ConversationLog, OpenedLog } from '../../port.ts';
import { logClosed, readRange, serialiseBatch } from '../../rules.ts';
import { errnoOf } from './durable.ts';
import { decodeLines, encodeBatch, isSealed, joinLines, sealLines } from './line.ts';
import type { LogFile, LogFiles, StoreLog } from './log-file.ts';
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

/**
 * The only writer of one log file: group commit.
 *
 * FILE-LOG-WRITER-1 One group at a time is written, with one write and one sync. Appends made meanwhile form the next group.
 * FILE-LOG-WRITER-2 The expected length is compared with the length after all queued appends, so callers need not wait for
 *                  each other.
 * FILE-LOG-WRITER-3 When a group fails, the appends queued after it fail too: their lengths no longer fit. The file is
 *                  durably truncated to what was acknowledged; then appends work again from that length.
 * FILE-LOG-WRITER-4 When the file cannot be truncated, its content is unknown: the writer refuses everything until the log is
 *                  opened, and so read, again.
 * FILE-LOG-WRITER-5 Positions are explicit. Acknowledged bytes are never overwritten.
 */

/** Limits the memory for the encoded copy of one group. */
const GROUP_CHARACTERS = 16 * 1024 * 1024;

interface QueuedAppend {
  /** The batch's lines, without checksums. */
  readonly lines: readonly string[];
  /** The log's length after this batch. */
  readonly length: number;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
}

type WriterState =
  | { readonly kind: 'writable' }
  | { readonly kind: 'unavailable'; readonly cause: unknown }
  | { readonly kind: 'closed' };

interface DurableLog {
  /** Start of each durable entry's line. */
  readonly offsets: number[];
  bytes: number;
}

interface LogWriterOptions {
  readonly conversation: string;
  readonly path: string;
  /** What the file contains; the writer updates it after each group. */
  readonly durable: DurableLog;
  /** Returns the open file. Creates it at the first append if it is missing. */
  readonly openFile: () => Promise<LogFile>;
}

class LogWriter {
  readonly #options: LogWriterOptions;
  #state: WriterState = { kind: 'writable' };
  #queue: QueuedAppend[] = [];
  #length: number;
  #draining: Promise<void> | null = null;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#length = options.durable.offsets.length;
  }

  /** Entries durable and queued (FILE-LOG-WRITER-2). */
  get length(): number {
    return this.#length;
  }

  append(expectedLength: number, lines: readonly string[]): Promise<AppendOutcome> {
    const refused = this.#refusal();
    if (refused !== null) return Promise.reject(refused);
    if (expectedLength !== this.#length) return Promise.resolve({ kind: 'conflict', length: this.#length });
    this.#length += lines.length;
    return new Promise((resolve, reject) => {
      this.#queue.push({
        lines,
        length: this.#length,
        resolve,
        reject,
      });
      this.#draining ??= this.#drain();
    });
  }

  /** Refuses new appends and waits for those under way. */
  async close(): Promise<void> {
    this.#state = { kind: 'closed' };
    await this.#draining;
  }

  #refusal(): ParleyError | null {
    const { conversation, path } = this.#options;
    if (this.#state.kind === 'closed') return logClosed(conversation);
    return this.#state.kind === 'unavailable' ? logUnavailable(conversation, path, this.#state.cause) : null;
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      // Callers that the last group or the same event resumed append before this, and share a sync.
      await new Promise<void>((resolve) => nextTick(resolve));
      await this.#commit(this.#takeGroup());
    }
    this.#draining = null;
  }

  async #commit(group: readonly QueuedAppend[]): Promise<void> {
    const { conversation, path, durable, openFile } = this.#options;
    const lines: string[] = [];
    for (const append of group) for (const line of append.lines) lines.push(line);
    const bytes = joinLines(lines);
    const ends = sealLines(bytes);
    if (bytes.length > 0) {
      let file: LogFile;
      try {
        file = await openFile();
      } catch (cause) {
        // The file could not be created: there is nothing to truncate, and the next append tries again.
        this.#fail(group, writeFailed(conversation, path, cause));
        return;
      }
      try {
        await writeWhole(file, bytes, durable.bytes);
        await file.sync();
      } catch (cause) {
        await this.#cutBack(file, group, cause);
        return;
      }
    }
    const start = durable.bytes;
    for (const end of ends) {
      durable.offsets.push(durable.bytes);
      durable.bytes = start + end;
    }
    for (const append of group) append.resolve({ kind: 'appended', length: append.length });
  }

  /** FILE-LOG-WRITER-3, FILE-LOG-WRITER-4. */
  async #cutBack(file: LogFile, group: readonly QueuedAppend[], cause: unknown): Promise<void> {
    const { conversation, path, durable } = this.#options;
    const doomed = [...group, ...this.#takeQueue()];
    try {
      await file.truncate(durable.bytes);
      // Without this sync, a power cut could restore what is reported as not appended.
      await file.sync();
    } catch {
      // The failed write is the cause to report.
      if (this.#state.kind === 'writable') this.#state = { kind: 'unavailable', cause };
      this.#fail([...doomed, ...this.#takeQueue()], logUnavailable(conversation, path, cause));
      return;
    }
    for (const append of doomed) append.reject(writeFailed(conversation, path, cause));
  }

  #fail(group: readonly QueuedAppend[], error: ParleyError): void {
    for (const append of [...group, ...this.#takeQueue()]) append.reject(error);
  }

  /** Queued appends up to `GROUP_CHARACTERS`; at least one. */
  #takeGroup(): QueuedAppend[] {
    let characters = 0;
    let count = 0;
    for (const append of this.#queue) {
      for (const line of append.lines) characters += line.length;
      if (count > 0 && characters > GROUP_CHARACTERS) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  /** Empties the queue; the length falls back to the durable one. */
  #takeQueue(): QueuedAppend[] {
    const taken = this.#queue;
    this.#queue = [];
    this.#length = this.#options.durable.offsets.length;
    return taken;
  }
}

/** Usually one write; the rest is written again when the system took only a part. */
async function writeWhole(file: LogFile, bytes: Buffer, position: number): Promise<void> {
  let written = 0;
  while (written < bytes.length) {
    const taken = await file.write(written === 0 ? bytes : bytes.subarray(written), position + written);
    if (taken === 0) throw new Error('the system took no bytes and gave no reason');
    written += taken;
  }
}

function writeFailed(conversation: string, path: string, cause: unknown): ParleyError {
  return new ParleyError(
    'LOG_WRITE_FAILED',
    `Conversation ${conversation}: nothing was appended, writing ${path} failed: ${messageOf(cause)}`,
    { hint: hintFor(cause), cause },
  );
}

function logUnavailable(conversation: string, path: string, cause: unknown): ParleyError {
  return new ParleyError(
    'LOG_UNAVAILABLE',
    `Conversation ${conversation}: ${path} accepts no appends, since a failed write could not be undone: ${messageOf(cause)}`,
    {
      hint: `${hintFor(cause)} Then open the conversation again to read what the file contains.`,
      cause,
    },
  );
}

function hintFor(cause: unknown): string {
  switch (errnoOf(cause)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return 'Free space on the disk of the data directory; appends work again as soon as there is space.';
    case 'EIO':
      return 'The disk reports errors: check the kernel log and the disk, and copy the data directory.';
    default:
      return 'Check the disk and the permissions of the data directory.';
  }
}
