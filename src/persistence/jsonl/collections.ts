import { z } from 'zod';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { fieldFault } from '../../kernel/index.ts';
import type { ConversationRow } from '../port.ts';
import type { StorePaths } from './directory/paths.ts';

/** The kinds of documents that share a file. With a value of another form the file is set aside (LAZY-DOCUMENT-2). */
interface CollectionFile {
  readonly path: (paths: StorePaths) => string;
  /** The field with the list of all members, each with its name as `id`; null: the file is the only member. */
  readonly list: string | null;
  readonly form: z.ZodType;
}

const text = z.string();
const texts = z.array(text);
const amount = z.number().nonnegative();
const count = z.int().nonnegative();
const name = text.regex(NAME_PATTERN);

const row = z.object({
  id: name,
  title: text.nullable(),
  newest: text.nullable(),
  phase: text,
  mode: text,
  activeAgent: text.nullable(),
  length: count,
  updatedAt: text,
  activeAt: text,
  activeLength: count,
  tokens: amount,
  usd: amount,
  unpricedCalls: count,
  spent: z.array(
    z.object({ day: text, agent: text, calls: count, tokens: amount, usd: amount, unpricedCalls: count }),
  ),
  waiting: texts,
  limited: texts,
  stopped: texts,
  archived: z.boolean(),
  agents: texts,
  people: texts,
  activity: z.array(
    z.object({
      agent: text,
      status: text,
      since: text.nullable(),
      for: text.optional(),
      of: text.optional(),
      entry: count.optional(),
      position: count.optional(),
    }),
  ),
} satisfies Readonly<Record<keyof ConversationRow, z.ZodType>>);

const POSITION = { stream: text, sequence: count };

export const COLLECTIONS = {
  row: { path: ({ rows }) => rows, list: 'rows', form: row },
  deleted: { path: ({ deleted }) => deleted, list: 'deleted', form: z.object({ id: name, ...POSITION }) },
  ingress: { path: ({ ingress }) => ingress, list: null, form: z.object(POSITION) },
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
    check(form, value);
    return new Map([['', value]]);
  }
  const found: unknown = Reflect.get(Object(value), list);
  if (!Array.isArray(found)) throw new Error(`it contains no list of ${list}`);
  return new Map(
    found.map((member: { readonly id: string }) => {
      check(form, member);
      const { id, ...rest } = member;
      return [id, kind === 'row' ? member : rest];
    }),
  );
}

function check(form: z.ZodType, value: unknown): void {
  const [issue] = form.safeParse(value).error?.issues ?? [];
  if (issue) throw new Error(fieldFault(issue, value));
}

/** The content of the file of these members. */
export function contentOf(kind: CollectionKind, members: ReadonlyMap<string, unknown>): unknown {
  const { list }: CollectionFile = COLLECTIONS[kind];
  if (list === null) return members.get('');
  const sorted = [...members].sort(([one], [other]) => (one < other ? -1 : 1));
  return { [list]: sorted.map(([id, member]) => ({ id, ...Object(member) })) };
}
