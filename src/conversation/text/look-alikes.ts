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
