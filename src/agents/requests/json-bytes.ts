/**
 * Encodes JSON directly into bytes. JSON.stringify first makes a string that is copied and encoded, which takes twice
 * the time and memory.
 *
 * JSON-BYTES-1 The bytes are those of JSON.stringify in UTF-8, for values that JSON.parse can return and for fields that
 *    are undefined. Lone surrogates are escaped, too.
 * JSON-BYTES-2 A returned buffer is never written to again.
 */

type Json = string | number | boolean | null | undefined | object;

/** Size of returned buffers, except the last, which has the exact size. */
const PIECE = 262_144;
let piece = Buffer.allocUnsafeSlow(PIECE);
let words = new DataView(piece.buffer);
let end = 0;
let full: Buffer[] = [];

/** The bytes of the values, each preceded by a comma, in one or more buffers. */
export function jsonElements(values: readonly object[]): Buffer[] {
  begin();
  for (const value of values) {
    reserve(1);
    piece[end++] = COMMA;
    putValue(value);
  }
  const made = full;
  if (end > 0) made.push(Buffer.from(piece.subarray(0, end)));
  begin();
  return made;
}

/** Also clears the leftovers of a call that threw. */
function begin(): void {
  full = [];
  end = 0;
}

/** Ensures space for this many bytes. */
function reserve(bytes: number): void {
  if (end + bytes <= PIECE) return;
  full.push(piece.subarray(0, end)); // JSON-BYTES-2
  piece = Buffer.allocUnsafeSlow(PIECE);
  words = new DataView(piece.buffer);
  end = 0;
}

function putValue(value: Json): void {
  if (typeof value === 'string') putString(value);
  else if (typeof value !== 'object' || value === null) putPlain(JSON.stringify(value) ?? 'null');
  else if (Array.isArray(value)) putArray(value);
  else putObject(value as Readonly<Record<string, Json>>);
}

function putArray(values: readonly Json[]): void {
  reserve(2);
  piece[end++] = OPENING_BRACKET;
  for (let at = 0; at < values.length; at++) {
    reserve(1);
    if (at > 0) piece[end++] = COMMA;
    putValue(values[at]);
  }
  reserve(1);
  piece[end++] = OPENING_BRACKET + 2;
}

function putObject(fields: Readonly<Record<string, Json>>): void {
  let mark = OPENING_BRACE;
  for (const key in fields) {
    const value = fields[key];
    if (value === undefined) continue;
    reserve(1);
    piece[end++] = mark;
    mark = COMMA;
    putString(key);
    reserve(1);
    piece[end++] = COLON;
    putValue(value);
  }
  reserve(2);
  if (mark === OPENING_BRACE) piece[end++] = OPENING_BRACE;
  piece[end++] = OPENING_BRACE + 2;
}

/** A number or a literal. */
function putPlain(text: string): void {
  reserve(text.length);
  end += piece.write(text, end, 'latin1');
}

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPENING_BRACKET = 91;
const OPENING_BRACE = 123;

/** Code units per pass. The buffer is larger, to fill up the last four. */
const UNITS = 4_096;
const source = Buffer.from(new ArrayBuffer(2 * UNITS + 8));
const units = new Uint16Array(source.buffer);
const pairs = new Int32Array(source.buffer);
/** Shorter texts are copied unit by unit, which is faster than `Buffer.write`. */
const SHORT = 16;
/** A code unit takes at most six bytes: `\u001f`. */
const MAX_UNIT_BYTES = 6;

function putString(text: string): void {
  reserve(1);
  piece[end++] = QUOTE;
  for (let from = 0; from < text.length; ) {
    const count = load(text, from);
    reserve(MAX_UNIT_BYTES * count + 1);
    putUnits(count);
    from += count;
  }
  reserve(1);
  piece[end++] = QUOTE;
}

