import { hasVisible } from '../../kernel/text.ts';
import { CONFUSABLES } from './confusables.ts';

/**
 * Characters that look like others. Names and markers are compared by what a reader sees: the skeleton of Unicode's UTS 39,
 * with the signs that it lacks, without case, marks and invisible characters.
 */

/**
 * What UTS 39 leaves apart or compares with other characters, and a reader confuses. A row with one shape gives it to each.
 * No letter is here that a living alphabet tells from another one of this shape: `Λ` is no `A`, since a Greek name may have both.
 */
const MORE_SHAPES: readonly (readonly [from: string, to: string])[] = [
  ['ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢĸʍ', 'ABCDEFGHIJKLMNOPQRSTUVWYZKM'],
  ['ⲀⲁꞒꞓχ', 'AaEex'],
  ['ԼլԱՐղ', 'LlUPn'],
  ['ϹϲſẛỺ', 'CcffL'], // some are compatibility forms of other letters
  // Latin letters that are turned, hooked, barred or of phonetics.
  ['Ⱥɐᶏẚⱥ', 'A'],
  ['ᴃᵬᶀꞖꞗ', 'B'],
  ['ƇƈɕↄꞔꟄ', 'C'],
  ['ȡᵭᶁᶑꝹꝺꟇꟈ', 'D'],
  ['ƎɘɝɞʚᴈᶒᶓᶔⱸⱻꞫꬳꬴ', 'E'],
  ['ᶂꝻꝼ', 'F'],
  ['ʛᵷᵹꝽꝾꝿꞠꞡꟐꟑꬶ', 'G'],
  ['ɥʮʯⱨⱶꞍꞕꟵꟶ', 'H'],
  ['ᴉᶖ', 'I'],
  ['ɟʄʝ', 'J'],
  ['ʞᶄⱪꝁꝂꝃꝄꝅꞢꞣꞰ', 'K'],
  ['ĿŀȴɬᴌᶅⱠⱡꝆꝇꝈꝉꞀꞁꞎꞭꬷꬸꬹ', 'L'],
  ['ᶆꬺ', 'M'],
  ['ȵɲᶇꞐꞑꞤꞥꬻ', 'N'],
  ['ᴒᴓᶗⱺꝌꝍꬿ', 'O'],
  ['ᵱᶈꝐꝑꝒꝓꝔꝕ', 'P'],
  ['ɋꝖꝗꝘꝙ', 'Q'],
  ['ɹɺɻɾɿʁᴚᵳᶉⱹꝚꝛꞂꞃꞦꞧꭅꭆꭉꭋꭌ', 'R'],
  ['ȿᶊẜẝⱾꞄꞅꞨꞩꟉꟊ', 'S'],
  ['ƫȶʇʈⱦꞆꞇꞱ', 'T'],
  ['ᴝᴞᶙꞸꞹ', 'U'],
  ['ƲʋᶌỼỽⱱⱴꝞꝟ', 'V'],
  ['ƜɯᴟⱲⱳꟺ', 'W'],
  ['ᶍꭖꭗꭘꭙ', 'X'],
  ['ʎ', 'Y'],
  ['ɀʑᶎⱫⱬⱿꝢꝣꟆ', 'Z'],
  // Cherokee and Georgian
  ['ᎣᎤᎻᎾᏌᏭᎶᏣᏟᏋᎬᏐᏏᏧᏙᏬᏩ', 'OOHOUUGGCEEFbdVUU'],
  ['ძხჩჯო', 'dbhxm'],
  // Circles, and digits zero
  ['○◯◦◌◎●⚪⚫⚬⭕⭘❍☉∘°⊕⊖⊗⊘⊙⊚⊛⊜⊝⨀⌾⦾⦿⬤ⴰⵙᄋ', 'O'],
  ['෦႐០᠐᥆᧐᪀᪐᭐᮰᱀᱐꘠꣐꤀꧐꧰꩐꯰', 'O'],
];

/** Letters in dark circles and squares, and those of flags, which normalization does not map: the first code point of each. */
const ALPHABETS = [0x1f150, 0x1f170, 0x1f1e6];

/** Signs that a reader takes for a letter within a name. */
const LETTER_SIGNS = new Map([...'!¡¦$§€£@¢'].map((sign, place) => [sign, [...'lllSSELac'][place] ?? sign]));

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
    for (const [place, one] of [...from].entries()) of.set(one, to.length === 1 ? to : (to[place] ?? one));
  for (const first of ALPHABETS)
    for (let place = 0; place < 26; place++)
      of.set(String.fromCodePoint(first + place), String.fromCharCode(0x41 + place));
  const again = (shape: string) => [...shape].map((one) => of.get(one) ?? one).join('');
  for (const [one, shape] of of) of.set(one, again(again(shape))); // Cyrillic к is ĸ, which is K
  const characters = [...of.keys()].join('').replace(/[\\\]^-]/g, '\\$&');
  shapes = { of, pattern: new RegExp(`[${characters}]`, 'gu') };
  return shapes;
}

function shapeAsWritten(text: string): string {
  const { of, pattern } = allShapes();
  return text.replace(pattern, (one) => of.get(one) ?? one);
}

