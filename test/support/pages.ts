import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import MarkdownIt from 'markdown-it';

/** The documents of the repository, and the parts of them that tests check or run. */

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The pages that readers start from. Folders are read whole. */
const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  'AGENTS.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'bench/RESULTS.md',
  'clients',
  'config',
  'docs',
  'examples',
  'templates',
];

export interface Page {
  /** The path from the root of the repository. */
  readonly path: string;
  readonly text: string;
}

export interface Block {
  /** The language of a fenced block, such as `sh`; empty for a block that is indented or names none. */
  readonly language: string;
  /** The text after the language: `title=config/parley.yaml`. */
  readonly title: string;
  readonly text: string;
  readonly line: number;
}

export interface Link {
  /** Without its anchor; empty for a link within the page. */
  readonly path: string;
  readonly anchor: string;
}

const markdown = new MarkdownIt();

export async function readPage(path: string): Promise<Page> {
  return { path, text: await readFile(join(ROOT, path), 'utf8') };
}

export async function readPages(): Promise<Page[]> {
  const paths: string[] = [];
  for (const name of DOCUMENTS) {
    if ((await stat(join(ROOT, name))).isFile()) paths.push(name);
    else
      for (const below of (await readdir(join(ROOT, name), { recursive: true })).sort())
        if (below.endsWith('.md')) paths.push(join(name, below));
  }
  return Promise.all(paths.map(readPage));
}

export function blocksOf({ text }: Page): Block[] {
  return markdown.parse(text, {}).flatMap(({ type, info, content, map }) => {
    if (type !== 'fence' && type !== 'code_block') return [];
    const [language = '', ...rest] = info.trim().split(/\s+/);
    return [{ language, title: rest.join(' '), text: content, line: (map?.[0] ?? 0) + 1 }];
  });
}

/** The texts between single backquotes. */
export function codeSpansOf({ text }: Page): string[] {
  return inlineOf(text).flatMap(({ type, content }) => (type === 'code_inline' ? [content] : []));
}

/** Links and images that lead into the repository. */
export function linksOf({ text }: Page): Link[] {
  return inlineOf(text).flatMap(({ type, attrGet }) => {
    const to = type === 'link_open' ? attrGet('href') : type === 'image' ? attrGet('src') : null;
    if (to === null || /^[a-z]+:/i.test(String(to))) return [];
    const [path = '', anchor = ''] = decodeURIComponent(String(to)).split('#');
    return [{ path, anchor }];
  });
}

/** The anchors that GitHub makes of the headings of a page. */
export function anchorsOf({ text }: Page): Set<string> {
  const anchors = new Set<string>();
  const tokens = markdown.parse(text, {});
  for (const [at, token] of tokens.entries()) {
    if (token.type !== 'heading_open') continue;
    const words = (tokens[at + 1]?.children ?? []).map(({ content }) => content).join('');
    const name = words
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
      .replaceAll(' ', '-');
    let anchor = name;
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${name}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

function inlineOf(text: string) {
  return markdown
    .parse(text, {})
    .flatMap(({ children }) => children ?? [])
    .map((token) => ({
      type: token.type,
      content: token.content,
      attrGet: (name: string) => token.attrGet(name),
    }));
}
