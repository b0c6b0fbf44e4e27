import type { Entry, EntryOf, FollowEvent, ViewReport } from '../../../src/client/index.ts';

/** Entries, chunks and reports with the fields that a test names. */

const CREATED = '2026-11-21T20:39:00.000Z';

type Rest<T extends Entry['type']> = Partial<EntryOf<T>>;

/** An entry of one type with the given fields. */
export function entryOf<T extends Entry['type']>(type: T, index: number, fields: Rest<T>): Entry {
  const author = { kind: 'system', id: 'parley', name: 'Parley' };
  return { index, id: `e${index}`, createdAt: CREATED, type, author, ...fields } as unknown as Entry;
}

export const person = (index: number, content: string, fields: Rest<'message'> = {}): Entry =>
  entryOf('message', index, {
    role: 'user',
    author: { kind: 'person', id: 'alice', name: 'Alice' },
    content,
    ...fields,
  });

export const agent = (
  index: number,
  slug: string,
  content: string | null,
  fields: Rest<'message'> = {},
): Entry =>
  entryOf('message', index, {
    role: 'assistant',
    author: { kind: 'agent', id: slug, name: slug.toUpperCase() },
    content,
    turnId: `t-${slug}`,
    ...fields,
  });

export const started = (index: number, slug: string, trigger: number[], turnId = `t-${slug}`): Entry =>
  entryOf('turn-started', index, { turnId, agent: slug, trigger });

export const ended = (
  index: number,
  slug: string,
  outcome: EntryOf<'turn-ended'>['outcome'] = 'completed',
  turnId = `t-${slug}`,
): Entry => entryOf('turn-ended', index, { turnId, agent: slug, outcome, lastProcessedMessageIndex: index });

/** A whole turn, from this index on, which answers one entry. */
export const turn = (
  index: number,
  slug: string,
  trigger: number,
  content: string,
  turnId?: string,
): Entry[] => [
  started(index, slug, [trigger], turnId),
  agent(index + 1, slug, content, turnId ? { turnId } : {}),
  ended(index + 2, slug, 'completed', turnId),
];

export const chunk = (slug: string, n: number, delta: string, call = `c-${slug}`): FollowEvent => ({
  kind: 'live',
  agent: slug,
  chunk: { turnId: `t-${slug}`, call, n, type: 'text', delta },
});

const USED = {
  calls: 1,
  inputTokens: 1_200,
  cachedInputTokens: 900,
  cacheWriteTokens: 0,
  outputTokens: 7,
  reasoningTokens: 0,
  usd: 0.0012,
  unpricedCalls: 0,
};

/** The account of a request with one message, with the given fields. */
export const reportOf = (more: Partial<ViewReport> = {}): ViewReport => ({
  agent: 'pm',
  answer: null,
  tokens: 51,
  window: 1_000,
  reserved: 200,
  token_ratio: 1,
  status: 'not_needed',
  included: [0],
  left_out: [],
  left_out_as: [],
  shortened: [],
  without_files: [],
  waiting: [],
  tokens_by_group: { tools: 40, trigger: 11 },
  next_reduction: {
    above: 640,
    target: 400,
    limits: { messages: null, chars: null },
    due: false,
    would: null,
  },
  sent: 'unknown',
  definition: { hash: 'def', recorded: true, parts: {} },
  cost: { call: null, turn: USED, agent: USED, conversation: USED },
  tools: [],
  tools_missing: [],
  tools_forbidden: [],
  requestHash: 'abc',
  model: 'default',
  fault: null,
  parts: [{ kind: 'trigger', entries: [0], tokens: 11 }],
  ...more,
});
