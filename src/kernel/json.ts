import { messageOf } from './errors.ts';

/**
 * Why a text is not JSON, without quoting it: the parser's own message does, and the text may be secret.
 */
export function jsonFault(error: unknown): string {
  const message = messageOf(error);
  if (message.startsWith('Unexpected end') || message.startsWith('Unterminated')) return 'it ends too early';
  const position = / at position (\d+)/.exec(message)?.[1];
  return position === undefined ? 'a character is not expected' : `character ${position} is not expected`;
}

/** Undefined: it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isJson(text: string): boolean {
  return parseJson(text) !== undefined;
}

/** A string as it is, else JSON; nothing for `undefined`. */
export function resultText(result: unknown): string {
  if (typeof result === 'string') return result;
  return result === undefined ? '' : (JSON.stringify(result) ?? String(result));
}

/** JSON of unknown shape. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** Empty: it is no text. */
export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Deeper nesting is refused: it can be parsed, but traversing or encoding it again would overflow the stack and stop the
 * daemon.
 */
export const MAX_DEPTH = 64;

/** Each copy of an object with hundreds of thousands of members takes seconds, in which the daemon does nothing else. */
const MOST_MEMBERS = 10_000;
const MOST_MEMBERS_IN_ALL = 200_000;

/** Why JSON in UTF-8, which need not be valid, is not worth parsing: "has …" or "is …"; null: it may be. */
export function crowdFault(bytes: Uint8Array): string | null {
  if (bytes.length < MOST_MEMBERS) return null;
  const open = [0];
  let all = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === BACKSLASH) at += 1;
    else if (byte === QUOTE) isText = !isText;
    else if (isText) continue;
    else if (byte === OBJECT || byte === LIST) {
      if (open.push(0) > MAX_DEPTH + 1) return `is nested deeper than ${MAX_DEPTH} levels`;
    } else if (byte === OBJECT_END || byte === LIST_END) open.pop();
    else if (byte === COLON) {
      const members = (open.pop() ?? 0) + 1;
      open.push(members);
      all += 1;
      if (members > MOST_MEMBERS) return `has an object with more than ${MOST_MEMBERS} fields`;
      if (all > MOST_MEMBERS_IN_ALL) return `has more than ${MOST_MEMBERS_IN_ALL} fields`;
    }
  }
  return null;
}
const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
const [OBJECT, OBJECT_END, LIST, LIST_END] = [0x7b, 0x7d, 0x5b, 0x5d];

export type ReadArguments =
  | { readonly ok: true; readonly value: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly why: string };

/** The arguments of a tool call: a JSON object that every reader can read. A model may leave them out. */
export function readArguments(text: string): ReadArguments {
  if (text.trim() === '') return { ok: true, value: {} };
  try {
    const value: unknown = JSON.parse(text);
    if (!isContainer(value) || Array.isArray(value)) return { ok: false, why: 'not an object' };
    if (!isShallow(value)) return { ok: false, why: `nested deeper than ${MAX_DEPTH} levels` };
    const infinite = infinityAt(value);
    if (infinite !== null) return { ok: false, why: `the number ${infinite} is too large` };
    return { ok: true, value: value as Record<string, unknown> };
  } catch (error) {
    return { ok: false, why: messageOf(error) };
  }
}

/** True if no value is nested in more than `most` objects and arrays; false for cycles. Does not recurse. */
export function isShallow(value: unknown, most: number = MAX_DEPTH): boolean {
  let level = new Set(isContainer(value) ? [value] : []);
  for (let depth = 1; level.size > 0; depth += 1) {
    if (depth > most) return false;
    // A set: a container with several parents (aliases in YAML) is visited once.
    level = new Set([...level].flatMap((container) => Object.values(container).filter(isContainer)));
  }
  return true;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The path to an infinite number, which JSON cannot represent (`1e999` parses to one); null: none. `value` must be shallow. */
export function infinityAt(value: unknown, path = ''): string | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : path;
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, inner] of Object.entries(value)) {
    const found = infinityAt(inner, path === '' ? key : `${path}.${key}`);
    if (found !== null) return found;
  }
  return null;
}

/** Every reader of JSON could read it again. `JSON.stringify` escapes only halves of surrogate pairs like this. */
export function isReadable(value: unknown): boolean {
  if (!isShallow(value) || infinityAt(value) !== null) return false;
  return !/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(JSON.stringify(value));
}
