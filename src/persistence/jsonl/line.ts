import { crc32 } from 'node:zlib';
import type { Entry } from '../../conversation/index.ts';

/**
 * One line of `log.jsonl`: the entry's JSON with two fields of the format behind the entry's own.
 *
 * F1 `"left":N`: so many lines of the same batch follow. Absent on a batch's last line, unless the entry has a
 *    field `left` or `sum` itself: then `"left":0` stands there.
 * F2 `"sum":"xxxxxxxx"`, always last: CRC-32 of the line's bytes before `,"sum"`, eight hexadecimal digits.
 * F3 An entry's own `left` and `sum` survive: where `left` stands before the seal, both are cut off as text before
 *    the rest is parsed. Where it does not, the entry has neither, and taking `sum` off what was parsed is cheaper.
 */

/** What a seal begins with, and its length in bytes: `,"sum":"xxxxxxxx"}`. */
export const SEAL_KEY = ',"sum":"';
export const SEAL_BYTES = 18;
const LEFT_KEY = ',"left":';

/** Stands behind the brace that closes the JSON, in whose place the seal's comma will stand. */
const BLANK_SEAL = `${SEAL_KEY.slice(1)}00000000"}\n`;
/** From the newline back to the sum's first digit. */
const DIGITS_FROM_END = 10;
const NEWLINE = 10;
const COMMA = 44;
const QUOTE = 34;
const CLOSING_BRACE = 125;
const HEXADECIMAL = Buffer.from('0123456789abcdef');

/** One batch's lines as `joinLines` takes them: each entry's JSON with its `left` (F1). */
export function encodeBatch(entries: readonly Entry[], json: readonly string[]): string[] {
  return json.map((text, position) => {
    const left = json.length - 1 - position;
    const entry = entries[position];
    const marked = left > 0 || (entry !== undefined && ('left' in entry || 'sum' in entry));
    return marked ? `${text.slice(0, -1)}${LEFT_KEY}${left}}` : text;
  });
}

/** Lines to bytes, each with a blank seal and a newline behind it. */
export function joinLines(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((line) => line + BLANK_SEAL).join(''));
}

/**
 * Fills in the sums of whole lines and answers where each line ends, its newline included. Done on a group's bytes,
 * since a checksum of a string would turn each line into bytes twice.
 */
export function sealLines(bytes: Buffer): number[] {
  const ends: number[] = [];
  let start = 0;
  for (let newline = bytes.indexOf(NEWLINE); newline !== -1; newline = bytes.indexOf(NEWLINE, start)) {
    bytes[newline - SEAL_BYTES] = COMMA;
    let sum = crc32(bytes.subarray(start, newline - SEAL_BYTES));
    for (let at = newline - DIGITS_FROM_END + 7; at >= newline - DIGITS_FROM_END; at -= 1) {
      bytes[at] = HEXADECIMAL[sum & 15] ?? 0;
      sum >>>= 4;
    }
    start = newline + 1;
    ends.push(start);
  }
  return ends;
}

/** True when the bytes `start` to `end` (no newline) are a line whose checksum fits. */
export function isSealed(bytes: Buffer, start: number, end: number): boolean {
  const bodyEnd = end - SEAL_BYTES;
  if (bodyEnd <= start || bytes[bodyEnd] !== COMMA || bytes[end - 1] !== CLOSING_BRACE) return false;
  let sum = crc32(bytes.subarray(start, bodyEnd));
  for (let at = end - 3; at >= end - DIGITS_FROM_END; at -= 1) {
    if (bytes[at] !== HEXADECIMAL[sum & 15]) return false;
    sum >>>= 4;
  }
  return (
    bytes.toString('latin1', bodyEnd, bodyEnd + SEAL_KEY.length) === SEAL_KEY && bytes[end - 2] === QUOTE
  );
}

export interface DecodedLine {
  readonly entry: Entry;
  /** Lines of the same batch that follow. */
  readonly left: number;
}

/** Parses the text of a line for which `isSealed` holds; null when it is no entry at all. */
export function decodeLine(line: string): DecodedLine | null {
  try {
    const end = leftEnd(line);
    if (end === null) {
      const parsed: unknown = JSON.parse(line);
      if (!isEntry(parsed)) return null;
      delete (parsed as { sum?: unknown }).sum;
      return { entry: parsed, left: 0 };
    }
    const parsed: unknown = JSON.parse(`${line.slice(0, end)}}`);
    const left = Number(line.slice(end + LEFT_KEY.length, -SEAL_BYTES));
    return isEntry(parsed) ? { entry: parsed, left } : null;
  } catch {
    return null;
  }
}

/** Where the entry's own fields end when the format's `left` follows (F1). Read from the end, the line may be long. */
function leftEnd(line: string): number | null {
  const bodyEnd = line.length - SEAL_BYTES;
  let digits = bodyEnd;
  while (digits > 0 && isDigit(line.charCodeAt(digits - 1))) digits -= 1;
  return digits < bodyEnd && line.endsWith(LEFT_KEY, digits) ? digits - LEFT_KEY.length : null;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Entries are checked when they are made; here only that the line holds one, so that reading stays cheap. */
function isEntry(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && 'index' in value && typeof value.index === 'number';
}
