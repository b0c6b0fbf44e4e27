/** Participants as the screen tells them apart: each with a colour of its own and initials. */
export interface Participant {
  readonly id: string;
  readonly name: string;
  /** An agent answers; a person is anybody else. */
  readonly isAgent: boolean;
  /** A number of the palette. */
  readonly colour: number;
  readonly initials: string;
}

export const COLOURS = 12;

export interface Named {
  readonly slug: string;
  readonly name: string;
}

/** Agents first, in the order of the roster, so that a colour stays the same from one conversation to the next. */
export function participantsOf(
  roster: readonly Named[],
  authors: ReadonlyMap<string, string>,
): ReadonlyMap<string, Participant> {
  const found = new Map<string, Participant>();
  const add = (id: string, name: string, isAgent: boolean) => {
    if (!found.has(id))
      found.set(id, { id, name, isAgent, colour: found.size % COLOURS, initials: initialsOf(name) });
  };
  for (const { slug, name } of roster) add(slug, name, true);
  for (const [id, name] of authors) add(id, name, false);
  return found;
}

/** Of a first and a last word, else the first two letters. */
export function initialsOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  const [first, last] = [words[0], words.at(-1)];
  if (!first || !last) return '?';
  const letters = words.length > 1 ? [[...first][0], [...last][0]] : [...first].slice(0, 2);
  return letters.join('').toUpperCase();
}
