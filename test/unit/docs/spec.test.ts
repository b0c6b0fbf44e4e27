import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** docs/spec/ names the laws, the files that enforce them and the tests that prove them; here each name is checked. */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (page: string) => readFileSync(join(ROOT, page), 'utf8');

const numbered = (letter: string, length: number) => Array.from({ length }, (_, at) => `${letter}${at + 1}`);
const LAWS = numbered('L', 18);
const RULES = numbered('V', 19);

const page = read('docs/spec/laws.md');
const [lawPart = '', rulePart = ''] = page.split(/^## Tests of the view$/mu);
/** The text below each heading `### L1`, and the row of each rule of the view. */
const sections = [
  ...lawPart.split(/^### /mu).slice(1),
  ...[...rulePart.matchAll(/^\| (V\d+ \|.*)$/gmu)].map(([, row = '']) => row),
];
/** The tests of a list such as "`test/a.ts`: "one"; "two" · `test/b.ts`: "three"". */
const claimsOf = (text: string) =>
  [...text.matchAll(/`(test\/[a-z0-9/.-]+\.ts)`: ("[^\n]+?")(?= · `|\n| \||$)/gu)].flatMap(
    ([, file = '', titles = '']) =>
      titles
        .slice(1, -1)
        .split('"; "')
        .map((title) => ({ file, title })),
  );
const claims = claimsOf(page);

/** The titles of a test file, as they are written. */
function titlesOf(file: string): string[] {
  if (!existsSync(join(ROOT, file))) return [];
  const source = read(file);
  // `it('…'`, `describe('…'`, and the title of a table, which follows it.
  const titles = source.matchAll(/(?:\b(?:it|describe)\(|\)\()\s*(['"`])((?:\\.|(?!\1).)*)\1/gu);
  return [...titles].map(([, , title = '']) => title.replace(/\\(['"`])/gu, '$1'));
}

describe('docs/spec/laws.md', () => {
  it('docs/spec/laws.md lists every law and every rule of the view once, in order', () => {
    const listed = sections.map((section) => /^[LV]\d+/u.exec(section)?.[0] ?? '?');
    expect(listed).toEqual([...LAWS, ...RULES]);
  });

  it('docs/spec/laws.md names a test for each law and rule', () => {
    expect(sections.filter((section) => claimsOf(section).length === 0)).toEqual([]);
  });

  it('every line of docs/spec/laws.md that names a test is parsed', () => {
    const quoted = new Set(claims.map(({ file }) => file));
    const named = [...page.matchAll(/`(test\/[^`]*\.ts)`: "/gu)].map(([, file = '']) => file);
    expect(named.filter((file) => !quoted.has(file))).toEqual([]);
    expect(claims).toHaveLength(named.length + (page.match(/"; "/gu)?.length ?? 0));
    expect(claims.length).toBeGreaterThan(100);
  });

  it.each(claims)(
    '$file has a test whose title begins as docs/spec/laws.md quotes it: $title',
    ({ file, title }) => {
      expect(titlesOf(file).filter((found) => found.startsWith(title))).toHaveLength(1);
    },
  );
});

/** The text below each heading `### L1`. */
function entriesOf(page: string): { readonly name: string; readonly text: string }[] {
  const found = read(page).split(/^### /mu).slice(1);
  return found.map((text) => ({ name: text.slice(0, text.indexOf('\n')).trim(), text }));
}

describe('the laws in docs/spec/laws.md', () => {
  const laws = entriesOf('docs/spec/laws.md');

  it('docs/spec/laws.md has one section for each law, in order', () => {
    expect(laws.map(({ name }) => name)).toEqual(LAWS);
  });

  it.each(laws)(
    'docs/spec/laws.md names for $name the reason, the file that enforces it, and a test that proves it',
    ({ text }) => {
      expect(text).toMatch(/^- Why: /mu);
      expect(text).toMatch(/^- Enforced: .*`src\/[a-z0-9/-]+\.ts`/msu);
      expect(text).toMatch(/^- Tests: `test\//mu);
    },
  );
});

describe('docs/spec/view.md', () => {
  it('docs/spec/view.md has one section for each rule, in order', () => {
    expect(entriesOf('docs/spec/view.md').map(({ name }) => name)).toEqual(RULES);
  });
});

/** Pages that cite source files: a file that moves takes its citations along. */
const PAGES = [
  ...['docs/spec', 'docs/explanation'].flatMap((folder) =>
    readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`),
  ),
  'docs/glossary.md',
].filter((page) => page.endsWith('.md'));

describe('the pages of the specification and the explanations', () => {
  it.each(PAGES)('%s cites only files and folders that exist', (page) => {
    const cited = read(page).matchAll(/`((?:src|test|bench|examples|config)\/[A-Za-z0-9_./-]+)`/gu);
    const paths = [...cited].map(([, path = '']) => path);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

/** Words with one meaning, in documents and in code. */
const WORDS = [
  ...['conversation', 'entry', 'index', 'agent', 'person', 'publisher', 'trigger', 'turn', 'cursor', 'phase'],
  ...['mode', 'workflow', 'run', 'node', 'handoff', 'delegation', 'question', 'approval', 'view', 'request'],
  ...['reduction', 'summary', 'post', 'ingress', 'dead letter', 'owner', 'claim', 'lease', 'low-water mark'],
];

describe('docs/glossary.md', () => {
  const entries = [...read('docs/glossary.md').matchAll(/^\| \*\*(.+?)\*\* \| (.+) \|$/gmu)];
  const terms = entries.map(([, term = '']) => term);

  it('docs/glossary.md lists each term once, in alphabetical order', () => {
    const sorted = [...new Set(terms)].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase()));
    expect(terms).toEqual(sorted);
  });

  it('docs/glossary.md has an entry for each word with a fixed meaning', () => {
    const known = new Set(terms.map((term) => term.toLowerCase()));
    expect(WORDS.filter((word) => !known.has(word))).toEqual([]);
  });

  it('docs/glossary.md has a link in each entry', () => {
    expect(
      entries.filter(([, , text = '']) => !/\]\([a-z/-]+\.md/u.test(text)).map(([, term]) => term),
    ).toEqual([]);
  });
});

/** The anchor of each heading of a page, as GitHub makes them. */
function anchorsOf(page: string): Set<string> {
  const headings = read(page).matchAll(/^#{1,6} (.+)$/gmu);
  return new Set(
    [...headings].map(([, text = '']) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

describe('links to sections', () => {
  it.each(PAGES)('%s links only to headings that exist', (page) => {
    const links = [...read(page).matchAll(/\]\(([^)#\s]*)#([^)\s]+)\)/gu)];
    const broken = links.filter(([, to = '', anchor = '']) => {
      const target = to === '' ? page : join(dirname(page), to);
      return !anchorsOf(target).has(anchor);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });
});
