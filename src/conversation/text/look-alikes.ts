import { hasVisible } from '../../kernel/text.ts';
import { CONFUSABLES } from './confusables.ts';

/**
 * Characters that look like others. Names and markers are compared by what a reader sees: the skeleton of Unicode's UTS 39,
 * with the signs that it lacks, without case, marks and invisible characters.
 */

/** What UTS 39 leaves apart or compares with other signs, and a reader confuses. */
const MORE_SHAPES: readonly (readonly [from: string, to: string])[] = [
  ['ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢĸʍ', 'ABCDEFGHIJKLMNOPQRSTUVWYZKM'],
  ['ⲀⲁꞒꞓχ', 'AaEex'],
  ['ԼլԱՐղ', 'LlUPn'],
  ['꞊═≡〓⚌🟰', '======'],
  ['ঃះ፡᠄꛴⦂⁝', ':::::::'],
  ['⁅⟦〚【〖〔〘❲⟬⦋⦍⦏⦗⌈⌊⎡⎣⸢⸤⌜⌞⹕⹗', '[[[[[[[[[[[[[[[[[[[[[[['],
  ['⁆⟧〛】〗〕〙❳⟭⦌⦎⦐⦘⌉⌋⎤⎦⸣⸥⌝⌟⹖⹘', ']]]]]]]]]]]]]]]]]]]]]]]'],
  ['ー', '-'],
];

/** Letters in dark circles and squares, and those of flags, which normalization does not map: the first code point of each. */
const ALPHABETS = [0x1f150, 0x1f170, 0x1f1e6];

interface Shapes {
  readonly of: ReadonlyMap<string, string>;
  readonly pattern: RegExp;
}

let shapes: Shapes | undefined;

/** Made at the first use. */
function allShapes(): Shapes {
  if (shapes) return shapes;
  const of = new Map<string, string>();
  for (const row of CONFUSABLES) {
    const [shape = '', characters = ''] = row.split('\t');
    for (const one of characters) of.set(one, shape);
  }
  for (const [from, to] of MORE_SHAPES)
    for (const [place, one] of [...from].entries()) of.set(one, to[place] ?? one);
  for (const first of ALPHABETS)
    for (let place = 0; place < 26; place++)
      of.set(String.fromCodePoint(first + place), String.fromCharCode(0x41 + place));
  const again = (shape: string) => [...shape].map((one) => of.get(one) ?? one).join('');
  for (const [one, shape] of of) of.set(one, again(again(shape))); // Cyrillic к is ĸ, which is K
  const characters = [...of.keys()].join('').replace(/[\\\]^-]/g, '\\$&');
  shapes = { of, pattern: new RegExp(`[${characters}]`, 'gu') };
  return shapes;
}

/** Maps each character to the plain one that it looks like. Keeps case, marks and invisible characters. */
export function shapeOf(text: string): string {
  const { of, pattern } = allShapes();
  return text.normalize('NFKD').replace(pattern, (one) => of.get(one) ?? one);
}

/** One line without brackets of any width (MARKER-2 of `text.ts`). */
export function plainName(name: string): string {
  return name.replace(/[[\]［］﹇﹈⁅⁆⟦⟧〚〛\p{Cc}\u2028\u2029]/gu, ' ').trim();
}

/** Marks on letters of any alphabet, and any marks on plain Latin letters. Others, such as vowels of Indic scripts, make names differ. */
const MARKS = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+|(?<=[!-~])\p{M}+/gu;

/** What a name looks like: as it is written, and in lower case, in which some letters look like others. */
function formsOf(name: string): readonly string[] {
  const seen = name.normalize('NFKC').replace(/[\p{Cf}\p{DI}\u2800]/gu, '');
  return [seen, shapeOf(seen)].map((one) => {
    const plain = plainName(one).replace(/\s+/gu, ' ').toLowerCase();
    return shapeOf(plain).replace(MARKS, '').toLowerCase().replaceAll('i', 'l');
  });
}

/** Whether a reader may confuse two names. */
export function looksLike(name: string, other: string): boolean {
  return new NamesLike([other]).has(name);
}

/** Names that a reader may confuse with others. */
class NamesLike {
  readonly #forms: ReadonlySet<string>;

  constructor(names: readonly string[]) {
    this.#forms = new Set(names.flatMap(formsOf));
  }

  has(name: string): boolean {
    return formsOf(name).some((form) => this.#forms.has(form));
  }
}

/** The names that no person may have: names and slugs of agents, what attributes a message to one (V16), names of hired ones. */
export function namesOfAgents(names: readonly string[]): Pick<NamesLike, 'has'> {
  const taken = new NamesLike(names.flatMap((name) => [name, `agent ${name}`]));
  return { has: (name) => taken.has(name) || isHiredName(name) };
}

const HIRED = ' (hired)';
const HIRED_FORMS = formsOf(HIRED);

/** Hired agents have names of their own, so that none keeps a person from posting. */
export function hiredName(name: string): string {
  return isHiredName(name) ? name : name + HIRED;
}

/** Also with parentheses or letters that look like these. */
function isHiredName(name: string): boolean {
  return formsOf(name).some((form) => HIRED_FORMS.some((end) => form.endsWith(end.trim())));
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
