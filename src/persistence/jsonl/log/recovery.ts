import { lstat, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Entry } from '../../../conversation/index.ts';
import { errnoOf, messageOf, orNullIfMissing, ParleyError } from '../../../kernel/index.ts';
import type { TornTail } from '../../port.ts';
import { fileTimestamp, type LogFile, type StoreLog, writeNewFile } from './durable.ts';
import { decodeLines, isSeal, isSealed, SEAL_BYTES, SEAL_KEY } from './line.ts';

/**
 * Reads a log that may be torn or damaged.
 *
 * RECOVERY-1 A torn tail is durable in a file of its own before it is cut (PERSISTENCE-PORT-4).
 * RECOVERY-2 A damaged log is not changed and gets a note beside it; only its own conversation is refused.
 * RECOVERY-3 Entries that were read count as durable, so they are synced first: after a kill between write and sync they may
 *            be in the page cache only.
 */

interface RecoveredLog extends LogContents {
  readonly tornTail: TornTail | null;
}

/** Reads a log that this process owns, and cuts a torn tail. */
export async function recoverLog(
  conversation: string,
  path: string,
  file: LogFile,
  log: StoreLog,
): Promise<RecoveredLog> {
  const bytes = await file.readAll();
  const verdict = scanLog(bytes);
  if (verdict.kind === 'damaged') {
    const note = await leaveNote(path, bytes, verdict);
    log({ type: 'log-quarantined', conversation, line: verdict.line, reason: verdict.reason, note });
    throw damagedError(path, verdict);
  }
  if (verdict.kind === 'whole') {
    await file.sync();
    return { ...verdict, tornTail: null };
  }
  const tail = bytes.subarray(verdict.bytes);
  const keptIn = await writeNewFile(dirname(path), `log.torn-${fileTimestamp()}`, tail);
  await file.truncate(verdict.bytes);
  await file.sync();
  log({ type: 'torn-tail-cut', conversation, bytes: tail.length, keptIn });
  return { ...verdict, tornTail: { bytes: tail.length, keptIn } };
}

/** The content of a log file, for readers that must not change it. */
export interface LogFileContents {
  readonly entries: Entry[];
  /** Bytes after the last whole batch: an incomplete write, or one in progress. */
  readonly tornTail: { readonly bytes: number } | null;
  /** The number of entries up to the end of each append. */
  readonly ends: readonly number[];
}

/** Reads a log without owning it: takes no lock, changes nothing. */
export async function readLogFile(path: string): Promise<LogFileContents> {
  const bytes = await readPlainFile(path).catch((cause: unknown) => {
    if (errnoOf(cause) === 'ENOENT') {
      throw new ParleyError('LOG_NOT_FOUND', `There is no log ${path}`, {
        hint: 'check the conversation id and the data directory; one in JetStream has no files: ask a daemon, or move it with `parley migrate`',
        cause,
      });
    }
    throw new ParleyError('LOG_UNREADABLE', `${path} cannot be read: ${messageOf(cause)}`, {
      hint: UNREADABLE_HINT,
      cause,
    });
  });
  const verdict = scanLog(bytes);
  if (verdict.kind === 'damaged') throw damagedError(path, verdict);
  const torn = bytes.length - verdict.bytes;
  const { entries, ends } = verdict;
  return { entries, ends, tornTail: verdict.kind === 'torn' ? { bytes: torn } : null };
}

/** What to do about a log that cannot be opened. */
export const UNREADABLE_HINT =
  'A log is a plain file that this user may read and write. See to that, or restore it from a backup.';

/** Reading another kind of file may never end. */
async function readPlainFile(path: string): Promise<Buffer> {
  const found = await orNullIfMissing(stat(path));
  if (found?.isFile()) return readFile(path);
  if (found === null && (await orNullIfMissing(lstat(path))) === null) return readFile(path); // says that it is missing
  throw new Error(found ? 'it is no plain file' : 'it is a link to what is not there');
}

type Damage = Extract<ScanVerdict, { kind: 'damaged' }>;

function damagedError(path: string, damage: Damage): ParleyError {
  return new ParleyError(
    'LOG_CORRUPT',
    `${path} is damaged at line ${damage.line} (byte ${damage.offset}): ${damage.reason}`,
    {
      hint:
        `Nothing was changed, and other conversations continue. Stop the daemon, keep a copy of the file, then restore it ` +
        `from a backup${wholeBefore(damage.line)} (docs/guides/troubleshooting.md).`,
    },
  );
}

function wholeBefore(line: number): string {
  if (line === 1) return '; no line before this one could be kept';
  if (line === 2) return ', or keep its first line alone: it is whole';
  return `, or keep its first ${line - 1} lines alone: they are whole`;
}

/** One note per content of the file: opening a damaged log again adds none. */
async function leaveNote(path: string, bytes: Buffer, damage: Damage): Promise<string | null> {
  const directory = dirname(path);
  const name = `quarantine-${crc32(bytes).toString(16).padStart(8, '0')}.json`;
  const note = { file: basename(path), bytes: bytes.length, foundAt: new Date().toISOString(), ...damage };
  try {
    const existing = await readFile(join(directory, name)).catch(() => null);
    if (existing !== null) return join(directory, name);
    return await writeNewFile(directory, name, `${JSON.stringify(note)}\n`);
  } catch {
    return null; // the damage is reported even if the disk is full or read-only
  }
}

