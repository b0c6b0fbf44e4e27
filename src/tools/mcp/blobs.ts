/**
 * Binary data in structured content, replaced by its type and size: a model cannot read base64, and a picture is
 * hundreds of thousands of tokens.
 *
 * BLOB-1  Data with a declared type is replaced at any size, also if it repeats a block of the content.
 * BLOB-2  A string without a type is replaced only if it is clearly base64: long, without words, not hex.
 */

/** BLOB-2, in characters. */
const LONG = 1_000;
const UNBROKEN = /^[A-Za-z0-9+/_-]+={0,2}$/;
const IN_LINES = /^(?:[A-Za-z0-9+/]{60,76}\r?\n)+[A-Za-z0-9+/]*={0,2}\s*$/;
const MIXED = [/[a-z]/, /[A-Z]/, /[0-9]/];
const DATA_URL = /^data:([^;,]*)(?:;[^;,]*)*;base64,(.*)$/s;

/** The first characters of common formats, in base64. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['JVBERi0', 'application/pdf'],
  ['SUQz', 'audio/mpeg'],
  ['T2dnUw', 'audio/ogg'],
];

/** The placeholder of data that is neither shown nor stored. */
export function notShown(mimeType: string, base64: string, before = ''): string {
  return `[${before}${mimeType}, ${showBytes(Buffer.byteLength(base64.replaceAll(/\s/g, ''), 'base64'))}: not kept]`;
}

/** `known`: the data of the content's blocks, with their types. */
export function withoutBlobs(value: unknown, known: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return textWithoutBlob(value, known);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((one) => withoutBlobs(one, known));
  const typed = typedBlob(value as Record<string, unknown>);
  if (typed !== null) return typed;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withoutBlobs(one, known)]));
}

/** BLOB-1: a block of content, or a resource. */
function typedBlob({ mimeType, data, blob, uri }: Record<string, unknown>): string | null {
  const base64 = blob ?? data;
  if (typeof mimeType !== 'string' || typeof base64 !== 'string' || base64 === '') return null;
  if (/^(text\/|application\/json)/.test(mimeType) && blob === undefined) return null;
  if (!UNBROKEN.test(base64) && !IN_LINES.test(base64)) return null;
  return notShown(mimeType, base64, typeof uri === 'string' ? `${uri}, ` : '');
}

function textWithoutBlob(text: string, known: ReadonlyMap<string, string>): string {
  const [, urlType, urlData] = DATA_URL.exec(text) ?? [];
  if (urlData !== undefined) return notShown(urlType || 'base64', urlData);
  const mimeType = known.get(text);
  if (mimeType !== undefined) return notShown(mimeType, text);
  return isBase64(text) ? notShown(typeFrom(text), text) : text;
}

/** BLOB-2 */
function isBase64(text: string): boolean {
  if (text.length < LONG || !(UNBROKEN.test(text) || IN_LINES.test(text))) return false;
  return MIXED.every((kind) => kind.test(text));
}

function typeFrom(base64: string): string {
  return BEGINNINGS.find(([beginning]) => base64.startsWith(beginning))?.[1] ?? 'base64';
}

export function showBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 999_500 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