/** Loads the next code units of the text into `units`; returns how many. */
function load(text: string, from: number): number {
  let count = Math.min(UNITS, text.length - from);
  if (count < SHORT) for (let at = 0; at < count; at++) units[at] = text.charCodeAt(from + at);
  else source.write(from === 0 ? text : text.slice(from, from + UNITS), 0, 2 * count, 'utf16le');
  if (from + count < text.length && isFirstHalf(units[count - 1] ?? 0)) count--; // the pair comes next
  units.fill(0, count, count + 3);
  return count;
}

/** Copies four at a time while all are ASCII and need no escape. */
function putUnits(count: number): void {
  const out = piece;
  const target = words;
  let at = end;
  for (let from = 0; from < count; from += 4) {
    const first = pairs[from >> 1] ?? 0;
    const second = pairs[(from >> 1) + 1] ?? 0;
    const four = first | (second << 8); // where all are ASCII: the bytes 0, 2, 1, 3
    if (((first | second) & NOT_ASCII) === 0 && isPlain(four)) {
      target.setInt32(at, (four & 0xff00_00ff) | ((four >> 8) & 0xff00) | ((four & 0xff00) << 8), true);
      at += 4;
    } else {
      const until = Math.min(from + 4, count);
      for (let next = from; next < until; next++) {
        const unit = units[next] ?? 0;
        if (unit < 0x80 && IS_SHORT[unit] === 1) out[at++] = unit;
        else at = putUnit(unit, next, count, at);
      }
    }
  }
  end = at;
}

const NOT_ASCII = 0xff80_ff80 | 0;

/** Of four ASCII characters none is a control character, a quote or a backslash: a byte minus one borrows only from 0. */
function isPlain(four: number): boolean {
  const control = four - 0x2020_2020;
  const quote = (four ^ 0x2222_2222) - 0x0101_0101;
  const backslash = (four ^ 0x5c5c_5c5c) - 0x0101_0101;
  return ((control | quote | backslash) & 0x8080_8080) === 0;
}

/** Each ASCII character as JSON.stringify encodes it. */
const ASCII = Array.from({ length: 0x80 }, (_, unit) => Buffer.from(escaped(unit)));
const IS_SHORT = Uint8Array.from(ASCII, (bytes) => Number(bytes.length === 1));

function escaped(unit: number): string {
  return JSON.stringify(String.fromCharCode(unit)).slice(1, -1);
}

/** Writes one code unit; a surrogate pair at its second half. Returns the next write position. */
function putUnit(unit: number, index: number, count: number, start: number): number {
  const out = piece;
  let at = start;
  if (unit < 0x80) return putBytes(ASCII[unit] ?? source, at);
  if (unit < 0x800) {
    out[at++] = 0xc0 | (unit >> 6);
  } else if (unit < 0xd800 || unit > 0xdfff) {
    out[at++] = 0xe0 | (unit >> 12);
    out[at++] = 0x80 | ((unit >> 6) & 0x3f);
  } else {
    return putHalf(index, count, at);
  }
  out[at++] = 0x80 | (unit & 0x3f);
  return at;
}

function putHalf(index: number, count: number, start: number): number {
  const unit = units[index] ?? 0;
  const before = index > 0 ? (units[index - 1] ?? 0) : 0;
  let at = start;
  if (isFirstHalf(unit)) {
    const hasSecond = index + 1 < count && isSecondHalf(units[index + 1] ?? 0);
    return hasSecond ? at : putBytes(Buffer.from(escaped(unit)), at);
  }
  if (!isFirstHalf(before)) return putBytes(Buffer.from(escaped(unit)), at);
  const point = 0x1_0000 + ((before & 0x3ff) << 10) + (unit & 0x3ff);
  piece[at++] = 0xf0 | (point >> 18);
  piece[at++] = 0x80 | ((point >> 12) & 0x3f);
  piece[at++] = 0x80 | ((point >> 6) & 0x3f);
  piece[at++] = 0x80 | (point & 0x3f);
  return at;
}

function putBytes(bytes: Uint8Array, start: number): number {
  let at = start;
  for (let from = 0; from < bytes.length; from++) piece[at++] = bytes[from] ?? 0;
  return at;
}

function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isSecondHalf(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
