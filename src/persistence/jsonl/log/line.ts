import { isAscii, transcode } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { Entry } from '../../../conversation/index.ts';

/**
 * One line of `log.jsonl`: the entry's JSON with two fields of the format behind the entry's own.
 *
 * LINE-1 `"left":N`: so many lines of the same batch follow. Absent on a batch's last line, unless the entry has a
 *    field `left` or `sum` itself: then `"left":0` stands there.
 * LINE-2 `"sum":"xxxxxxxx"`, always last: CRC-32 of the line's bytes before `,"sum"`, eight hexadecimal digits.
 * LINE-3 An entry's own `left` and `sum` survive: those of the format are cut off as bytes before the rest is parsed.
 */

/** What a seal begins with, and its length in bytes: `,"sum":"xxxxxxxx"}`. */
export const SEAL_KEY = ',"sum":"';
export const SEAL_BYTES = 18;
const LEFT_KEY = ',"left":';
const SEAL_KEY_BYTES = Buffer.from(SEAL_KEY);
const LEFT_KEY_BYTES = Buffer.from(LEFT_KEY);

/** Stands behind the brace that closes the JSON, in whose place the seal's comma will stand. */
const BLANK_SEAL = `${SEAL_KEY.slice(1)}00000000"}\n`;
/** From the newline back to the sum's first digit. */
const DIGITS_FROM_END = 10;
const NEWLINE = 10;
const QUOTE = 34;
const COMMA = 44;
const ZERO = 48;
const OPENING_BRACKET = 91;
const CLOSING_BRACKET = 93;
const CLOSING_BRACE = 125;
const HEXADECIMAL = Buffer.from('0123456789abcdef');

/** One batch's lines as `joinLines` takes them: each entry's JSON with its `left` (LINE-1). */
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
  return isSeal(bytes, bodyEnd, crc32(bytes.subarray(start, bodyEnd)));
}

/** True when a seal stands at `at` that names this sum, whatever stands before it. */
export function isSeal(bytes: Buffer, at: number, sumBefore: number): boolean {
  const end = at + SEAL_BYTES;
  if (bytes[end - 1] !== CLOSING_BRACE || bytes[end - 2] !== QUOTE) return false;
  let sum = sumBefore;
  for (let digit = end - 3; digit >= end - DIGITS_FROM_END; digit -= 1) {
    if (bytes[digit] !== HEXADECIMAL[sum & 15]) return false;
    sum >>>= 4;
  }
  return holds(bytes, at, SEAL_KEY_BYTES);
}

/** Byte by byte: for so few, asking the system takes longer. */
function holds(bytes: Buffer, at: number, expected: Buffer): boolean {
  for (let place = 0; place < expected.length; place += 1) {
    if (bytes[at + place] !== expected[place]) return false;
  }
  return true;
}

export interface DecodedLine {
  readonly entry: Entry;
  /** Lines of the same batch that follow. */
  readonly left: number;
}

/** Where lines are brought together; what does not fit gets a buffer of its own. */
const room = Buffer.allocUnsafeSlow(65_536);

/**
 * Parses neighbouring lines for which `isSealed` holds: the first begins at `start`, their newlines stand at `ends`. Null
 * stands for a line that is no entry. All are parsed as one array, which spares each its own text and its own parsing
 * of the seal; only when that fails are they parsed one by one.
 */
export function decodeLines(bytes: Buffer, start: number, ends: readonly number[]): (DecodedLine | null)[] {
  const parsed = parseAll(bytes, start, ends);
  if (parsed) return parsed;
  if (ends.length === 1) return [null];
  return ends.flatMap((end, at) => decodeLines(bytes, at === 0 ? start : (ends[at - 1] ?? 0) + 1, [end]));
}

function parseAll(bytes: Buffer, start: number, ends: readonly number[]): (DecodedLine | null)[] | null {
  const size = (ends.at(-1) ?? start) - start + 2; // never more than the lines: each seal is longer than what replaces it
  const array = size <= room.length ? room : Buffer.allocUnsafeSlow(size);
  const lefts: number[] = [];
  let filled = 0;
  let lineStart = start;
  for (const end of ends) {
    const bodyEnd = end - SEAL_BYTES;
    const digits = leftDigits(bytes, lineStart, bodyEnd);
    lefts.push(wholeNumber(bytes, digits, bodyEnd));
    array[filled] = filled === 0 ? OPENING_BRACKET : COMMA;
    const entryEnd = digits === bodyEnd ? bodyEnd : digits - LEFT_KEY.length;
    filled += 1 + bytes.copy(array, filled + 1, lineStart, entryEnd);
    array[filled++] = CLOSING_BRACE;
    lineStart = end + 1;
  }
  array[filled++] = CLOSING_BRACKET;
  try {
    const entries = JSON.parse(utf8Text(array.subarray(0, filled))) as unknown[];
    if (entries.length !== ends.length) return null;
    return entries.map((entry, at) => (isEntry(entry) ? { entry, left: lefts[at] ?? 0 } : null));
  } catch {
    return null;
  }
}

/** What `toString` answers: in a third of its time where not all is ASCII. */
function utf8Text(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1');
  try {
    return transcode(bytes, 'utf8', 'utf16le').toString('utf16le');
  } catch {
    return bytes.toString('utf8'); // not UTF-8: what cannot be read is replaced
  }
}

/** Where the digits of the format's `left` begin (LINE-1); `bodyEnd` where there is none. Read from the end, the line may be long. */
function leftDigits(bytes: Buffer, start: number, bodyEnd: number): number {
  let digits = bodyEnd;
  while (digits > start && isDigit(bytes[digits - 1] ?? 0)) digits -= 1;
  const key = digits - LEFT_KEY.length;
  return digits < bodyEnd && key > start && holds(bytes, key, LEFT_KEY_BYTES) ? digits : bodyEnd;
}

function wholeNumber(bytes: Buffer, start: number, end: number): number {
  let number = 0;
  for (let at = start; at < end; at += 1) number = number * 10 + (bytes[at] ?? ZERO) - ZERO;
  return number;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= ZERO + 9;
}

/** Entries are checked when they are made; here only that the line holds one, so that reading stays cheap. */
function isEntry(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && 'index' in value && typeof value.index === 'number';
}
