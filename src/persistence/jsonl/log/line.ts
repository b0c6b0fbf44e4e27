import { isAscii, transcode } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { Entry } from '../../../conversation/index.ts';

/**
 * One line of `log.jsonl`: the entry's JSON, with two fields of the format after the entry's own fields.
 *
 * LINE-1 `"left":N`: N lines of the same batch follow. Absent on a batch's last line, unless the entry itself has a field
 *        `left` or `sum`: then it is `"left":0`.
 * LINE-2 `"sum":"xxxxxxxx"`, always last: CRC-32 of the line's bytes before `,"sum"`, as eight hexadecimal digits.
 * LINE-3 An entry's own `left` and `sum` survive: the format's fields are removed as bytes before the rest is parsed.
 */

/** A seal, `,"sum":"xxxxxxxx"}`: how it begins, and its length in bytes. */
export const SEAL_KEY = ',"sum":"';
export const SEAL_BYTES = 18;
const LEFT_KEY = ',"left":';
const SEAL_KEY_BYTES = Buffer.from(SEAL_KEY);
const LEFT_KEY_BYTES = Buffer.from(LEFT_KEY);

/** Follows the closing brace of the JSON, which the seal's comma will replace. */
const BLANK_SEAL = `${SEAL_KEY.slice(1)}00000000"}\n`;
/** Distance from the sum's first digit to the newline. */
const DIGITS_FROM_END = 10;
const NEWLINE = 10;
const QUOTE = 34;
const COMMA = 44;
const ZERO = 48;
const OPENING_BRACKET = 91;
const CLOSING_BRACKET = 93;
const CLOSING_BRACE = 125;
const HEXADECIMAL = Buffer.from('0123456789abcdef');

/** The lines of one batch for `joinLines`: each entry's JSON with its `left` (LINE-1). */
export function encodeBatch(entries: readonly Entry[], json: readonly string[]): string[] {
  return json.map((text, position) => {
    const left = json.length - 1 - position;
    const entry = entries[position];
    const marked = left > 0 || (entry !== undefined && ('left' in entry || 'sum' in entry));
    return marked ? `${text.slice(0, -1)}${LEFT_KEY}${left}}` : text;
  });
}

/** Lines to bytes, each followed by a blank seal and a newline. */
export function joinLines(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((line) => line + BLANK_SEAL).join(''));
}

/**
 * Fills in the checksums, and returns the end of each line including its newline. Works on a group's bytes, since a
 * checksum of a string would encode each line twice.
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

/** True if the bytes `start` to `end` (without newline) are a line with a correct checksum. */
export function isSealed(bytes: Buffer, start: number, end: number): boolean {
  const bodyEnd = end - SEAL_BYTES;
  if (bodyEnd <= start || bytes[bodyEnd] !== COMMA || bytes[end - 1] !== CLOSING_BRACE) return false;
  return isSeal(bytes, bodyEnd, crc32(bytes.subarray(start, bodyEnd)));
}

/** True if there is a seal with this sum at `at`. */
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

/** Byte by byte: faster than a native call for so few bytes. */
function holds(bytes: Buffer, at: number, expected: Buffer): boolean {
  for (let place = 0; place < expected.length; place += 1) {
    if (bytes[at + place] !== expected[place]) return false;
  }
  return true;
}

interface DecodedLine {
  readonly entry: Entry;
  /** Lines of the same batch that follow. */
  readonly left: number;
}

/** Reused by `parseAll`; longer lines get a buffer of their own. */
const scratch = Buffer.allocUnsafeSlow(65_536);

/**
 * Parses adjacent lines for which `isSealed` holds: the first begins at `start`, their newlines are at `ends`. Null: the line
 * is not an entry. All are parsed as one array, which is faster; only if that fails, one by one.
 */
export function decodeLines(bytes: Buffer, start: number, ends: readonly number[]): (DecodedLine | null)[] {
  const parsed = parseAll(bytes, start, ends);
  if (parsed) return parsed;
  if (ends.length === 1) return [null];
  return ends.flatMap((end, at) => decodeLines(bytes, at === 0 ? start : (ends[at - 1] ?? 0) + 1, [end]));
}

function parseAll(bytes: Buffer, start: number, ends: readonly number[]): (DecodedLine | null)[] | null {
  const size = (ends.at(-1) ?? start) - start + 2; // enough: each seal is longer than its replacement
  const array = size <= scratch.length ? scratch : Buffer.allocUnsafeSlow(size);
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
    return null; // not JSON: the caller finds out which line
  }
}

/** The same as `bytes.toString()`, but faster for text that is not ASCII. */
function utf8Text(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1');
  try {
    return transcode(bytes, 'utf8', 'utf16le').toString('utf16le');
  } catch {
    return bytes.toString('utf8'); // not UTF-8: invalid bytes are replaced
  }
}

/** Start of the digits of the format's `left` (LINE-1), or `bodyEnd` without one. Read from the end: lines may be long. */
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

/** A minimal check, so that reading is cheap: entries are checked when they are made. */
function isEntry(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && 'index' in value && typeof value.index === 'number';
}
