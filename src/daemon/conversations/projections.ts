import type { AnswerOf } from '../../bus/index.ts';
import {
  agentState,
  type ConversationState,
  conditionText,
  EMPTY_STATE,
  type Entry,
  evolve,
  type Mode,
  type PhaseTable,
  plainLine,
  type Roster,
  shortLine,
  targetsOf,
  type WorkflowNode,
  type Workflows,
} from '../../conversation/index.ts';
import { hasVisible, pageOf } from '../../kernel/index.ts';
import type { ConversationRow, ConversationStore } from '../../persistence/index.ts';
import { type Activity, hasWork, reachedLimit, statusOf, storedActivity, withStatus } from './activity.ts';
/** Projections of a conversation for lists and documents, folded from its log. The log is the truth (L1). */

export function stateOf(entries: readonly Entry[]): ConversationState {
  return entries.reduce(evolve, EMPTY_STATE);
}

/** Saves what lists and restarts read of a conversation. */
export async function saveProjections(
  store: Pick<ConversationStore, 'saveRow' | 'saveState'>,
  id: string,
  state: ConversationState,
  entries: readonly Entry[],
): Promise<void> {
  await store.saveRow(rowOf(id, state, entries));
  await store.saveState(id, { id, ...state });
}

const TITLE_LENGTH = 60;
const NEWEST_LENGTH = 120;

/** About the place in lists, the team, the daemon, or steps of a turn, of which its agent tells what matters. */
const NO_NEWS: ReadonlySet<Entry['type']> = new Set([
  'title-set',
  'feedback',
  'team-changed',
  'claim',
  'turn-started',
  'tool-started',
  'approval-answered',
  'message-delivered',
  'session-set',
]);

/** Whether it makes the conversation unread again for a person who had read it. */
const isNews = (entry: Entry): boolean =>
  !NO_NEWS.has(entry.type) &&
  !(entry.type === 'message' && entry.role === 'tool') &&
  !(entry.type === 'turn-ended' && ['completed', 'waiting'].includes(entry.outcome));

export function rowOf(id: string, state: ConversationState, entries: readonly Entry[]): ConversationRow {
  const newest = entries.findLastIndex(isNews);
  return {
    id,
    title: titleOf(state, entries),
    newest: newestText(entries),
    phase: state.phase,
    mode: state.mode,
    activeAgent: state.activeAgent,
    length: state.length,
    updatedAt: state.updatedAt ?? '',
    activeAt: entries[newest]?.createdAt ?? '',
    activeLength: newest + 1,
    tokens: state.tokens,
    usd: state.usd,
    unpricedCalls: state.unpricedCalls,
    spent: state.spent,
    waiting: withStatus(state, 'waiting'),
    limited: withStatus(state, 'limited'),
    stopped: withStatus(state, 'stopped').filter((slug) => hasWork(state, slug)),
    ...(isWhollyStopped(state) && { allStopped: true as const }),
    archived: state.archived,
    agents: Object.keys(state.agents).filter((slug) =>
      entries.some((entry) => entry.type === 'turn-started' && entry.agent === slug),
    ),
    people: state.people,
    activity: storedActivity(state, entries),
  };
}

/** No agent was resumed since a stop of all. */
const isWhollyStopped = ({ stopped, agents }: ConversationState): boolean =>
  stopped && Object.values(agents).every((agent) => agent.stopped !== false);

/** The explicit title, else the first words of the first message. */
function titleOf(state: ConversationState, entries: readonly Entry[]): string | null {
  if (state.title !== null) return state.title;
  const first = entries.find((entry) => entry.type === 'message' && entry.author.kind === 'person');
  if (first?.type !== 'message' || !first.content) return null;
  return shortLine(first.content, TITLE_LENGTH);
}

/** What a person or an agent wrote last; null: nothing. */
function newestText(entries: readonly Entry[]): string | null {
  const newest = entries.findLast(
    (entry) =>
      entry.type === 'message' &&
      entry.role !== 'tool' &&
      entry.partType !== 'error' &&
      hasVisible(entry.content ?? ''),
  );
  return newest?.type === 'message' ? plainLine(newest.content ?? '', NEWEST_LENGTH) : null;
}

/** A row with the slugs of agents that run, that wait for an answer, that a limit halted, and that are stopped with work. */
export type ListedRow = AnswerOf<'conversations'>['conversations'][number];

/**
 * `current`: the running turns of a conversation in memory; others have no running turn. `since`: the first day of `spent`;
 * null: without it.
 */
export function listedRow(
  { spent, ...row }: ConversationRow,
  current: readonly Activity[] = [],
  since: string | null = null,
): ListedRow {
  const slugsOf = (status: Activity['status']) =>
    current.filter((one) => one.status === status).map(({ agent }) => agent);
  return {
    ...row,
    mode: row.mode as Mode, // `rowOf` wrote it, and the activity
    running: slugsOf('running').filter((slug) => !row.waiting.includes(slug)), // a running call may ask a person
    waiting: [...row.waiting, ...slugsOf('waiting')],
    activity: [...current, ...(row.activity as readonly Activity[])],
    ...(since !== null && { spent: spent.filter(({ day }) => day >= since) }),
  };
}

