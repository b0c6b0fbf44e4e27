/**
 * What a reader cannot see: blanks, control and format characters, characters that fonts leave out, and the two that are
 * drawn as nothing. A combining mark alone is visible, and so is an emoji, whatever joins its parts.
 */
export const INVISIBLE =
  '\\p{White_Space}\\p{Z}\\p{Cc}\\p{Cf}\\p{Default_Ignorable_Code_Point}\\p{Noncharacter_Code_Point}\\u2800\\u{1d159}';
const VISIBLE = new RegExp(`[^${INVISIBLE}]`, 'u');

/** Whether a text says anything: it has at least one visible character. */
export function hasVisible(text: string): boolean {
  return VISIBLE.test(text);
}

/** Whether a text holds half of a surrogate pair: UTF-8 has no bytes for it. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

/** The text of these bytes, without a byte order mark; null if they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/**
 * A text without the difference between capitals and small letters, of the same length: a position in it is the same
 * position in the text as it was. `İ` is the one letter that is longer in lower case.
 */
export function foldCase(text: string): string {
  return text.replaceAll('İ', 'i').toLowerCase().replaceAll('ς', 'σ');
}

/** Two paths that some disk takes as the same one are equal so: without case, normal form and ignorable characters. */
export function foldPath(path: string): string {
  const visible = path.normalize('NFD').replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '');
  return visible.toUpperCase().toLowerCase().normalize('NFC');
}
