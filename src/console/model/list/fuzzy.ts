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

/** The same word, its beginning, a part of it, its letters in their order. */
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
