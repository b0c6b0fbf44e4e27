import { NAME_PATTERN } from '../../conversation/index.ts';
import { isRecord } from '../../kernel/index.ts';
import type { ConversationRow } from '../port.ts';
import type { StorePaths } from './directory/paths.ts';

/**
 * The kinds of documents that share a file. A check throws on a value of another form: the file is then set aside
 * (LAZY-DOCUMENT-2).
 */
interface CollectionFile {
  readonly path: (paths: StorePaths) => string;
  /** The field with the list of all members, each with its name as `id`; null: the file is the only member. */
  readonly list: string | null;
  readonly form: Form;
}

/** Throws if the value has another form. */
type Form = (value: unknown, at: string) => void;

const is =
  (fits: (value: unknown) => boolean, what: string): Form =>
  (value, at) => {
    if (!fits(value)) throw new Error(`${at} is ${JSON.stringify(value)} and not ${what}`);
  };
const text = is((value) => typeof value === 'string', 'a text');
const amount = is((value) => typeof value === 'number' && value >= 0, 'a number of at least 0');
const count = is((value) => Number.isSafeInteger(value) && Number(value) >= 0, 'a whole number from 0');
const flag = is((value) => typeof value === 'boolean', 'true or false');
const name = is((value) => NAME_PATTERN.test(String(value)), 'a name');
const orElse =
  (missing: null | undefined, form: Form): Form =>
  (value, at) => {
    if (value !== missing) form(value, at);
  };
const listOf =
  (form: Form): Form =>
  (value, at) => {
    if (!Array.isArray(value)) throw new Error(`${at} is not a list`);
    for (const one of value) form(one, `an element of ${at}`);
  };
const record =
  (fields: Readonly<Record<string, Form>>): Form =>
  (value, at) => {
    if (!isRecord(value)) throw new Error(`${at} is not an object`);
    for (const [field, form] of Object.entries(fields)) form(value[field], field);
  };

const ROW: Readonly<Record<keyof ConversationRow, Form>> = {
  id: name,
  title: orElse(null, text),
  newest: orElse(null, text),
  phase: text,
  mode: text,
  activeAgent: orElse(null, text),
  length: count,
  updatedAt: text,
  activeAt: text,
  activeLength: count,
  tokens: amount,
  usd: amount,
  unpricedCalls: count,
  spent: listOf(
    record({ day: text, agent: text, calls: count, tokens: amount, usd: amount, unpricedCalls: count }),
  ),
  waiting: listOf(text),
  limited: listOf(text),
  stopped: listOf(text),
  archived: flag,
  agents: listOf(text),
  people: listOf(text),
  activity: listOf(
    record({
      ...{
        agent: text,
        status: text,
        since: orElse(null, text),
        for: orElse(undefined, text),
        of: orElse(undefined, text),
      },
      ...{ entry: orElse(undefined, count), position: orElse(undefined, count) },
    }),
  ),
};

const POSITION = { stream: text, sequence: count };

export const COLLECTIONS = {
  row: { path: ({ rows }) => rows, list: 'rows', form: record(ROW) },
  deleted: { path: ({ deleted }) => deleted, list: 'deleted', form: record({ id: name, ...POSITION }) },
  ingress: { path: ({ ingress }) => ingress, list: null, form: record(POSITION) },
} satisfies Readonly<Record<string, CollectionFile>>;

export type CollectionKind = keyof typeof COLLECTIONS;

export function collectionKindOf(key: string): CollectionKind | null {
  const [kind = ''] = key.split('.');
  return Object.hasOwn(COLLECTIONS, kind) ? (kind as CollectionKind) : null;
}

/** The members in a file, by name. */
export function membersOf(kind: CollectionKind, value: unknown): Map<string, unknown> {
  const { list, form }: CollectionFile = COLLECTIONS[kind];
  if (list === null) {
    form(value, 'it');
    return new Map([['', value]]);
  }
  const found: unknown = Reflect.get(Object(value), list);
  if (!Array.isArray(found)) throw new Error(`it contains no list of ${list}`);
  return new Map(
    found.map((member: { readonly id: string }) => {
      form(member, 'a member');
      const { id, ...rest } = member;
      return [id, kind === 'row' ? member : rest];
    }),
  );
}

/** The content of the file of these members. */
export function contentOf(kind: CollectionKind, members: ReadonlyMap<string, unknown>): unknown {
  const { list }: CollectionFile = COLLECTIONS[kind];
  if (list === null) return members.get('');
  const sorted = [...members].sort(([one], [other]) => (one < other ? -1 : 1));
  return { [list]: sorted.map(([id, member]) => ({ id, ...Object(member) })) };
}