/** Maps each character to the plain one that it looks like. Keeps case, marks and invisible characters. */
export function shapeOf(text: string): string {
  return shapeAsWritten(text.normalize('NFKD'));
}

/** Brackets of any kind but round ones, which ordinary text often begins with, and low quotation marks. */
const OPENING = '(?![(（⁽₍﹙‚„〝])[\\p{Ps}⌜⌞⎡⎣]';
const CLOSING = '(?![)）⁾₎﹚〞〟])[\\p{Pe}⌝⌟⎤⎦]';
/** What a reader confuses with the sign of a marker. Not in names: some of these are letters there. */
const MARKER_SIGNS: readonly (readonly [sign: string, pattern: RegExp])[] = [
  ['[', new RegExp(OPENING, 'gu')],
  [']', new RegExp(CLOSING, 'gu')],
  [':', /[︰︙⁝⁞⋮∷⫶⦂⸬⸽፡፥፦᠄᭝៖ះঃ꛴𐄑ⵂⵓⵗ⠃⠅⠆⠘⠨⠰⡁⡂⡄⢈⢐⢠]/gu],
  ['=', /[꞊═━┅┉╍≡≣≒≓≖≘≛≜≝≟〓⚊-⚏☰-☷䷀-䷿🟰⸗二三▀-▄▔▬▭‗‾¯￣﹉-﹎]/gu],
  ['-', /ー/gu],
];

/** `shapeOf`, and the signs of markers. */
export function markerShapeOf(text: string): string {
  const signs = (given: string) =>
    MARKER_SIGNS.reduce((changed, [sign, pattern]) => changed.replace(pattern, sign), given);
  return signs(shapeOf(signs(text)));
}

const NOT_OF_A_LINE = new RegExp(`${OPENING}|${CLOSING}|[\\p{Cc}\\u2028\\u2029]`, 'gu');

/** One line without brackets that could end an attribution (MARKER-2 of `text.ts`). */
export function plainName(name: string): string {
  return name.replace(NOT_OF_A_LINE, ' ').trim();
}

/** Marks on letters of any alphabet, and any marks on plain Latin letters. Others, such as vowels of Indic scripts, make names differ. */
const MARKS = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+|(?<=[!-~])\p{M}+/gu;
/** Signs do not tell names apart, but `C`, `C++` and `C#` are three. */
const SIGN = '[^\\p{L}\\p{N}\\p{M}+#]';
const SIGNS = new RegExp(`${SIGN}+`, 'gu');
const OUTER_SIGNS = new RegExp(`^${SIGN}+|${SIGN}+$`, 'gu');

/**
 * What a name looks like: with signs read as letters (`Deve!oper`), only those inside, and none; and as it is written, in
 * lower case and in upper case, in which some letters look like others.
 */
function readingsOf(name: string): string[] {
  // `Ϲ` looks like C, and is a compatibility form of Σ.
  return [...new Set([name, shapeAsWritten(name)])].flatMap(readingsAs);
}

function readingsAs(name: string): string[] {
  const seen = name.normalize('NFKC').replace(/[\p{Cf}\p{DI}\u2800]/gu, '');
  const lettered = [...seen].map((one) => LETTER_SIGNS.get(one) ?? one).join('');
  const read = new Set([lettered, seen.replace(OUTER_SIGNS, ''), seen.replace(SIGNS, ' ')]);
  return [...read]
    .flatMap((one) => [one, shapeOf(one), shapeOf(one.toUpperCase())])
    .map((one) => shapeOf(one.toLowerCase()).replace(MARKS, '').toLowerCase().replaceAll('i', 'l'));
}

/** The letters and digits of each reading. A name of signs alone is its own form. */
function formsOf(name: string): readonly string[] {
  const forms = readingsOf(name).map((one) => one.replace(SIGNS, ''));
  const written = [...new Set(forms)].filter((one) => one !== '');
  return written.length > 0 ? written : [name.normalize('NFKC').replace(/[\s\p{Cf}\p{DI}\u2800]/gu, '')];
}
/** Whether a reader may confuse two names. */
export function looksLike(name: string, other: string): boolean {
  const forms = formsOf(other);
  return formsOf(name).some((form) => forms.includes(form));
}

/** The names that no person may have: names and slugs of agents, what attributes a message to one (V16), names of hired ones. */
export function namesOfAgents(names: readonly string[]): { readonly has: (name: string) => boolean } {
  const forms = names.flatMap(formsOf);
  const taken = new Set([...forms, ...forms.map((form) => `agent${form}`)]);
  return { has: (name) => formsOf(name).some((form) => taken.has(form)) || isHiredName(name) };
}

const HIRED = ' (hired)';
/** The word at the end of a name, in a reading of it, with any signs around and inside. */
const HIRED_END = new RegExp(`${SIGN}+${[...'hlred'].join(`${SIGN}*`)}${SIGN}*$`, 'u');

/** Hired agents have names of their own, so that none keeps a person from posting. */
export function hiredName(name: string): string {
  return isHiredName(name) ? name : name + HIRED;
}

function isHiredName(name: string): boolean {
  return readingsOf(name).some((one) => HIRED_END.test(one));
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
