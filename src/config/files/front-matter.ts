/** Splits `agents/<slug>.md`: keys between two lines of `---`, then the persona. Without keys the whole text is the persona. */

/** Null: the keys never end. */
export function splitFrontMatter(text: string): { frontMatter: string; persona: string } | null {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  if (lines[0]?.trimEnd() !== '---') return { frontMatter: '', persona: lines.join('\n').trim() };
  const end = lines.findIndex((line, place) => place > 0 && line.trimEnd() === '---');
  if (end === -1) return null;
  const [frontMatter, persona] = [lines.slice(1, end), lines.slice(end + 1)];
  return { frontMatter: frontMatter.join('\n'), persona: persona.join('\n').trim() };
}
