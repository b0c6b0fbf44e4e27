/** Control and format characters, among them those that reorder text, and separators of lines; not tab and newline. */
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The same JSON, with an escape in place of each character that cannot be seen or that shows others in another order. */
export function escapeHidden(json: string): string {
  return json.replace(HIDDEN, (character) =>
    character
      .split('') // an escape of JSON is half of a character beyond U+FFFF
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** The same, in one line. */
export function inOneLine(text: string): string {
  return escapeHidden(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}
