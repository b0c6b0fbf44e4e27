/** Characters that a reader may take for others. Names and markers are compared without what tells them apart. */

/** What cannot be seen, in the form of an expression. */
export const INVISIBLE = '[\\p{Cf}\\p{DI}]*';

/** Cyrillic, Greek and other letters and signs, and what they look like; NFKC leaves them as they are. */
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

/** As it looks: full-width and other forms of a character, and letters of other scripts, are the plain Latin ones. */
export function shapeOf(text: string): string {
  return text.normalize('NFKC').replace(SHAPED, (one) => SHAPES.get(one) ?? one);
}

/** One line, without brackets (TEXT-TEXT-2 of `text.ts`), whatever their width. */
export function plainName(name: string): string {
  return name.replace(/[[\]［］﹇﹈⁅⁆⟦⟧〚〛\p{Cc}\u2028\u2029]/gu, ' ').trim();
}

/** A name as it may be mistaken for another: without case, invisible characters, brackets, width. */
function foldName(name: string): string {
  const visible = name.normalize('NFKC').replace(/[\p{Cf}\p{DI}\u2800]/gu, '');
  return plainName(visible).replace(/\s+/gu, ' ').toLowerCase();
}

/** Whether a reader may take one name for the other. */
export function looksLike(name: string, other: string): boolean {
  return foldName(name) === foldName(other) || foldName(shapeOf(name)) === foldName(shapeOf(other));
}
