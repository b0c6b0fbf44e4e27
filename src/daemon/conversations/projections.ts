import type { AnswerOf } from '../../bus/index.ts';
import {
  agentState,
  type ConversationState,
  type Entry,
  isStopped,
  type Mode,
  type PhaseTable,
  type Roster,
  type Workflows,
} from '../../conversation/index.ts';
import type { ConversationRow, ConversationStore } from '../../persistence/index.ts';

/** Projections of a conversation for lists and documents, folded from its log. The log is the truth (L1). */

const TITLE_LENGTH = 60;

export function rowOf(id: string, state: ConversationState, entries: readonly Entry[]): ConversationRow {
  return {
    id,
    title: titleOf(state, entries),
    phase: state.phase,
    mode: state.mode,
    activeAgent: state.activeAgent,
    length: state.length,
    updatedAt: state.updatedAt ?? '',
    tokens: state.tokens,
    usd: state.usd,
    unpricedCalls: state.unpricedCalls,
    waiting: withStatus(state, 'waiting'),
    limited: withStatus(state, 'limited'),
    stopped: withStatus(state, 'stopped').filter((slug) => hasWork(state, slug)),
  };
}

/** The explicit title, else the first words of the first message. */
function titleOf(state: ConversationState, entries: readonly Entry[]): string | null {
  if (state.title !== null) return state.title;
  const first = entries.find((entry) => entry.type === 'message' && entry.author.kind === 'person');
  if (first?.type !== 'message' || !first.content) return null;
  const words = first.content.replace(/\s+/gu, ' ').trim();
  return [...words].length <= TITLE_LENGTH ? words : `${[...words].slice(0, TITLE_LENGTH - 1).join('')}…`;
}

type AgentStatus = 'idle' | 'running' | 'waiting' | 'stopped' | 'limited';

function statusOf(state: ConversationState, slug: string): AgentStatus {
  const { turn, limitedBy } = agentState(state, slug);
  if (turn) return turn.status;
  if (isStopped(state, slug)) return 'stopped';
  if (state.run?.awaitsInput && state.run.agent === slug) return 'waiting';
  return limitedBy === null ? 'idle' : 'limited';
}

/** A row with the slugs of agents that run, that wait for an answer, that a limit halted, and that are stopped with work. */
export type ListedRow = AnswerOf<'conversations'>['conversations'][number];

/** `state`: of a conversation in memory; others have no running turn. */
export function listedRow(row: ConversationRow, state?: ConversationState): ListedRow {
  const running = state ? withStatus(state, 'running') : [];
  const { waiting = [], limited = [], stopped = [] } = row;
  return { ...row, mode: row.mode as Mode, running, waiting, limited, stopped }; // `rowOf` wrote it
}

/** The row has all fields of this version. */
export function isComplete({ waiting, limited, stopped }: ConversationRow): boolean {
  return waiting !== undefined && limited !== undefined && stopped !== undefined;
}

/** Messages wait for this agent, or the run is at its node. */
function hasWork(state: ConversationState, slug: string): boolean {
  return agentState(state, slug).waiting.length > 0 || state.run?.agent === slug;
}

function withStatus(state: ConversationState, wanted: AgentStatus): string[] {
  const inRun = state.run?.agent ? [state.run.agent] : []; // it may have no state yet
  return [...new Set([...Object.keys(state.agents), ...inRun])].filter(
    (slug) => statusOf(state, slug) === wanted,
  );
}

/** The answer of endpoint `phases`. */
export function phasesPage(phases: PhaseTable): AnswerOf<'phases'> {
  return { phases: Object.entries(phases).map(([phase, spec]) => ({ phase, ...spec })) };
}

/** The answer of endpoint `workflows`; without the briefs, which are for the agents. */
export function workflowsPage(workflows: Workflows): AnswerOf<'workflows'> {
  const page = [...workflows.values()].map(({ id, start, nodes }) => ({
    id,
    start,
    nodes: Object.entries(nodes).map(([node, { agent, outcomes }]) => ({ node, agent, outcomes })),
  }));
  return { workflows: page };
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
    const { lastProcessedMessageIndex, sessionId } = agentState(state, slug);
    return [
      slug,
      {
        lastProcessedMessageIndex,
        ...(sessionId ? { sessionId } : {}),
        status: statusOf(state, slug),
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
  const { runId, workflowId: workflow, node, agent, awaitsInput = false } = run;
  return { runId, workflow, node, agent, awaitsInput };
}

export async function saveProjections(
  id: string,
  state: ConversationState,
  entries: readonly Entry[],
  store: ConversationStore,
): Promise<void> {
  if (state.length === 0) return;
  await store.saveRow(rowOf(id, state, entries));
  await store.saveState(id, { id, ...state });
}
