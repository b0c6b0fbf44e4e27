import { crc32 } from 'node:zlib';
import type { Entry } from '../../../conversation/index.ts';
import { decodeLines, isSeal, isSealed, SEAL_BYTES, SEAL_KEY } from './line.ts';

/**
 * Tells a whole log from a torn and from a damaged one. Pure: bytes in, verdict out.
 *
 * SCAN-1 Indexes are dense from 0 and a batch's lines count down to its end; a sealed line that breaks this is damage.
 * SCAN-2 What is bad at the very end, with no sealed line after it, is a write that was cut short: never acknowledged,
 *    so it may be cut back to the last whole batch.
 * SCAN-3 A bad line with a sealed line after it is damage. Nothing may be cut, since acknowledged entries follow.
 *    (A lost page inside one unsynced group looks the same after a power cut. It is called damage too: losing
 *    nothing wins over opening at once.)
 */

export interface LogContents {
  readonly entries: Entry[];
  /** Where each entry's line begins. */
  readonly offsets: number[];
  /** Bytes up to the end of the last whole batch. */
  readonly bytes: number;
}

export type ScanVerdict =
  | ({ readonly kind: 'whole' } & LogContents)
  | ({ readonly kind: 'torn' } & LogContents)
  | { readonly kind: 'damaged'; readonly line: number; readonly offset: number; readonly reason: string };

const NEWLINE = 10;
/** Lines are parsed together until they are so long: fewer, or many more, take longer. */
const GROUP_BYTES = 32_768;

export function scanLog(bytes: Buffer): ScanVerdict {
  const entries: Entry[] = [];
  const offsets: number[] = [];
  let whole = { entries: 0, bytes: 0 };
  let owed = 0;
  let start = 0;
  while (start < bytes.length) {
    const ends = sealedLines(bytes, start);
    if (ends.length === 0) {
      return sealedLineAfter(bytes, start)
        ? damaged(entries.length, start, 'its checksum does not fit, and whole lines follow')
        : torn(entries, offsets, whole);
    }
    for (const [at, decoded] of decodeLines(bytes, start, ends).entries()) {
      if (decoded === null || !isWhole(decoded.entry))
        return damaged(entries.length, start, 'it is not an entry');
      if (decoded.entry.index !== entries.length) {
        const holds = `it holds index ${decoded.entry.index} where ${entries.length} belongs`;
        return damaged(entries.length, start, holds);
      }
      if (owed > 0 && decoded.left !== owed - 1) {
        return damaged(entries.length, start, 'its batch does not count down');
      }
      entries.push(decoded.entry);
      offsets.push(start);
      owed = decoded.left;
      start = (ends[at] ?? start) + 1;
      if (owed === 0) whole = { entries: entries.length, bytes: start };
    }
  }
  return owed === 0
    ? { kind: 'whole', entries, offsets, bytes: bytes.length }
    : torn(entries, offsets, whole);
}

/** Where the lines from `start` on end, as far as each is sealed, and some tens of them at most; none: the first is not. */
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

/** What every entry has, whatever its kind: without it no conversation can be folded. */
function isWhole({ id, type, author }: Readonly<Partial<Record<keyof Entry, unknown>>>): boolean {
  return typeof id === 'string' && typeof type === 'string' && typeof author === 'object' && author !== null;
}

function damaged(index: number, offset: number, reason: string): ScanVerdict {
  return { kind: 'damaged', line: index + 1, offset, reason };
}

function torn(entries: Entry[], offsets: number[], whole: { entries: number; bytes: number }): ScanVerdict {
  entries.length = whole.entries;
  offsets.length = whole.entries;
  return { kind: 'torn', entries, offsets, bytes: whole.bytes };
}

/**
 * True when a sealed line begins somewhere behind `start` (SCAN-2, SCAN-3). A line begins behind a newline; or, where the
 * newline itself was damaged, one byte behind the seal of the line before. Each byte is summed up once for either, since
 * what was posted may hold what looks like a seal, however often.
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
