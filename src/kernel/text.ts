/**
 * Characters that a reader cannot see: blanks, control and format characters, ignorable characters, and two more that are
 * drawn blank. A single combining mark is visible, and so is an emoji with joiners.
 */
export const INVISIBLE =
  '\\p{White_Space}\\p{Z}\\p{Cc}\\p{Cf}\\p{Default_Ignorable_Code_Point}\\p{Noncharacter_Code_Point}\\u2800\\u{1d159}';
const VISIBLE = new RegExp(`[^${INVISIBLE}]`, 'u');

/** True if the text has a visible character. */
export function hasVisible(text: string): boolean {
  return VISIBLE.test(text);
}

/** True if the text contains half of a surrogate pair, which UTF-8 cannot encode. */
export function hasLoneSurrogate(text: string): boolean {
  return !text.isWellFormed();
}

/** Replaces each such half with U+FFFD. */
export function wellFormed(text: string): string {
  return text.toWellFormed();
}

/** Decodes UTF-8; null: not UTF-8. A byte order mark is removed, unless the text `keepsMark`. */
export function decodeUtf8(bytes: Uint8Array, { keepsMark = false } = {}): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: keepsMark }).decode(bytes);
  } catch {
    return null; // `decode` throws on other bytes only
  }
}

/**
 * Folds case and keeps the length, so that positions in the result are positions in the text. `İ` is the only letter that is
 * longer in lower case.
 */
export function foldCase(text: string): string {
  return text.replaceAll('İ', 'i').toLowerCase().replaceAll('ς', 'σ');
}

/** Equal for paths that some file system treats as the same: ignores case, normal form and ignorable characters. */
export function foldPath(path: string): string {
  const visible = path.normalize('NFD').replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '');
  return visible.toUpperCase().toLowerCase().normalize('NFC');
}

/** The first `length` UTF-16 units, without half a character at the end. */
export function cut(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}

/** The candidate most similar to `typed`; null: none is similar. */
export function nearest(typed: string, candidates: Iterable<string>): string | null {
  const wanted = typed.toLowerCase();
  const limit = Math.max(2, Math.floor(wanted.length / 3));
  let best: { candidate: string; distance: number } | null = null;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance <= limit && distance < candidate.length && (!best || distance < best.distance)) {
      best = { candidate, distance };
    }
  }
  return best?.candidate ?? null;
}

/** A text with a broken escape stays as it is: a password may have a `%`. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `Buffer` skips what is not base64; then there are fewer bytes. */
export function isBase64(text: string): boolean {
  const digits = text.replaceAll(/\s+|={1,2}\s*$/g, '').length;
  return digits % 4 !== 1 && Buffer.from(text, 'base64').length === Math.floor((digits * 3) / 4);
}

/** Levenshtein distance, where two exchanged neighbours count as one change. */
function editDistance(left: string, right: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      const inserted = (current[column - 1] ?? 0) + 1;
      const removed = (previous[column] ?? 0) + 1;
      const isExchange = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      const exchanged = row > 1 && column > 1 && isExchange ? (before[column - 2] ?? 0) + 1 : removed;
      current.push(Math.min(replaced, inserted, removed, exchanged));
    }
    [before, previous] = [previous, current];
  }
  return previous[right.length] ?? 0;
}
