import { nearest, ParleyError } from '../kernel/index.ts';

/**
 * Collects everything that is wrong with a configuration.
 *
 * PROBLEMS-1 One start reports every problem that can be known, not only the first.
 * PROBLEMS-2 A problem names its source, the key, the value seen and the value expected.
 * PROBLEMS-3 No secret is ever quoted: the value of a variable is shown as `${NAME}`.
 */

/** A key path: `['models', 'default', 'apiKey']`. */
export type KeyPath = readonly (string | number)[];

export interface Problem {
  /** The file (with line and column where known), the flag or the variable. */
  readonly source: string;
  /** Its path, or the text to show; absent: the whole source. */
  readonly key?: KeyPath | string;
  /** The given value, for a person; absent: none. */
  readonly seen?: string | null;
  readonly expected: string;
  readonly hint?: string;
}

/** Where the keys of a file are. */
export interface Located {
  locate(path: KeyPath): string;
  /** A problem at that key was already reported; its consequences are not. */
  isReported?(path: KeyPath): boolean;
}

export class Problems {
  readonly #found: Problem[] = [];
  /** Hints that are not errors. */
  readonly notices: string[] = [];
  /** The document that explains the keys. */
  readonly #document: string;

  constructor(document = 'docs/reference/configuration.md') {
    this.#document = document;
  }

  add(problem: Problem): void {
    this.#found.push(problem);
  }

  /** A key of a file, unless it was already reported. */
  refuse(file: Located, key: KeyPath, problem: Omit<Problem, 'source' | 'key'>): void {
    if (!file.isReported?.(key)) this.add({ source: file.locate(key), key, ...problem });
  }

  /** A value that should be one of these names. `what`: "an agent". */
  refuseName(file: Located, key: KeyPath, value: string, what: string, names: readonly string[]): void {
    const expected = `${what}: one of ${names.join(', ')}`;
    this.refuse(file, key, { seen: show(value), expected, ...didYouMean(nearest(value, names)) });
  }

  get isEmpty(): boolean {
    return this.#found.length === 0;
  }

  /** PROBLEMS-1: throws one error that holds them all, and the notices, which may name their cause. */
  throwIfAny(): void {
    if (this.isEmpty) return;
    const count = this.#found.length;
    const title = count === 1 ? 'the configuration has 1 problem' : `the configuration has ${count} problems`;
    const described = [title, ...this.#found.map(describeProblem)].join('\n');
    const others = [...new Set(this.notices)].filter((notice) => !described.includes(notice));
    const message = [described, ...others.map((notice) => `- notice: ${notice}`)].join('\n');
    throw new ParleyError('CONFIG_INVALID', message, {
      hint: `correct what is listed and try again; every key is explained in ${this.#document}`,
    });
  }
}

/** PROBLEMS-2: one problem as lines of text. */
function describeProblem(problem: Problem): string {
  const key = typeof problem.key === 'string' ? problem.key : keyText(problem.key ?? []);
  const lines = [`- ${problem.source}${key === '' ? '' : `: ${key}`}`];
  if (problem.seen !== undefined && problem.seen !== null) lines.push(`    seen:     ${problem.seen}`);
  lines.push(`    expected: ${problem.expected}`);
  if (problem.hint !== undefined) lines.push(`    hint:     ${problem.hint}`);
  return lines.join('\n');
}

const SHOWN_LENGTH = 120;

/** User and password of a URL: everything before its last `@`, since a mistyped password may be unencoded. */
const CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s"]*@/gi;

/** Values that JSON cannot represent, in YAML's spelling. */
const NO_NUMBERS: ReadonlyMap<unknown, string> = new Map([
  [Number.POSITIVE_INFINITY, '.inf'],
  [Number.NEGATIVE_INFINITY, '-.inf'],
  [Number.NaN, '.nan'],
]);

/** A value as a problem quotes it (PROBLEMS-3). */
export function show(value: unknown): string {
  const text = (NO_NUMBERS.get(value) ?? JSON.stringify(value) ?? String(value)).replace(
    CREDENTIALS,
    '$1[hidden]@',
  );
  return text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text;
}

const PLAIN_KEY = /^[A-Za-z0-9_-]+$/;

/** `['tools', 'policy', 0, 'match']` → `tools.policy[0].match`. */
export function keyText(path: KeyPath): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (!PLAIN_KEY.test(part)) text += `[${JSON.stringify(part)}]`;
    else text += text === '' ? part : `.${part}`;
  }
  return text;
}

/** `did you mean "dev"?`, if there is a candidate. */
export function didYouMean(candidate: string | null): { hint?: string } {
  return candidate === null ? {} : { hint: `did you mean ${JSON.stringify(candidate)}?` };
}

type Container = Record<string | number, unknown>;

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

/** Reads plain data by key path. Own keys only, also where data is changed, so that `__proto__` in a file has no effect. */
export function getAt(data: unknown, path: KeyPath): unknown {
  let value = data;
  for (const part of path) {
    if (!isContainer(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

/** Sets a value and creates missing mappings on the path. Does nothing if a number or text is on the path. */
export function setAt(data: Container, path: KeyPath, value: unknown): void {
  let container = data;
  for (const part of path.slice(0, -1)) {
    if (!Object.hasOwn(container, part) || container[part] === null) container[part] = {};
    const next = container[part];
    if (!isContainer(next)) return;
    container = next;
  }
  const last = path.at(-1);
  if (last !== undefined) container[last] = value;
}

/** Removes a key; inside a list, the whole list's key, so that no index moves. Returns what was removed. */
export function removeAt(data: Container, path: KeyPath): KeyPath {
  const firstIndex = path.findIndex((part) => typeof part === 'number');
  const removed = firstIndex === -1 ? path : path.slice(0, firstIndex);
  const parent = getAt(data, removed.slice(0, -1));
  const last = removed.at(-1);
  if (isContainer(parent) && last !== undefined) delete parent[last];
  return removed;
}

export function isSame(left: KeyPath, right: KeyPath): boolean {
  return left.length === right.length && overlap(left, right);
}

/** True if one path is equal to the other or below it. */
export function overlap(left: KeyPath, right: KeyPath): boolean {
  const length = Math.min(left.length, right.length);
  for (let place = 0; place < length; place += 1) if (left[place] !== right[place]) return false;
  return true;
}
