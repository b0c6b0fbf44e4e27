import { hasVisible } from '../../kernel/text.ts';

/** Characters that look like others. Names and markers are compared by what a reader sees. */

/** Invisible characters, as a part of a regular expression. */
export const INVISIBLE = '[\\p{Cf}\\p{DI}]*';

/** Letters and signs of other scripts, and the Latin ones that they look like; NFKC does not map them. */
const SHAPES: ReadonlyMap<string, string> = new Map(
  [
    ['АВЕЅІЈКМНОРСТУХҮԚԜ', 'ABESIJKMHOPCTYXYQW'],
    ['авеѕіјкмһнорстухүԁԛԝ', 'abesijkmhhopctyxydqw'],
    ['ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ', 'ABEZHIKMNOPTYX'],
    ['αεικνορτυχγ', 'aeikvoptuxy'],
    ['ɑɡıȷӏ', 'agijl'],
    ['ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ', 'BPDTGKJCZFMNLSRVHWXYAEIOU'],
    ['ᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏔᏙᏚᏞᏟᏢᏦᏴᒪ', 'DRTAJEWMHGZWVSLCPKBL'],
    ['∶꞉ː˸։׃܃᛬꞊═᐀゠꓿🟰‐‑‒–—−', '::::::::======------'],
    ['⁅⁆⟦⟧〚〛', '[][][]'],
  ].flatMap(([from = '', to = '']) =>
    [...from].map((one, place): [string, string] => [one, to[place] ?? one]),
  ),
);
const SHAPED = new RegExp(`[${[...SHAPES.keys()].join('')}]`, 'gu');

/** No other character looks like one of these: no mapping is needed. */
const isAscii = (text: string) => /^[ -~]*$/.test(text);

/** Maps full-width and similar forms, and letters of other scripts, to the plain Latin characters they look like. */
export function shapeOf(text: string): string {
  if (isAscii(text)) return text;
  return text.normalize('NFKC').replace(SHAPED, (one) => SHAPES.get(one) ?? one);
}

/** One line without brackets of any width (TEXT-TEXT-2 of `text.ts`). */
export function plainName(name: string): string {
  return name.replace(/[[\]［］﹇﹈⁅⁆⟦⟧〚〛\p{Cc}\u2028\u2029]/gu, ' ').trim();
}

/** A name without case, invisible characters, brackets and width, for comparison. */
function foldName(name: string): string {
  const visible = isAscii(name) ? name : name.normalize('NFKC').replace(/[\p{Cf}\p{DI}\u2800]/gu, '');
  return plainName(visible).replace(/\s+/gu, ' ').toLowerCase();
}

/** Whether a reader may confuse two names. */
export function looksLike(name: string, other: string): boolean {
  return new NamesLike([other]).has(name);
}

/** Names that a reader may confuse with others. */
export class NamesLike {
  readonly #folded: ReadonlySet<string>;
  readonly #shaped: ReadonlySet<string>;

  constructor(names: readonly string[]) {
    this.#folded = new Set(names.map(foldName));
    this.#shaped = new Set(names.map((name) => foldName(shapeOf(name))));
  }

  has(name: string): boolean {
    return this.#folded.has(foldName(name)) || this.#shaped.has(foldName(shapeOf(name)));
  }
}

/** The names that no person may have: names and slugs of agents, and what attributes a message to one (V16). */
export function namesOfAgents(names: readonly string[]): NamesLike {
  return new NamesLike(names.flatMap((name) => [name, `agent ${name}`]));
}

/** Control characters, line breaks, lone surrogates, brackets, and marks that change the reading direction (POST-4). */
const NOT_IN_A_NAME = /[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}[\]\u202A-\u202E\u2066-\u2069]/u;

/** Characters of a person's name. */
export const LONGEST_NAME = 64;

/** POST-4: whether a person may sign with it. Agents' names are another matter (PERSON-3). */
export function isPersonName(name: string): boolean {
  return (
    name.trim() === name && [...name].length <= LONGEST_NAME && !NOT_IN_A_NAME.test(name) && hasVisible(name)
  );
}
