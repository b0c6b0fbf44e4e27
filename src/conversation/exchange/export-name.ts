/** Code points of a title in the name of a file. */
const LONGEST_TITLE = 60;

/** The name of a file without its extension: the title in letters, digits and `-`, then the id. */
export function exportName(title: string | null, id: string): string {
  const words = (title ?? '').normalize('NFC').match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  const short = [...words.join('-')].slice(0, LONGEST_TITLE).join('');
  return [short.replace(/-$/, ''), id].filter((part) => part !== '').join('-');
}
