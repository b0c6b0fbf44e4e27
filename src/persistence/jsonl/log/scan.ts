import { crc32 } from 'node:zlib';
import type { Entry } from '../../../conversation/index.ts';
import { decodeLines, isSeal, isSealed, SEAL_BYTES, SEAL_KEY } from './line.ts';

/**
 * Classifies the bytes of a log as whole, torn or damaged. Pure.
 *
 * SCAN-1 Indexes are dense from 0, and a batch's lines count down to its end. A sealed line that breaks this is damage.
 * SCAN-2 Bad bytes at the end, with no sealed line after them, are an incomplete write that was never acknowledged: they may
 *        be cut, back to the last whole batch.
 * SCAN-3 A bad line with a sealed line after it is damage, and nothing may be cut. A page of an unsynced group that a power
 *        cut lost looks the same and also counts as damage: keeping data is worth more than opening.
 */

export interface LogContents {
  readonly entries: Entry[];
  /** Start of each entry's line. */
  readonly offsets: number[];
  /** Bytes up to the end of the last whole batch. */
  readonly bytes: number;
  /** The number of entries up to the end of each whole batch. */
  readonly ends: number[];
}

export type ScanVerdict =
  | ({ readonly kind: 'whole' } & LogContents)
  | ({ readonly kind: 'torn' } & LogContents)
  | { readonly kind: 'damaged'; readonly line: number; readonly offset: number; readonly reason: string };

const NEWLINE = 10;
/** Lines are parsed in groups of this size, which measured fastest. */
const GROUP_BYTES = 32_768;

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
