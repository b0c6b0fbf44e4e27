import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { referencePages, type Source, sourcesOf } from '../../../scripts/reference.ts';

const ROOT = new URL('../../../', import.meta.url);

const INVARIANT = /^ *\* +([A-Z][A-Z0-9-]*-\d+) +([^\s*][^\n]*(?:\n *\* {3,}[^\s*][^\n]*)*)/gm;
/** Standards, not invariants. */
const STANDARDS = /^(?:UTF|SHA|CRC|ISO|RFC)-/;

interface Invariant {
  readonly name: string;
  readonly path: string;
  readonly text: string;
}

/** What each file promises in the list of a comment: ` * NAME-1 text`. */
function invariantsOf(sources: readonly Source[]): Invariant[] {
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(INVARIANT)].flatMap(([, name = '', says = '']) =>
      STANDARDS.test(name)
        ? []
        : [{ name, path, text: says.replaceAll(/\n *\* +/g, ' ').replace(/\s*\*\/$/, '') }],
    ),
  );
}

it('the generated reference pages are what `npm run reference` writes', async () => {
  for (const [path, text] of await referencePages(ROOT)) {
    expect(readFileSync(new URL(path, ROOT), 'utf8') === text, `${path}: run \`npm run reference\``).toBe(
      true,
    );
  }
});

it('an invariant has one definition', () => {
  const names = invariantsOf(sourcesOf(ROOT)).map(({ name }) => name);
  expect(names.length).toBeGreaterThan(400);
  expect(names.filter((name, place) => names.indexOf(name) !== place)).toEqual([]);
});

it('the source cites no invariant that is not defined', () => {
  const sources = sourcesOf(ROOT);
  const defined = new Set(invariantsOf(sources).map(({ name }) => name));
  const prefixes = new Set([...defined].map((name) => name.replace(/-\d+$/, '')));
  const cited = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/(?<![\w-])([A-Z][A-Z0-9-]*)-\d+\b/g)].flatMap(([name, prefix = '']) =>
      prefixes.has(prefix) && !defined.has(name) ? [`${path}: ${name}`] : [],
    ),
  );
  expect(cited).toEqual([]);
});
