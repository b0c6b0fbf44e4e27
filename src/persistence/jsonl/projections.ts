import { NAME_PATTERN, type Spent } from '../../conversation/index.ts';
import type {
  ConversationRow,
  IngressAttempts,
  IngressPosition,
  IngressPosts,
  RowActivity,
} from '../port.ts';
import { byId } from '../rules.ts';
import { type LazyDocument, openLazyDocument } from './documents.ts';
import type { StoreLog } from './log/log-file.ts';

/** The posts of a deleted conversation are void up to this position of the ingress stream. */
export interface Tombstone extends IngressPosition {
  readonly id: string;
}

/** The list of conversations, in memory and in its document. */
export class ConversationRows {
  readonly #document: LazyDocument<{ rows: ConversationRow[] }>;
  readonly #byId: Map<string, ConversationRow>;

  static async open(path: string, log: StoreLog): Promise<ConversationRows> {
    return new ConversationRows(await openLazyDocument({ path, empty: { rows: [] }, parse: parseRows, log }));
  }

  private constructor(document: LazyDocument<{ rows: ConversationRow[] }>) {
    this.#document = document;
    this.#byId = new Map(document.data.rows.map((row) => [row.id, row]));
  }

  all(): ConversationRow[] {
    return [...this.#byId.values()].sort(byId);
  }

  put(row: ConversationRow): void {
    this.#byId.set(row.id, row);
    this.#changed();
  }

  delete(conversation: string): void {
    if (this.#byId.delete(conversation)) this.#changed();
  }

  /** Removes the rows of all other conversations. */
  keepOnly(conversations: ReadonlySet<string>): void {
    for (const id of [...this.#byId.keys()]) if (!conversations.has(id)) this.delete(id);
  }

  /** Resolves when every change so far is durable. */
  flush(): Promise<void> {
    return this.#document.flush();
  }

  close(): Promise<void> {
    return this.#document.close();
  }

  #changed(): void {
    this.#document.change(() => ({ rows: this.all() }));
  }
}

/** The parsers throw on a document of another shape, which is then set aside (JSONL-DOCUMENTS-2). */

export function parseRows(value: unknown): { rows: ConversationRow[] } {
  if (!isRecord(value) || !Array.isArray(value.rows)) throw new Error('it contains no list of rows');
  const rows: unknown[] = value.rows;
  return { rows: rows.map(parseRow) };
}

function parseRow(value: unknown): ConversationRow {
  if (!isRecord(value)) throw new Error('a row is not an object');
  const id = text(value, 'id');
  if (!NAME_PATTERN.test(id)) throw new Error(`a row has the id ${JSON.stringify(id)}`);
  return {
    id,
    title: value.title === null ? null : text(value, 'title'),
    phase: text(value, 'phase'),
    mode: text(value, 'mode'),
    activeAgent: value.activeAgent === null ? null : text(value, 'activeAgent'),
    length: count(value, 'length'),
    updatedAt: text(value, 'updatedAt'),
    ...(value.activeAt === undefined ? {} : { activeAt: text(value, 'activeAt') }),
    ...(value.activeLength === undefined ? {} : { activeLength: count(value, 'activeLength') }),
    ...(value.tokens === undefined ? {} : { tokens: amount(value, 'tokens') }),
    ...(value.usd === undefined ? {} : { usd: amount(value, 'usd') }),
    ...(value.unpricedCalls === undefined ? {} : { unpricedCalls: count(value, 'unpricedCalls') }),
    ...(value.spent === undefined ? {} : { spent: parseSpent(value.spent) }),
    ...(value.waiting === undefined ? {} : { waiting: texts(value, 'waiting') }),
    ...(value.limited === undefined ? {} : { limited: texts(value, 'limited') }),
    ...(value.stopped === undefined ? {} : { stopped: texts(value, 'stopped') }),
    ...(value.archived === undefined ? {} : { archived: value.archived === true }),
    ...(value.agents === undefined ? {} : { agents: texts(value, 'agents') }),
    ...(value.people === undefined ? {} : { people: texts(value, 'people') }),
    ...(value.activity === undefined ? {} : { activity: parseActivity(value.activity) }),
  };
}

function parseSpent(value: unknown): Spent[] {
  if (!Array.isArray(value)) throw new Error('spent is not a list');
  return value.map((one: unknown) => {
    if (!isRecord(one)) throw new Error('an element of spent is not an object');
    return {
      day: text(one, 'day'),
      agent: text(one, 'agent'),
      calls: count(one, 'calls'),
      tokens: amount(one, 'tokens'),
      usd: amount(one, 'usd'),
      unpricedCalls: count(one, 'unpricedCalls'),
    };
  });
}

function parseActivity(value: unknown): RowActivity[] {
  if (!Array.isArray(value)) throw new Error('activity is not a list');
  return value.map((one: unknown) => {
    if (!isRecord(one)) throw new Error('an element of activity is not an object');
    return {
      agent: text(one, 'agent'),
      status: text(one, 'status'),
      since: one.since === null ? null : text(one, 'since'),
      ...(one.for === undefined ? {} : { for: text(one, 'for') }),
      ...(one.of === undefined ? {} : { of: text(one, 'of') }),
      ...(one.entry === undefined ? {} : { entry: count(one, 'entry') }),
      ...(one.position === undefined ? {} : { position: count(one, 'position') }),
    };
  });
}

export function parseIngressPosition(value: unknown): IngressPosition {
  if (!isRecord(value)) throw new Error('it is not an object');
  return { stream: text(value, 'stream'), sequence: count(value, 'sequence') };
}

export function parseIngressAttempts(value: unknown): IngressAttempts {
  if (!isRecord(value) || !Array.isArray(value.posts)) throw new Error('it holds no list of posts');
  const posts: unknown[] = value.posts;
  return {
    stream: text(value, 'stream'),
    posts: posts.map((one) => {
      if (!isRecord(one)) throw new Error('a post is not an object');
      return { sequence: count(one, 'sequence'), begun: count(one, 'begun') };
    }),
  };
}

export function parseIngressPosts(value: unknown): IngressPosts {
  if (!isRecord(value) || !Array.isArray(value.sequences)) throw new Error('it holds no list of posts');
  const sequences: unknown[] = value.sequences;
  return {
    stream: text(value, 'stream'),
    sequences: sequences.map((sequence) => count({ sequence }, 'sequence')),
  };
}

export function parseTombstones(value: unknown): { deleted: Tombstone[] } {
  if (!isRecord(value) || !Array.isArray(value.deleted)) throw new Error('it contains no list of deletions');
  const deleted: unknown[] = value.deleted;
  return {
    deleted: deleted.map((one) => {
      if (!isRecord(one)) throw new Error('a deletion is not an object');
      return { id: text(one, 'id'), ...parseIngressPosition(one) };
    }),
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(record: Record<string, unknown>, key: string): string {
  const value = record[key];
  if (typeof value !== 'string') throw new Error(`${key} is not a text`);
  return value;
}

function texts(record: Record<string, unknown>, key: string): string[] {
  const value = record[key];
  if (!Array.isArray(value)) throw new Error(`${key} is not a list`);
  return value.map((one, at) => text({ [at]: one }, String(at)));
}

function amount(record: Record<string, unknown>, key: string): number {
  const value = record[key];
  if (typeof value !== 'number' || !(value >= 0)) throw new Error(`${key} is not a number of at least 0`);
  return value;
}

function count(record: Record<string, unknown>, key: string): number {
  const value = record[key];
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new Error(`${key} is not a whole number of at least 0`);
  }
  return value;
}