export function phasesPage(phases: PhaseTable): AnswerOf<'phases'> {
  return { phases: Object.entries(phases).map(([phase, spec]) => ({ phase, ...spec })) };
}

/** The answer of endpoint `workflows`; without the briefs, which are for the agents. */
export function workflowsPage(workflows: Workflows): AnswerOf<'workflows'> {
  const page = [...workflows.values()].map(({ id, start, nodes }) => ({
    id,
    start,
    nodes: Object.entries(nodes).map(([node, spec]) => nodeRow(node, spec)),
  }));
  return { workflows: page };
}

function nodeRow(node: string, { agent, outcomes, next, after }: WorkflowNode) {
  const leadsTo = Object.entries(outcomes).map(([outcome, to]) => [outcome, targetsOf(to)] as const);
  return {
    node,
    agent,
    outcomes: Object.fromEntries(leadsTo),
    ...(next && { next: next.map(({ when, to }) => ({ when: conditionText(when), to: targetsOf(to) })) }),
    ...(after && { after }),
  };
}

/** The answer of endpoint `conversation` (docs/spec/wire.md). `newestSummary`: the entry that the state names. */
export function conversationDocument(
  id: string,
  state: ConversationState,
  entries: readonly Entry[],
  roster: Roster,
  newestSummary: Entry | undefined,
): AnswerOf<'conversation'> {
  const known = [...roster.agents.keys(), ...Object.keys(state.agents), ...Object.keys(state.hired)];
  const slugs = [...new Set(known)];
  const agents = slugs.map((slug) => {
    const { lastProcessedMessageIndex, session } = agentState(state, slug);
    return [
      slug,
      {
        lastProcessedMessageIndex,
        ...(session && { sessionId: session.id, sessionFrom: { by: session.by, entry: session.from } }),
        status: statusOf(state, slug),
        limit: reachedLimit(state, slug, entries),
        ...hiredOf(slug, roster, state),
      },
    ];
  });
  const times = slugs.map((slug) => [slug, agentState(state, slug).executionMs]);
  const usage = slugs.map((slug) => [slug, agentState(state, slug).used]);
  const summary = newestSummary?.type === 'summary' ? { summary: newestSummary.content } : {};
  return {
    id,
    title: titleOf(state, entries),
    archived: state.archived,
    phase: state.phase,
    mode: state.mode,
    activeAgent: state.activeAgent,
    run: runOf(state),
    length: state.length,
    metadata: {
      ...summary,
      referencedArticles: [],
      executionMs: Object.fromEntries(times),
      tokens: state.tokens,
      usd: state.usd,
      unpricedCalls: state.unpricedCalls,
      usage: Object.fromEntries(usage),
    },
    agents: Object.fromEntries(agents),
  };
}

function hiredOf(slug: string, roster: Roster, { hired }: ConversationState) {
  const known = roster.hired?.get(slug) ?? hired[slug];
  if (!known) return {};
  const { card, budget, maker, depth, isDismissed: dismissed } = known;
  const { name, description, model, tools } = card;
  return { hired: { name, description, model, tools: [...tools], budget, maker, depth, dismissed } };
}

/** `awaitsInput`: the first message of the run is missing. */
function runOf({ run }: ConversationState): AnswerOf<'conversation'>['run'] {
  if (!run) return null;
  const { runId, workflowId: workflow, node, agent, awaitsInput = false, branches } = run;
  const beside = branches?.map(({ branch, node: at, agent: who }) => ({ branch, node: at, agent: who }));
  return { runId, workflow, node, agent, awaitsInput, ...(beside && { branches: beside }) };
}

type Merged = { readonly id: string; readonly length: number; readonly activity?: readonly unknown[] };

/**
 * The row with the most entries of each conversation, as many as fit a message. Of two as long, it is the one of the daemon that knows
 * of running turns: a stored one has none.
 */
export function mergeConversations<Row extends Merged>(
  pages: readonly { readonly conversations: readonly Row[]; readonly next: string | null }[],
  asked: unknown,
  room = Number.POSITIVE_INFINITY,
): { readonly conversations: readonly Row[]; readonly next: string | null } {
  const rows = new Map<string, Row>();
  for (const row of pages.flatMap((page) => page.conversations)) {
    const { length = 0, activity = [] } = rows.get(row.id) ?? {};
    const knowsMore = length === row.length && activity.length < (row.activity?.length ?? 0);
    if (length < row.length || knowsMore) rows.set(row.id, row);
  }
  const sorted = [...rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  // After the end of an incomplete page, that daemon may have further rows.
  const ends = pages.flatMap(({ next }) => (next === null ? [] : [next])).sort();
  const complete = ends[0] === undefined ? sorted : sorted.filter(({ id }) => id <= (ends[0] ?? ''));
  const limit = numberIn(asked, 'limit') ?? complete.length;
  const page = pageOf(complete.slice(0, limit), room);
  const hasMore = ends.length > 0 || page.length < sorted.length;
  return { conversations: page, next: hasMore ? (page.at(-1)?.id ?? null) : null };
}

export function numberIn(asked: unknown, name: string): number | null {
  const value = typeof asked === 'object' && asked !== null ? Reflect.get(asked, name) : null;
  return typeof value === 'number' ? value : null;
}
