/** What a person types to search, as the fields of a request. Pure. */

export type SearchQuery = { readonly q: string; readonly filters: Readonly<Record<string, string>> };

export const FILTERS: readonly string[] = ['agent', 'person', 'phase', 'in', 'after', 'before'];

const fieldOf = (prefix: string): string => (prefix === 'in' ? 'conversation' : prefix);

const FILTER = /(?:^|\s)([a-z]+):(?:"([^"]+)(?:"|$)|(\S*))/gu;

/** `login agent:dev` searches for `login` in messages of `dev`; a value with spaces is quoted: `person:"Carol Smith"`. */
export function searchQueryOf(text: string): SearchQuery {
  const filters: Record<string, string> = {};
  const q = text.replace(FILTER, (whole, prefix: string, quoted: string | undefined, word: string) => {
    if (!FILTERS.includes(prefix)) return whole;
    filters[fieldOf(prefix)] = quoted ?? word;
    return '';
  });
  return { q: q.trimStart(), filters };
}

/** Why nothing can be found, before the daemon is asked; null: something may. `known`: the values of a filter, where all are known. */
export function whyNothing(
  { q, filters }: SearchQuery,
  known: Readonly<Record<string, readonly string[]>>,
): string | null {
  for (const prefix of FILTERS) {
    const value = filters[fieldOf(prefix)];
    const values = known[fieldOf(prefix)];
    if (value === '')
      return `Type a value after ${prefix}:${values ? `, one of: ${values.join(', ')}` : ''}.`;
    if (value !== undefined && values?.includes(value) === false)
      return `${prefix}:${value} names none of: ${values.join(', ')}.`;
  }
  return Object.keys(filters).length > 0 && q.trim().length < SHORTEST
    ? 'Add a word of the messages, with two letters or more.'
    : null;
}

export const SHORTEST = 2;

/** A snippet in parts; the found words are marked. */
export function partsOf(snippet: string, marks: readonly (readonly [number, number])[]) {
  const ends = [...marks.flat(), snippet.length];
  const parts = ends.map((to, n) => ({ text: snippet.slice(ends[n - 1] ?? 0, to), isFound: n % 2 === 1 }));
  return parts.filter(({ text }) => text !== '');
}

/** Why a search was refused, without the name of the request, which the page does not show: `search: after: expected a time`. */
export function refusalText(message: string): string {
  return message.replace(/^search: /u, '');
}

/** How well the words that a person types fit a text, in any order. 0: one of them does not. Pure. */
export function fitOf(typed: string, text: string): number {
  const words = wordsOf(text);
  let fit = 1;
  for (const wanted of wordsOf(typed)) {
    const best = Math.max(0, ...words.map((word) => fitOfWord(wanted, word)));
    if (best === 0) return 0;
    fit += best;
  }
  return fit;
}

const wordsOf = (text: string) => text.toLowerCase().match(/[\p{L}\p{N}@]+/gu) ?? [];

function fitOfWord(wanted: string, word: string): number {
  if (word === wanted) return 8;
  if (word.startsWith(wanted)) return 6;
  if (wanted.length > 1 && word.includes(wanted)) return 3;
  return word[0] === wanted[0] && wanted.length > 2 && hasInOrder(word, wanted) ? 1 : 0;
}

function hasInOrder(word: string, letters: string): boolean {
  let at = 0;
  for (const letter of word) if (letter === letters[at]) at += 1;
  return at === letters.length;
}
