import { crc32 } from 'node:zlib';
import type { Entry } from '../../conversation/index.ts';

/**
 * One line of `log.jsonl`: the entry's JSON with two fields of the format behind the entry's own.
 *
 * F1 `"left":N`: so many lines of the same batch follow. Absent on a batch's last line, unless the entry has a
 *    field of that name itself: then `"left":0` stands there, so that the last one is always the format's.
 * F2 `"sum":"xxxxxxxx"`, always last: CRC-32 of the line's bytes before `,"sum"`, eight hexadecimal digits.
 * F3 Both are cut off as text before the rest is parsed, so an entry's own `left` and `sum` survive.
 */

/** What a seal begins with, and its length in bytes: `,"sum":"xxxxxxxx"}`. */
export const SEAL_KEY = ',"sum":"';
export const SEAL_BYTES = 18;
const LEFT_KEY = ',"left":';

function seal(bytesBefore: Buffer | string): string {
  return `${SEAL_KEY}${crc32(bytesBefore).toString(16).padStart(8, '0')}"}`;
}

/** The lines of one batch, newlines included, from the JSON of its entries. */
export function encodeBatch(entries: readonly Entry[], json: readonly string[]): string[] {
  return json.map((text, position) => {
    const left = json.length - 1 - position;
    const entry = entries[position];
    const marked = left > 0 || (entry !== undefined && Object.hasOwn(entry, 'left'));
    const body = marked ? `${text.slice(0, -1)}${LEFT_KEY}${left}` : text.slice(0, -1);
    return `${body}${seal(body)}\n`;
  });
}

/** True when the bytes `start` to `end` (no newline) are a line whose checksum fits. */
export function isSealed(bytes: Buffer, start: number, end: number): boolean {
  const bodyEnd = end - SEAL_BYTES;
  if (bodyEnd <= start) return false;
  return bytes.toString('latin1', bodyEnd, end) === seal(bytes.subarray(start, bodyEnd));
}

export interface DecodedLine {
  readonly entry: Entry;
  /** Lines of the same batch that follow. */
  readonly left: number;
}

/** Parses a line for which `isSealed` holds; null when it is no entry at all. */
export function decodeLine(bytes: Buffer, start: number, end: number): DecodedLine | null {
  const body = bytes.toString('utf8', start, end - SEAL_BYTES);
  const { text, left } = splitLeft(body);
  try {
    const parsed: unknown = JSON.parse(`${text}}`);
    return isEntry(parsed) ? { entry: parsed, left } : null;
  } catch {
    return null;
  }
}

/** Cuts the format's `left` off (F1). Read from the end: a pattern search would walk the whole line. */
function splitLeft(body: string): { text: string; left: number } {
  let digits = body.length;
  while (digits > 0 && isDigit(body.charCodeAt(digits - 1))) digits -= 1;
  if (digits === body.length || !body.endsWith(LEFT_KEY, digits)) return { text: body, left: 0 };
  return { text: body.slice(0, digits - LEFT_KEY.length), left: Number(body.slice(digits)) };
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Entries are checked when they are made; here only that the line holds one, so that reading stays cheap. */
function isEntry(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && 'index' in value && typeof value.index === 'number';
}
