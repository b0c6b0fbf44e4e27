import { readFile } from 'node:fs/promises';
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import { messageOf } from '../kernel/index.ts';
import { type KeyPath, type Problems, show } from './problems.ts';

/** YAML as it was read: the plain data, and where each key stands, for whoever has to correct it. */
export interface YamlSource {
  readonly file: string;
  /** A mapping; `{}` when the file is empty or could not be read. */
  readonly data: Record<string, unknown>;
  /** `parley.yaml:12:3`, or the file alone when nothing stands at that path. */
  locate(path: KeyPath): string;
}

/** The text of a file, or null if there is none. */
export async function readIfThere(file: string, problems: Problems): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (!isMissing(error)) {
      problems.add({ source: file, key: '', seen: messageOf(error), expected: 'a readable file' });
    }
    return null;
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/** Parses YAML whose top level is a mapping. `firstLine`: the line of the file that `text` begins at. */
export function parseMapping(file: string, text: string, problems: Problems, firstLine = 1): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line + firstLine - 1}:${col}`;
  };
  const empty: YamlSource = { file, data: {}, locate: () => file };
  if (document.errors.length > 0) {
    for (const error of document.errors) {
      problems.add({ source: place(error.pos[0]), key: '', seen: error.message, expected: 'valid YAML' });
    }
    return empty;
  }
  const data = plainData(document, file, problems);
  if (data === null || data === undefined) return empty;
  if (!isMapping(data)) {
    problems.add({ source: file, key: '', seen: show(data), expected: 'a mapping (lines of `key: value`)' });
    return empty;
  }
  return { file, data, locate: (path) => locate(document, path, place) ?? file };
}

function plainData(document: Document, file: string, problems: Problems): unknown {
  try {
    return document.toJS();
  } catch (error) {
    problems.add({ source: file, key: '', seen: messageOf(error), expected: 'valid YAML' });
    return null;
  }
}

/** The nearest place on the way down to `path` that stands in the file. */
function locate(document: Document, path: KeyPath, place: (offset: number) => string): string | null {
  for (let length = path.length; length > 0; length -= 1) {
    const node: unknown = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return place(node.range[0]);
  }
  return null;
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
