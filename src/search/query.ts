import type { IndexQuery } from './types.ts';

/**
 * The expression of FTS5 for a query.
 *
 * SEARCH-QUERY-1 Every word must occur, and words in quotation marks in this order. The last word may be the
 *                beginning of one, unless a blank follows it.
 * SEARCH-QUERY-2 Each word is a quoted string of FTS5: no character of a person is an operator.
 */

const TERMS = /"([^"]*)"?|[^\s"]+/gu;
const SEARCHABLE = /[\p{L}\p{N}]/u;
/** Shorter beginnings match too many words, except in scripts without blanks. */
const BEGINNING = /^(?:.{3,}|.*[^\p{ASCII}])$/su;

/** Null: nothing to search for. */
export function expressionOf(query: IndexQuery): string | null {
  const terms = [...query.text.matchAll(TERMS)]
    .map(([whole, phrase]) => ({ text: phrase ?? whole, isPhrase: phrase !== undefined }))
    .filter(({ text }) => SEARCHABLE.test(text));
  if (terms.length === 0) return null;
  const words = terms.map(({ text, isPhrase }, position) => {
    const isLast = position === terms.length - 1 && query.text.endsWith(text);
    const isBeginning = isLast && !isPhrase && BEGINNING.test(text);
    return `text : ${quoted(text)}${isBeginning ? ' *' : ''}`;
  });
  const tags = tagsIn(query).map((tag) => `tags : ${tag}`);
  return [...tags, ...words].map((part) => `(${part})`).join(' AND ');
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""').replaceAll('\0', ' ')}"`;
}

function tagsIn({ conversation, agent, person, phase }: IndexQuery): string[] {
  return [
    ...(conversation === undefined ? [] : [tag('c', conversation)]),
    ...(agent === undefined ? [] : [tag('a', agent)]),
    ...(person === undefined ? [] : [tag('p', person)]),
    ...(phase === undefined ? [] : [tag('f', phase)]),
  ];
}

/** A filter as one word of the index: FTS5 intersects it with the words of the text. */
export function tag(kind: 'c' | 'a' | 'p' | 'f', value: string): string {
  return `${kind}${Buffer.from(value).toString('hex')}`;
}
