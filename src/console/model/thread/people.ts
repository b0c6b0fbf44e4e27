/** Participants, each with a colour and initials. */
export interface Participant {
  readonly id: string;
  readonly name: string;
  /** Agents answer; all others are persons. */
  readonly isAgent: boolean;
  /** An index into the palette. */
  readonly colour: number;
  readonly initials: string;
  /** The publisher of a person whose name another one here has too; else null. */
  readonly publisher: string | null;
}

export const COLOURS = 12;

export interface Named {
  readonly slug: string;
  readonly name: string;
}

/** Agents first, in the order of the roster, so that they have the same colour in every conversation. */
export function participantsOf(
  roster: readonly Named[],
  authors: ReadonlyMap<string, string>,
): ReadonlyMap<string, Participant> {
  const found = new Map<string, Participant>();
  const names = [...authors.values()];
  const publisherOf = (id: string, name: string) =>
    id.includes('/') && names.filter((one) => one === name).length > 1 ? id.slice(0, id.indexOf('/')) : null;
  const add = (id: string, name: string, isAgent: boolean) => {
    if (found.has(id)) return;
    const publisher = isAgent ? null : publisherOf(id, name);
    const colour = found.size % COLOURS;
    found.set(id, { id, name, isAgent, colour, initials: initialsOf(name), publisher });
  };
  for (const { slug, name } of roster) add(slug, name, true);
  for (const [id, name] of authors) add(id, name, false);
  return found;
}

/** A name, with the publisher if another person has the same one. */
export function shownName(name: string, who: Participant | undefined): string {
  return who?.publisher ? `${name} · ${who.publisher}` : name;
}

/** The initials of the first and last word, or the first two letters. */
export function initialsOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  const [first, last] = [words[0], words.at(-1)];
  if (!first || !last) return '?';
  const letters = words.length > 1 ? [[...first][0], [...last][0]] : [...first].slice(0, 2);
  return letters.join('').toUpperCase();
}
