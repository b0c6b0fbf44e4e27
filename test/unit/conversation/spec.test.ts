import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** SPEC.md says which test proves which law; here it is held to its word. */

const spec = readFileSync(new URL('../../../src/conversation/SPEC.md', import.meta.url), 'utf8');
const sections = spec.split(/^- \*\*/mu).slice(1);
const laws = sections.map((section) => /^[LV]\d+/u.exec(section)?.[0] ?? '?');
const claims = [...spec.matchAll(/^ {2}`([a-z0-9/.-]+\.ts): (.+)`$/gmu)].map(([, file = '', title = '']) => ({
  file,
  title,
}));

/** The titles of a test file, as they are written. */
function titlesOf(file: string): string[] {
  const path = new URL(file, import.meta.url);
  if (!existsSync(path)) return [];
  const source = readFileSync(path, 'utf8');
  // `it('…'`, `describe('…'`, and the title of a table, which stands behind it.
  const titles = source.matchAll(/(?:\b(?:it|describe)\(|\)\()\s*(['"`])((?:\\.|(?!\1).)*)\1/gu);
  return [...titles].map(([, , title = '']) => title.replace(/\\(['"`])/gu, '$1'));
}

describe('SPEC.md', () => {
  it('lists every law and every rule of the view, each once, in order', () => {
    const all = ['L', 'V'].flatMap((letter) => Array.from({ length: 18 }, (_, at) => `${letter}${at + 1}`));
    expect(laws).toEqual(all);
  });

  it('names a test for each of them, or says that there is none yet', () => {
    const unproven = sections.filter((section) => !/\.ts: /u.test(section));
    for (const section of unproven) expect(section).toMatch(/^[LV]\d+\*\* Not yet: /u);
  });

  it('is read to its last line: each that names a test is a claim', () => {
    expect(claims).toHaveLength(spec.match(/^ {2}`/gmu)?.length ?? 0);
    expect(claims.length).toBeGreaterThan(100);
  });

  it.each(claims)('$file has a test whose title begins: $title', ({ file, title }) => {
    expect(titlesOf(file).filter((found) => found.startsWith(title))).toHaveLength(1);
  });
});
