import {
  type Document,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml';
import { isShallow, MAX_DEPTH, messageOf } from '../../kernel/index.ts';
import { type KeyPath, keyText, type Problems, show } from '../problems/problems.ts';

/** Parsed YAML: the plain data, and the position of each key for error messages. */
export interface YamlSource {
  readonly file: string;
  /** A mapping; `{}` when the file is empty or could not be read. */
  readonly data: Record<string, unknown>;
  /** False: the file could not be parsed, and that was reported. */
  readonly isValid: boolean;
  /** `parley.yaml:12:3`, or only the file if there is nothing at that path. */
  locate(path: KeyPath): string;
}

/** Parses YAML whose top level is a mapping. `firstLine`: the line of the file that `text` begins at. */
export function parseMapping(file: string, text: string, problems: Problems, firstLine = 1): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line + firstLine - 1}:${col}`;
  };
  const empty: YamlSource = { file, data: {}, isValid: true, locate: () => file };
  const unreadable: YamlSource = { ...empty, isValid: false };
  if (document.errors.length > 0) {
    // After a syntax error, later errors may be consequences: only the first is certain.
    const broken = document.errors.find(({ code }) => code !== 'DUPLICATE_KEY');
    for (const error of broken ? [broken] : document.errors) {
      problems.add({ source: place(error.pos[0]), ...describe(error, document) });
    }
    return unreadable;
  }
  const data = plainData(document, file, problems);
  if (data === undefined) return unreadable;
  if (data === null) return empty;
  if (!isMapping(data)) {
    problems.add({ source: file, key: '', seen: show(data), expected: 'a mapping (lines of `key: value`)' });
    return unreadable;
  }
  return { file, data, isValid: true, locate: (path) => locate(document, path, place) ?? file };
}

function describe(error: YAMLError, document: Document) {
  const twice = error.code === 'DUPLICATE_KEY' ? keyAt(document, error.pos[0]) : null;
  if (twice === null) return { key: '', seen: error.message, expected: 'valid YAML' };
  return { key: keyText(twice), seen: 'a duplicate key', expected: 'each key once' };
}

/** The path of the key at that offset. */
function keyAt(document: Document, offset: number): KeyPath | null {
  let found: KeyPath | null = null;
  visit(document, {
    Scalar(part, node, ancestors) {
      if (part !== 'key' || node.range?.[0] !== offset) return undefined;
      found = ancestors.flatMap((ancestor, level): (string | number)[] => {
        if (isPair(ancestor)) return isScalar(ancestor.key) ? [String(ancestor.key.value)] : [];
        return isSeq(ancestor) ? [ancestor.items.indexOf(ancestors[level + 1] ?? node)] : [];
      });
      return visit.BREAK;
    },
  });
  return found;
}

/** Undefined: it could not be parsed, and that was reported. */
function plainData(document: Document, file: string, problems: Problems): unknown {
  try {
    const data: unknown = document.toJS() ?? null;
    if (isShallow(data)) return data;
    const seen = `nested deeper than ${MAX_DEPTH} levels, or within itself`;
    problems.add({ source: file, key: '', seen, expected: 'a configuration' });
    return undefined;
  } catch (error) {
    problems.add({ source: file, key: '', seen: messageOf(error), expected: 'valid YAML' });
    return undefined;
  }
}

/** The position of `path`, or of its nearest parent in the file. */
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
