import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  anchorsOf,
  blocksOf,
  codeSpansOf,
  linksOf,
  type Page,
  ROOT,
  readPage,
  readPages,
} from '../../support/pages.ts';
import { codeFaults } from './code-faults.ts';
import { codeIn } from './tables.ts';

/** Every document: its links lead somewhere, its code is valid, and the commands that it shows exist. */

const pages = await readPages();
const page = (text: string): Page => ({ path: 'docs/example.md', text });
const exists = (path: string) =>
  stat(join(ROOT, path)).then(
    () => true,
    () => false,
  );

async function brokenLinks(from: Page): Promise<string[]> {
  const broken: string[] = [];
  for (const { path, anchor } of linksOf(from)) {
    const isHere = path === '';
    const target = isHere ? from.path : normalize(join(dirname(from.path), path));
    const isThere = isHere || (await exists(target));
    const needsAnchor = isThere && anchor !== '';
    const hasAnchor = !needsAnchor || anchorsOf(isHere ? from : await readPage(target)).has(anchor);
    if (!isThere || !hasAnchor) broken.push(`${from.path}: ${path}${anchor === '' ? '' : `#${anchor}`}`);
  }
  return broken;
}

/** Files and folders of the repository that a page names between backquotes. */
async function missingFiles(one: Page): Promise<string[]> {
  const paths = codeSpansOf(one).filter((span) =>
    /^(bench|bin|docs|examples|scripts|src|test)\/[\w./-]+$/.test(span),
  );
  const missing: string[] = [];
  for (const path of paths) if (!(await exists(path))) missing.push(path);
  return missing;
}

describe('the documents', () => {
  it('the checked documents include the pages that readers start from', () => {
    const paths = pages.map(({ path }) => path);
    const known = ['README.md', 'docs/README.md', 'docs/spec/wire.md', 'examples/team/README.md'];
    expect(paths).toEqual(expect.arrayContaining(known));
  });

  it.each(pages)('the links of $path lead to pages and headings that exist', async (one) => {
    expect(await brokenLinks(one)).toEqual([]);
  });

  it.each(pages)('the code of $path parses, and its commands and flags exist', (one) => {
    expect(codeFaults(one)).toEqual([]);
  });

  // Decisions and the changelog name files as they were.
  it.each(pages.filter(({ path }) => !/decisions|CHANGELOG/.test(path)))(
    'the files that $path names exist',
    async (one) => {
      expect(await missingFiles(one)).toEqual([]);
    },
  );

  it.each(pages)('the text of $path names each file that the reader creates', (one) => {
    const lines = one.text.split('\n');
    const unnamed = blocksOf(one).filter(({ title, line }) => {
      const file = /^title=(\S+)$/.exec(title)?.[1];
      return (
        file !== undefined &&
        !lines
          .slice(Math.max(0, line - 6), line - 1)
          .join()
          .includes(`\`${file}\``)
      );
    });
    expect(unnamed.map(({ title }) => title)).toEqual([]);
  });

  it('the path of a message has at most 20 files, and each has what its row names', async () => {
    const { text } = await readPage('docs/explanation/architecture.md');
    const [, section = ''] = text.split('## The path of a message\n');
    const rows = section.split('\n## ')[0]?.match(/^\| `.*$/gm) ?? [];
    expect(rows.length).toBeGreaterThan(10);
    expect(rows.length).toBeLessThanOrEqual(20);
    const files = (await readdir(join(ROOT, 'src'), { recursive: true })).map((file) => `/${file}`);
    const missing = [];
    for (const row of rows) {
      const [[file = ''] = [], names = [], beside = []] = row.split('|').slice(1).map(codeIn);
      const code = await readFile(join(ROOT, 'src', file), 'utf8');
      missing.push(...names.filter((name) => !new RegExp(`${name}\\b`).test(code)));
      const others = beside.filter((name) => name.endsWith('.ts') && !name.includes('<'));
      missing.push(...others.filter((other) => !files.some((one) => one.endsWith(`/${other}`))));
    }
    expect(missing).toEqual([]);
  });

  it('documents in the package link only to files in the package', async () => {
    const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { files: string[] };
    const ships = (path: string) => files.some((one) => path === one || path.startsWith(`${one}/`));
    const links = pages
      .filter(({ path }) => ships(path))
      .flatMap((one) =>
        linksOf(one).flatMap(({ path }) => (path === '' ? [] : [normalize(join(dirname(one.path), path))])),
      );
    expect(links.length).toBeGreaterThan(100);
    expect(links.filter((to) => !ships(to))).toEqual([]);
  });
});

describe('the check of a document', () => {
  it.each([
    ['a link to a page that does not exist', '[a](nothing.md)'],
    ['an image that does not exist', '![a](nothing.png)'],
    ['a link to a heading that another page does not have', '[a](README.md#nothing)'],
    ['a link to a heading that the page itself does not have', '# One\n\n[a](#two)'],
  ])('the check of a document finds %s', async (_, text) => {
    expect(await brokenLinks(page(text))).toHaveLength(1);
  });

  it.each([
    '# One\n\n[a](#one)',
    '# A `code` heading, twice\n\n# A `code` heading, twice\n\n[a](#a-code-heading-twice-1)',
    '    [a](nothing.md)',
    '[a](https://example.org/nothing)',
  ])('the check of a document accepts the links of %j', async (text) => {
    expect(await brokenLinks(page(text))).toEqual([]);
  });

  it.each([
    ['JSON that does not parse', '```json\n{"a":…}\n```', 'JSON'],
    ['YAML that does not parse', '```yaml\na: [\n```', 'docs/example.md:1'],
    ['a key that parley.yaml does not have', '```yaml\ntools: { projekt: . }\n```', 'projekt'],
    ['a key that a workflow does not have', '```yaml\nid: a\nstart: b\nnodes: {}\nend: c\n```', 'end'],
    ['a key that a script does not have', '```yaml\nrules: [{ replay: { text: hi } }]\n```', 'replay'],
    ['a role that a user cannot have', '```yaml\ntenants: { a: { users: { b: { role: c } } } }\n```', 'role'],
    ['a key that an agent does not have', '```markdown\n---\ntool: [ask]\n---\nYou.\n```', 'tool'],
    ['TypeScript that does not parse', '```ts\nconst a = ;\n```', 'Expression expected'],
    ['JavaScript that does not parse', '```js\nif (\n```', 'Expression expected'],
    ['a command that does not exist', '```sh\nparley dance\n```', 'there is no command parley dance'],
    [
      'a flag that the command does not have',
      '```sh\nparley say demo "x" --loud\n```',
      'say takes no --loud',
    ],
    ['a flag that only another command has', '```sh\nparley ls --cost\n```', 'ls takes no --cost'],
    ['a flag of a command below another', '```sh\nparley dead ls --loud\n```', 'ls takes no --loud'],
    ['a command after a prompt, indented', '    $ parley dance', 'dance'],
    ['a command in another command', '```sh\nexport T="$(parley dance)"\n```', 'dance'],
    ['a command between backquotes', 'Run `parley dance`.', 'dance'],
    ['a command by npm', '    npm run --silent parley -- dance', 'dance'],
    ['a command on a continued line', '```sh\nparley say demo "x" \\\n  --loud\n```', '--loud'],
  ])('the check of a document finds %s', (_, text, fault) => {
    expect(codeFaults(page(text)).join('\n')).toContain(fault);
  });

  it('the check of a document finds a named file that does not exist', async () => {
    expect(await missingFiles(page('`src/nothing.ts`, `src/index.ts`'))).toEqual(['src/nothing.ts']);
  });

  it.each([
    '```sh\nparley say demo "take --no-flag from me" --wait   # parley dance\n```',
    '```sh\nparley up --store jetstream --data /tmp/x | tee log\n```',
    '`parley <command> --help`',
    '```sh\nparley --version\n```',
    `\`\`\`yaml\nhttp: { tokens: { read: "\${READ_TOKEN}" } }\n\`\`\``,
  ])('the check of a document accepts the code of %j', (text) => {
    expect(codeFaults(page(text))).toEqual([]);
  });
});
