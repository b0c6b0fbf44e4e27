import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const LINK = /\]\(<?([^)\s>#]+)[^)]*\)/g;

/** The links of a page to files, as paths below the root. */
async function linksOf(page: string): Promise<string[]> {
  const text = (await readFile(join(ROOT, page), 'utf8')).replaceAll(/^ {4}.*$|```[\s\S]*?```/gm, '');
  const links = [...text.matchAll(LINK)].map(([, to]) => to ?? '').filter((to) => !/^[a-z]+:/.test(to));
  return links.map((to) => relative(ROOT, join(ROOT, dirname(page), decodeURIComponent(to))));
}

it('every relative link in a page that ships leads to a file that ships', async () => {
  const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { files: string[] };
  const ships = (path: string) => files.some((one) => path === one || path.startsWith(`${one}/`));
  const pages: string[] = [];
  for (const name of files) {
    const isFolder = await stat(join(ROOT, name)).then(
      (found) => found.isDirectory(),
      () => false, // `dist` is made when the package is
    );
    if (!isFolder) pages.push(name);
    else
      for (const path of await readdir(join(ROOT, name), { recursive: true })) pages.push(join(name, path));
  }
  expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/bus.md', 'examples/team/README.md']));
  const broken: string[] = [];
  for (const page of pages.filter((path) => path.endsWith('.md'))) {
    for (const to of await linksOf(page)) {
      const isThere = await stat(join(ROOT, to)).then(
        () => true,
        () => false,
      );
      if (!isThere || !ships(to)) broken.push(`${page}: ${to}`);
    }
  }
  expect(broken).toEqual([]);
});
