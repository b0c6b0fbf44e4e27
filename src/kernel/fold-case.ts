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
