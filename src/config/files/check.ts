import type { z } from 'zod';
import { expectationOf, nearest } from '../../kernel/index.ts';
import {
  didYouMean,
  getAt,
  isSame,
  type KeyPath,
  keyText,
  overlap,
  type Problems,
  removeAt,
  setAt,
  show,
} from '../problems.ts';
import { knownKeys } from '../schema/schema-keys.ts';

/**
 * Checks data against a schema and describes the problems (PROBLEMS-1, PROBLEMS-2).
 *
 * FILES-CHECK-1 A bad key is reported and removed, and the rest is checked again: it hides no other problem, and references
 *               to the rest (an agent to its model) are still checked.
 * FILES-CHECK-2 A value of a variable is text; where a number, true, false or null is expected, it is parsed as one.
 */

type Issue = z.core.$ZodIssue;

export interface Checkable {
  readonly data: Record<string, unknown>;
  /** Where a key is, for the report. */
  locate(path: KeyPath, isKey?: boolean): string;
  /** The text to show for a value that came from a variable (PROBLEMS-3); undefined: the value itself. */
  origin(path: KeyPath): string | undefined;
  /** Paths that were already reported, and are not reported again. */
  readonly reported: KeyPath[];
}

/** More rounds than a file can need: each removes something. */
const MAX_ROUNDS = 50;

export function check<T>(schema: z.ZodType<T>, input: Checkable, problems: Problems): T {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const parsed = schema.safeParse(input.data);
    if (parsed.success) return parsed.data;
    const rest = parsed.error.issues.filter((issue) => !readAsValue(issue, input));
    for (const { path, problem } of rest.flatMap((issue) => describe(issue, schema, input))) {
      if (!input.reported.some((reported) => overlap(reported, path))) problems.add(problem);
    }
    for (const issue of rest)
      if (issue.code === 'unrecognized_keys') input.reported.push(...meantBy(issue, schema));
    for (const path of distinct(rest.flatMap(pathsOf))) {
      const wanted = getAt(input.data, path) === undefined ? path.slice(0, -1) : path; // a required key is missing
      input.reported.push(path, removeAt(input.data, wanted));
    }
  }
  return schema.parse({});
}

/** A key with two faults is removed once: removing it again would remove its parent. */
function distinct(paths: readonly KeyPath[]): KeyPath[] {
  return paths.filter((path, at) => paths.findIndex((one) => isSame(one, path)) === at);
}

/** FILES-CHECK-2: true if the text was replaced by the parsed value. */
function readAsValue(issue: Issue, input: Checkable): boolean {
  const path = keyPath(issue);
  const value = getAt(input.data, path);
  const isOfOtherType = issue.code === 'invalid_type' || issue.code === 'invalid_union';
  if (!isOfOtherType || typeof value !== 'string' || input.origin(path) === undefined) return false;
  const spelled = VALUES.get(value.trim()) ?? numberIn(value);
  if (spelled === undefined) return false;
  setAt(input.data, path, spelled === NOTHING ? null : spelled);
  return true;
}

const NOTHING = Symbol('null');
const VALUES: ReadonlyMap<string, boolean | typeof NOTHING> = new Map<string, boolean | typeof NOTHING>([
  ['true', true],
  ['false', false],
  ['null', NOTHING],
]);

function numberIn(text: string): number | undefined {
  return /^\s*-?\d+(\.\d+)?([eE][+-]?\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

function keyPath(issue: Issue): KeyPath {
  return issue.path.filter((part) => typeof part !== 'symbol');
}

function pathsOf(issue: Issue): KeyPath[] {
  const path = keyPath(issue);
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path];
}

function describe(issue: Issue, schema: z.ZodType, input: Checkable) {
  return pathsOf(issue).map((path) => {
    const value = getAt(input.data, path);
    const unknownKey = issue.code === 'unrecognized_keys';
    const hint = unknownKey ? unknownKeyHint(schema, path) : {};
    const seen = input.origin(path) ?? quoted(path, value);
    const expected = unknownKey ? 'a known key (this one is unknown)' : expectationOf(issue, NAMES_OF_TYPES);
    const source = input.locate(path, unknownKey);
    return { path, problem: { source, key: path, seen, expected, ...hint } };
  });
}

/** PROBLEMS-3: secrets that are written in the file, and values that may contain one, are not shown either. */
function quoted(path: KeyPath, value: unknown): string | null {
  if (value === undefined) return null;
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a mapping';
  const isSecret = path.some((part) =>
    /(key|token|^tokens|password|secret|^headers|^env)$/i.test(String(part)),
  );
  return isSecret && typeof value === 'string' ? '[hidden]' : show(value);
}

/** The keys that were probably meant: that they are missing is no second problem. */
function meantBy(issue: Issue, schema: z.ZodType): KeyPath[] {
  return pathsOf(issue).flatMap((path) => {
    const parent = path.slice(0, -1);
    const near = nearest(String(path.at(-1)), knownKeys(schema, parent));
    return near === null ? [] : [[...parent, near]];
  });
}

function unknownKeyHint(schema: z.ZodType, path: KeyPath): { hint?: string } {
  const parent = path.slice(0, -1);
  const known = knownKeys(schema, parent);
  if (path.at(-1) === 'permissions' && known.includes('idleSeconds')) return { hint: PERMISSIONS };
  const near = nearest(String(path.at(-1)), known);
  if (near !== null) return { hint: `did you mean ${keyText([...parent, near])}?` };
  const elsewhere = knownKeys(schema, []).find((key) =>
    knownKeys(schema, [key]).includes(String(path.at(-1))),
  );
  if (elsewhere !== undefined) return didYouMean(`${elsewhere}.${path.at(-1)}`);
  return known.length === 0 ? {} : { hint: `known here: ${known.join(', ')}` };
}

const PERMISSIONS =
  'leave it out: rules of tools.policy in parley.yaml for permit_edit, permit_execute and permit_other decide, and a person where there is none';

/** YAML calls them so. */
const MAPPING = 'a mapping (lines of `key: value`)';
const NAMES_OF_TYPES = { object: MAPPING, record: MAPPING };
