import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import type { Command } from 'commander';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createProgram } from '../../../src/cli/program.ts';
import {
  anchorsOf,
  type Block,
  blocksOf,
  codeSpansOf,
  linksOf,
  type Page,
  ROOT,
  readPage,
  readPages,
} from '../../support/pages.ts';

/** Every document: its links lead somewhere, its code parses, and the commands that it shows exist. */

const pages = await readPages();
const page = (text: string, path = 'docs/example.md'): Page => ({ path, text });
const exists = (path: string) =>
  stat(join(ROOT, path)).then(
    () => true,
    () => false,
  );

async function brokenLinks(from: Page): Promise<string[]> {
  const broken: string[] = [];
  for (const { path, anchor } of linksOf(from)) {
    const target = path === '' ? from.path : normalize(join(dirname(from.path), path));
    const isThere = path === '' || (await exists(target));
    const lacksAnchor =
      isThere && anchor !== '' && !anchorsOf(path === '' ? from : await readPage(target)).has(anchor);
    if (!isThere || lacksAnchor) broken.push(`${from.path}: ${path}${anchor === '' ? '' : `#${anchor}`}`);
  }
  return broken;
}

const PARSERS: Readonly<Record<string, (text: string) => string[]>> = {
  json: (text) => {
    try {
      JSON.parse(text);
      return [];
    } catch (error) {
      return [String(error)];
    }
  },
  yaml: (text) => parseAllDocuments(text).flatMap(({ errors }) => errors.map(({ message }) => message)),
  ts: (text) =>
    (ts.transpileModule(text, { reportDiagnostics: true }).diagnostics ?? []).map(({ messageText }) =>
      ts.flattenDiagnosticMessageText(messageText, ' '),
    ),
  sh: commandFaults,
};
const LANGUAGES: Readonly<Record<string, string>> = { js: 'ts', yml: 'yaml', bash: 'sh', console: 'sh' };

/** What is wrong in a page's code, with the line at which its block begins. */
function codeFaults(from: Page): string[] {
  const inBlock = (block: Block) => {
    const parse = PARSERS[LANGUAGES[block.language] ?? block.language];
    // A block that is indented names no language: only its commands are recognized.
    const faults = parse ? parse(block.text) : block.language === '' ? commandFaults(block.text) : [];
    return faults.map((fault) => `${from.path}:${block.line}: ${fault}`);
  };
  const inSpans = codeSpansOf(from).flatMap(commandFaults);
  return [...blocksOf(from).flatMap(inBlock), ...inSpans.map((fault) => `${from.path}: ${fault}`)];
}

const program = createProgram(
  { stdout: process.stdout, stderr: process.stderr } as unknown as Parameters<typeof createProgram>[0],
  async () => {},
);

/** `parley` as a command: at the start of a line, after a prompt, a pipe, `&&` or `$(`, or by npm. */
const CALL = /(?:^|[|;&(!] *|\$ |[A-Z_]+=\S* |--silent )parley (?:-- )?([a-z-].*)$/gm;

function commandFaults(text: string): string[] {
  const lines = text.replaceAll(/\s*\\\n\s*/g, ' ').replaceAll(/(^|\s)#.*$/gm, '$1');
  return [...lines.matchAll(CALL)].flatMap(([, words = '']) => faultsOfCall(words));
}

function faultsOfCall(call: string): string[] {
  // Quoted words, placeholders and what follows an operator are no part of the command's grammar.
  const words = (call.replaceAll(/"[^"]*"|'[^']*'/g, 'WORD').split(/[|;&>)]| {2}/)[0] ?? '')
    .trim()
    .split(/\s+/);
  let command: Command = program;
  for (const word of words) {
    const below = command.commands.find((candidate) => candidate.name() === word);
    if (!below) break;
    command = below;
  }
  if (command === program && !words[0]?.startsWith('--')) return [`there is no command parley ${words[0]}`];
  const taken = new Set(
    [command, program].flatMap(({ options }) => options.map(({ long }) => long)).concat('--help'),
  );
  return words
    .filter((word) => /^--[a-z]/.test(word))
    .map((word) => word.replace(/[=\].,:…].*$/, ''))
    .filter((flag) => !taken.has(flag))
    .map((flag) => `parley ${command === program ? '' : command.name()} takes no ${flag}`);
}

describe('the documents', () => {
  it('include the pages that readers start from', () => {
    expect(pages.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['README.md', 'docs/README.md', 'docs/bus.md', 'examples/team/README.md']),
    );
  });

  it.each(pages)('$path: its links lead to pages and headings that exist', async (one) => {
    expect(await brokenLinks(one)).toEqual([]);
  });

  it.each(pages)('$path: its code parses, and its commands and flags exist', (one) => {
    expect(codeFaults(one)).toEqual([]);
  });

  it('link only to files that ship, where they ship themselves', async () => {
    const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { files: string[] };
    const ships = (path: string) => files.some((one) => path === one || path.startsWith(`${one}/`));
    const missing = pages
      .filter(({ path }) => ships(path))
      .flatMap((one) => linksOf(one).map(({ path }) => [one.path, normalize(join(dirname(one.path), path))]))
      .filter(([from, to]) => to !== normalize(dirname(from ?? '')) && !ships(to ?? ''));
    expect(missing).toEqual([]);
    expect(await readdir(join(ROOT, 'docs'))).toContain('README.md');
  });
});

describe('a check of the documents', () => {
  it.each([
    ['a link to a page that does not exist', '[a](nothing.md)'],
    ['an image that does not exist', '![a](nothing.png)'],
    ['a link to a heading that another page does not have', '[a](bus.md#nothing)'],
    ['a link to a heading that the page itself does not have', '# One\n\n[a](#two)'],
  ])('finds %s', async (_, text) => {
    expect(await brokenLinks(page(text))).toHaveLength(1);
  });

  it.each([
    '# One\n\n[a](#one)',
    '# A `code` heading, twice\n\n# A `code` heading, twice\n\n[a](#a-code-heading-twice-1)',
    '    [a](nothing.md)',
    '[a](https://example.org/nothing)',
  ])('accepts the links of %j', async (text) => {
    expect(await brokenLinks(page(text))).toEqual([]);
  });

  it.each([
    ['JSON that does not parse', '```json\n{"a":…}\n```', 'JSON'],
    ['YAML that does not parse', '```yaml\na: [\n```', 'docs/example.md:1'],
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
  ])('finds %s', (_, text, fault) => {
    expect(codeFaults(page(text)).join('\n')).toContain(fault);
  });

  it.each([
    '```sh\nparley say demo "take --no-flag from me" --wait   # parley dance\n```',
    '```sh\nparley up --store jetstream --data /tmp/x | tee log\n```',
    '`parley <command> --help`',
    '```sh\nparley --version\n```',
  ])('accepts the code of %j', (text) => {
    expect(codeFaults(page(text))).toEqual([]);
  });
});