interface LogContents {
  readonly entries: Entry[];
  /** Start of each entry's line. */
  readonly offsets: number[];
  /** Bytes up to the end of the last whole batch. */
  readonly bytes: number;
  /** The number of entries up to the end of each whole batch. */
  readonly ends: number[];
}

type ScanVerdict =
  | ({ readonly kind: 'whole' } & LogContents)
  | ({ readonly kind: 'torn' } & LogContents)
  | { readonly kind: 'damaged'; readonly line: number; readonly offset: number; readonly reason: string };

const NEWLINE = 10;
/** Lines are parsed in groups of this size, which measured fastest. */
const GROUP_BYTES = 32_768;

/**
 * Classifies the bytes of a log as whole, torn or damaged. Pure.
 *
 * SCAN-1 Indexes are dense from 0, and a batch's lines count down to its end. A sealed line that breaks this is damage.
 * SCAN-2 Bad bytes at the end, with no sealed line after them, are an incomplete write that was never acknowledged: they may
 *        be cut, back to the last whole batch.
 * SCAN-3 A bad line with a sealed line after it is damage, and nothing may be cut. A page of an unsynced group that a power
 *        cut lost looks the same and also counts as damage: keeping data is worth more than opening.
 */
export function scanLog(bytes: Buffer): ScanVerdict {
  const entries: Entry[] = [];
  const offsets: number[] = [];
  const ends: number[] = [];
  let whole = { entries: 0, bytes: 0 };
  let remainingLines = 0;
  let start = 0;
  while (start < bytes.length) {
    const lines = sealedLines(bytes, start);
    if (lines.length === 0) {
      return sealedLineAfter(bytes, start)
        ? damaged(entries.length, start, 'its checksum does not fit, and whole lines follow')
        : torn({ entries, offsets, ends }, whole);
    }
    for (const [at, decoded] of decodeLines(bytes, start, lines).entries()) {
      if (decoded === null || !isWhole(decoded.entry))
        return damaged(entries.length, start, 'it is not an entry');
      if (decoded.entry.index !== entries.length) {
        const holds = `it holds index ${decoded.entry.index} where ${entries.length} belongs`;
        return damaged(entries.length, start, holds);
      }
      if (remainingLines > 0 && decoded.left !== remainingLines - 1) {
        return damaged(entries.length, start, 'its batch does not count down');
      }
      entries.push(decoded.entry);
      offsets.push(start);
      remainingLines = decoded.left;
      start = (lines[at] ?? start) + 1;
      if (remainingLines > 0) continue;
      whole = { entries: entries.length, bytes: start };
      ends.push(entries.length);
    }
  }
  return remainingLines === 0
    ? { kind: 'whole', entries, offsets, ends, bytes: bytes.length }
    : torn({ entries, offsets, ends }, whole);
}

/** The ends of consecutive sealed lines from `start`, up to `GROUP_BYTES`. Empty: the first line is not sealed. */
function sealedLines(bytes: Buffer, start: number): number[] {
  const ends: number[] = [];
  let from = start;
  while (from < bytes.length && from - start < GROUP_BYTES) {
    const end = bytes.indexOf(NEWLINE, from);
    if (end === -1 || !isSealed(bytes, from, end)) break;
    ends.push(end);
    from = end + 1;
  }
  return ends;
}

/** Fields that every entry has: the state of a conversation cannot be computed without them. */
function isWhole({ id, type, author }: Readonly<Partial<Record<keyof Entry, unknown>>>): boolean {
  return typeof id === 'string' && typeof type === 'string' && typeof author === 'object' && author !== null;
}

function damaged(index: number, offset: number, reason: string): ScanVerdict {
  return { kind: 'damaged', line: index + 1, offset, reason };
}

function torn(read: Omit<LogContents, 'bytes'>, whole: { entries: number; bytes: number }): ScanVerdict {
  read.entries.length = whole.entries;
  read.offsets.length = whole.entries;
  return { kind: 'torn', ...read, bytes: whole.bytes };
}

/**
 * True if a sealed line begins after `start` (SCAN-2, SCAN-3): after a newline or, if the newline is damaged, one byte after
 * the previous seal. Linear: posted text may contain any number of strings that look like seals.
 */
function sealedLineAfter(bytes: Buffer, start: number): boolean {
  let behindSeal = start;
  const line = { begin: start, sum: 0, upTo: start };
  let mark = bytes.indexOf(SEAL_KEY, start);
  while (mark !== -1) {
    const newline = bytes.subarray(line.upTo, mark).lastIndexOf(NEWLINE);
    if (newline !== -1) {
      line.upTo += newline + 1;
      line.begin = line.upTo;
      line.sum = 0;
    }
    line.sum = crc32(bytes.subarray(line.upTo, mark), line.sum);
    line.upTo = mark;
    const end = mark + SEAL_BYTES;
    if (line.begin > start && line.begin < mark && isSeal(bytes, mark, line.sum)) return true;
    if (behindSeal > start && isSealed(bytes, behindSeal, end)) return true;
    behindSeal = end + 1;
    mark = bytes.indexOf(SEAL_KEY, mark + SEAL_KEY.length);
  }
  return false;
}
