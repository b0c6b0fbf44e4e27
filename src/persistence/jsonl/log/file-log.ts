import type { Entry } from '../../../conversation/index.ts';
import { errnoOf, messageOf, ParleyError } from '../../../kernel/index.ts';
import { type Commit, GroupCommit, type QueuedAppend } from '../../group-commit.ts';
import type { AppendOutcome, ConversationLog, OpenedLog } from '../../port.ts';
import { logClosed, readRange, serialiseBatch } from '../../rules.ts';
import type { LogFile, LogFiles, StoreLog } from './durable.ts';
import { decodeLines, encodeBatch, isSealed, joinLines, sealLines } from './line.ts';
import { recoverLog, UNREADABLE_HINT } from './recovery.ts';

/** One open log: its file, and the offset of each durable entry. */

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

/** Characters: limits the memory for the encoded copy of one group. */
const GROUP_CHARACTERS = 16 * 1024 * 1024;

interface DurableLog {
  /** Start of each durable entry's line. */
  readonly offsets: number[];
  bytes: number;
}

/**
 * FILE-LOG-1 A group is one write and one sync (GROUP-COMMIT-1).
 * FILE-LOG-2 When a group fails, the file is durably truncated to what was acknowledged. If that fails too, its content is unknown
 *            (GROUP-COMMIT-4).
 * FILE-LOG-3 Positions are explicit. Acknowledged bytes are never overwritten.
 */
class FileLog implements ConversationLog {
  readonly conversation: string;
  readonly #options: FileLogOptions;
  readonly #durable: DurableLog;
  readonly #writer: GroupCommit;
  #file: LogFile | null;
  #closing: Promise<void> | null = null;

  constructor(options: FileLogOptions, durable: DurableLog, file: LogFile | null) {
    const { conversation, path } = options;
    this.conversation = conversation;
    this.#options = options;
    this.#durable = durable;
    this.#file = file;
    this.#writer = new GroupCommit({
      conversation,
      maxSize: () => GROUP_CHARACTERS,
      durableLength: () => durable.offsets.length,
      commit: (group) => this.#commit(group),
      unavailable: (cause) => logUnavailable(conversation, path, cause),
    });
  }

  get length(): number {
    return this.#writer.length;
  }

  // Not `async`: that would cost a second promise for each of thousands of appends a second.
  append(expectedLength: number, entries: readonly Entry[]): Promise<AppendOutcome> {
    try {
      // Encoded now: the caller may change its entries before they are written.
      const lines = encodeBatch(entries, serialiseBatch(this.conversation, expectedLength, entries));
      let size = 0;
      for (const line of lines) size += line.length;
      return this.#writer.append(expectedLength, lines, size);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #commit(group: readonly QueuedAppend[]): Promise<Commit> {
    const { conversation, path, files } = this.#options;
    const durable = this.#durable;
    const lines: string[] = [];
    for (const append of group) for (const line of append.lines) lines.push(line);
    const bytes = joinLines(lines);
    const ends = sealLines(bytes);
    try {
      this.#file ??= await files.create(path);
    } catch (cause) {
      // The file could not be created: there is nothing to truncate, and the next append tries again.
      return { kind: 'failed', error: writeFailed(conversation, path, cause) };
    }
    try {
      await writeWhole(this.#file, bytes, durable.bytes);
      await this.#file.sync();
    } catch (cause) {
      return { kind: 'failed', error: await this.#cutBack(this.#file, cause) };
    }
    const start = durable.bytes;
    for (const end of ends) {
      durable.offsets.push(durable.bytes);
      durable.bytes = start + end;
    }
    return { kind: 'stored' };
  }

  /** FILE-LOG-2 */
  async #cutBack(file: LogFile, cause: unknown): Promise<ParleyError> {
    const { conversation, path } = this.#options;
    try {
      await file.truncate(this.#durable.bytes);
      // Without this sync, a power cut could restore what is reported as not appended.
      await file.sync();
      return writeFailed(conversation, path, cause);
    } catch {
      this.#writer.becomeUnavailable(cause); // the failed write is the cause to report
      return logUnavailable(conversation, path, cause);
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
