import type { DeadLetter } from '../answers.ts';

/** Refused posts that the page shows to the person who wrote them. Pure. */

export interface RefusedPost {
  readonly letter: DeadLetter;
  /** The whole body, if that is not understood. */
  readonly text: string;
  /** The name on the post; empty: the publisher signed it; null: it cannot be read. */
  readonly author: string | null;
}

export function refusedPostOf({
  original,
  ...letter
}: DeadLetter & { readonly original: string }): RefusedPost {
  if (!original.trimStart().startsWith('{')) return { letter, text: original, author: '' };
  try {
    const { content, author } = JSON.parse(original) as Record<string, unknown>;
    const { name = '' } = (author ?? {}) as { readonly name?: unknown };
    return {
      letter,
      text: typeof content === 'string' ? content : original,
      author: typeof name === 'string' ? name.trim() : null,
    };
  } catch {
    return { letter, text: original, author: null };
  }
}

/** One letter: not every post has an id, and a stream that was created again counts from 1. */
export const keyOf = ({ sequence, at }: DeadLetter): string => `${sequence} ${at}`;

interface Reader {
  /** The name on this person's messages; empty: the publisher. */
  readonly name: string;
  /** Ids of posts of which the person knows, and keys of letters. */
  readonly known: ReadonlySet<string>;
}

/** Those that this person wrote and does not know to be refused. A publisher can have several persons. */
export function refusedFor(posts: readonly RefusedPost[], { name, known }: Reader): readonly RefusedPost[] {
  return posts.filter(
    ({ letter, author }) =>
      (author === null || author === name) &&
      !known.has(keyOf(letter)) &&
      (!letter.id || !known.has(letter.id)),
  );
}
