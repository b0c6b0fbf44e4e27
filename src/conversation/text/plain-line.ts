/** Characters of a text that are read: more are not shown. */
const READ = 2_000;

/** The beginning of a text on one line. */
export function shortLine(text: string, most: number): string {
  const letters = [...text.slice(0, READ).replace(/\s+/gu, ' ').trim()];
  return letters.length <= most ? letters.join('') : `${letters.slice(0, most - 1).join('')}…`;
}

/** The same of Markdown, without its marks. */
export function plainLine(markdown: string, most: number): string {
  const words = markdown
    .slice(0, READ)
    .replace(/^[ \t]*(?:```.*|#{1,6} |> |[-*+] )/gmu, '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/gu, '$1')
    .replace(/\*\*|__|~~|`/gu, '');
  return shortLine(words, most);
}
