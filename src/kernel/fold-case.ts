/**
 * A text without the difference between capitals and small letters, of the same length: a position in it is the same
 * position in the text as it was. `İ` is the one letter that is longer in lower case.
 */
export function foldCase(text: string): string {
  return text.replaceAll('İ', 'i').toLowerCase().replaceAll('ς', 'σ');
}
