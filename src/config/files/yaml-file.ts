import {
  type Document,
  type ErrorCode,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml';
import { isRecord, isShallow, MAX_DEPTH, messageOf } from '../../kernel/index.ts';
import { type KeyPath, keyText, type Problem, type Problems, show } from '../problems.ts';
import type { Environment } from '../schema/setting-sources.ts';

/** Parsed YAML: the plain data, and the position of each key for error messages. */
export interface YamlSource {
  readonly file: string;
  /** A mapping; `{}` when the file is empty or could not be read. */
  readonly data: Record<string, unknown>;
  /** False: the file could not be parsed, and that was reported. */
  readonly isValid: boolean;
  /** `parley.yaml:12:3`: of the value there, or with `isKey` of its key, else of its nearest parent; only the file if it is empty. */
  locate(path: KeyPath, isKey?: boolean): string;
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
      const { at = error.pos[0], ...described } = describe(error, document, lines, firstLine);
      problems.add({ source: place(at), ...described });
    }
    return unreadable;
  }
  const data = plainData(document, file, problems);
  if (data === undefined) return unreadable;
  if (data === null) return empty;
  if (!isRecord(data)) {
    problems.add({ source: file, seen: show(data), expected: 'a mapping (lines of `key: value`)' });
    return unreadable;
  }
  return {
    file,
    data,
    isValid: true,
    locate: (path, isKey = false) =>
      (isKey ? locateKey(document, path, place) : null) ?? locate(document, path, place) ?? file,
  };
}

type Described = Omit<Problem, 'source'> & { readonly at?: number };

/** What to do about a syntax error; other errors have the parser's own text. */
const SYNTAX: Partial<Record<ErrorCode, Omit<Problem, 'source' | 'key'>>> = {
  TAB_AS_INDENT: {
    seen: 'a tab in the indentation',
    expected: 'spaces',
    hint: 'YAML is indented with spaces only: replace the tab, usually by two spaces for each level',
  },
  BAD_INDENT: {
    seen: 'a line that is not in the column of the keys beside it',
    expected: 'all keys of a mapping, and all items of a list, in one column',
    hint: 'indent this line as the others of its level',
  },
  BLOCK_AS_IMPLICIT_KEY: {
    seen: 'a value, and below it keys that are indented deeper',
    expected: 'either a value after the colon or keys in the lines below it',
    hint: 'indent the next line as this one, or put a text with a colon in quotes',
  },
};

function describe(error: YAMLError, document: Document, lines: LineCounter, firstLine: number): Described {
  const twice = error.code === 'DUPLICATE_KEY' ? keyAt(document, error.pos[0]) : null;
  if (twice !== null) {
    const first: unknown = document.getIn(twice, true);
    const offset = isNode(first) ? first.range?.[0] : undefined;
    const line = offset === undefined ? null : lines.linePos(offset).line + firstLine - 1;
    const hint = `keep one of them${line === null ? '' : `; the first one is in line ${line}`}`;
    return { key: keyText(twice), seen: 'a duplicate key', expected: 'each key once', hint };
  }
  const quote = error.code === 'MISSING_CHAR' ? openQuote(document, error.pos[0]) : null;
  if (quote !== null) {
    const expected = 'the same quote at the end of the text';
    return {
      seen: 'a quote that is not closed',
      expected,
      hint: 'close it, or leave both out',
      at: quote,
    };
  }
  if (/^Flow/.test(error.message)) {
    const hint = 'close the bracket, or indent the lines in it deeper than the key';
    return { seen: error.message, expected: 'valid YAML', hint };
  }
  return { ...(SYNTAX[error.code] ?? { seen: error.message, expected: 'valid YAML' }) };
}

/** Where the quoted text begins that is not closed at `end`; null: something else is missing. */
function openQuote(document: Document, end: number): number | null {
  let found: number | null = null;
  visit(document, {
    Scalar(_, { type, range }) {
      if (!range || (type !== 'QUOTE_DOUBLE' && type !== 'QUOTE_SINGLE')) return undefined;
      if (range[0] < end && end <= range[2]) found = range[0];
      return undefined;
    },
  });
  return found;
}

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
    problems.add({ source: file, seen, expected: 'a configuration' });
    return undefined;
  } catch (error) {
    problems.add({ source: file, seen: messageOf(error), expected: 'valid YAML' });
    return undefined;
  }
}

/** The position of `path`, or of its nearest parent in the file. */
function locate(document: Document, path: KeyPath, place: (offset: number) => string): string | null {
  if (path.length === 0) return null;
  for (let length = path.length; length >= 0; length -= 1) {
    const node: unknown = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return place(node.range[0]);
  }
  return null;
}

function locateKey(document: Document, path: KeyPath, place: (offset: number) => string): string | null {
  const parent: unknown = document.getIn(path.slice(0, -1), true);
  const pair = isMap(parent)
    ? parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1))
    : null;
  return isNode(pair?.key) && pair.key.range ? place(pair.key.range[0]) : null;
}

/** `${NAME}`; `$${NAME}` is an escape for it. */
const REFERENCE = /\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

export interface Substitution {
  readonly path: KeyPath;
  /** The text in the file, which may be shown (PROBLEMS-3). */
  readonly written: string;
  readonly used: readonly (readonly [name: string, value: string])[];
  /** Variables that are not set. */
  readonly missing: readonly string[];
}

/** Returns a copy with `${NAME}` replaced in every value, never in a key. Adds each replacement to `found`. */
export function substitute(
  data: unknown,
  env: Environment,
  found: Substitution[],
  path: KeyPath = [],
): unknown {
  if (typeof data === 'string') return substituteText(data, env, found, path);
  if (Array.isArray(data)) return data.map((value, place) => substitute(value, env, found, [...path, place]));
  if (!isRecord(data)) return data;
  const entries = Object.entries(data);
  return Object.fromEntries(
    entries.map(([key, value]) => [key, substitute(value, env, found, [...path, key])]),
  );
}

function substituteText(written: string, env: Environment, found: Substitution[], path: KeyPath): string {
  const missing: string[] = [];
  const used: [string, string][] = [];
  let replaced = false;
  const text = written.replaceAll(REFERENCE, (reference, escaped: string, name: string) => {
    if (escaped) return reference.slice(1);
    replaced = true;
    const value = env[name];
    if (value === undefined) missing.push(name);
    else used.push([name, value]);
    return value ?? '';
  });
  if (replaced) found.push({ path, written, used, missing });
  return text;
}

/** The problem of a value that names a variable which is not set. */
export function missingVariable(
  { locate }: YamlSource,
  { path, written, missing }: Pick<Substitution, 'path' | 'written' | 'missing'>,
): Problem {
  const names = missing.join(', ');
  return {
    source: locate(path),
    key: path,
    seen: `${written}, and ${names} is not set`,
    expected: `the variable ${names} in the environment or in .env`,
  };
}
