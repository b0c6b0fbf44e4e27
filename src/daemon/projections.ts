import {
  agentState,
  type ConversationState,
  type Entry,
  isStopped,
  type PhaseTable,
  type Roster,
  type Workflows,
} from '../conversation/index.ts';
import type { ConversationRow, ConversationStore } from '../persistence/index.ts';

/** What lists and documents show of a conversation: folded from its log, never the truth (L1). */

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
  };
}

/** The title that was set, else the first words of the first message. */
export function titleOf(state: ConversationState, entries: readonly Entry[]): string | null {
  if (state.title !== null) return state.title;
  const first = entries.find((entry) => entry.type === 'message' && entry.author.kind === 'person');
  if (first?.type !== 'message' || !first.content) return null;
  const words = first.content.replace(/\s+/gu, ' ').trim();
  return [...words].length <= TITLE_LENGTH ? words : `${[...words].slice(0, TITLE_LENGTH - 1).join('')}…`;
}

export type AgentStatus = 'idle' | 'running' | 'waiting' | 'stopped';

export function statusOf(state: ConversationState, slug: string): AgentStatus {
  const turn = agentState(state, slug).turn;
  if (turn) return turn.status;
  return isStopped(state, slug) ? 'stopped' : 'idle';
}

/** Slugs of the agents that are at work in a conversation, and of those that wait for somebody there. */
export interface Activity {
  readonly running: readonly string[];
  readonly waiting: readonly string[];
}
export const NO_ACTIVITY: Activity = { running: [], waiting: [] };

export function activityOf(state: ConversationState): Activity {
  const withStatus = (wanted: AgentStatus) =>
    Object.keys(state.agents).filter((slug) => statusOf(state, slug) === wanted);
  return { running: withStatus('running'), waiting: withStatus('waiting') };
}

/** The answer of endpoint `phases`. */
export function phasesPage(phases: PhaseTable): { readonly phases: readonly object[] } {
  return { phases: Object.entries(phases).map(([phase, spec]) => ({ phase, ...spec })) };
}

/** The answer of endpoint `workflows`: what a run goes through; the briefs are for its agents. */
export function workflowsPage(workflows: Workflows): { readonly workflows: readonly object[] } {
  const page = [...workflows.values()].map(({ id, start, nodes }) => ({
    id,
    start,
    nodes: Object.entries(nodes).map(([node, { agent, outcomes }]) => ({ node, agent, outcomes })),
  }));
  return { workflows: page };
}

/** The answer of endpoint `conversation` (CONTRACT.md "Bus"). `newestSummary`: the entry that the state names. */
export function conversationDocument(
  id: string,
  state: ConversationState,
  entries: readonly Entry[],
  roster: Roster,
  newestSummary: Entry | undefined,
): Readonly<Record<string, unknown>> {
  const slugs = [...new Set([...roster.agents.keys(), ...Object.keys(state.agents)])];
  const agents = slugs.map((slug) => {
    const { lastProcessedMessageIndex, sessionId } = agentState(state, slug);
    return [
      slug,
      { lastProcessedMessageIndex, ...(sessionId ? { sessionId } : {}), status: statusOf(state, slug) },
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
    length: state.length,
    metadata: {
      ...summary,
      referencedArticles: [],
      executionMs: Object.fromEntries(times),
      tokens: state.tokens,
      usd: state.usd,
      usage: Object.fromEntries(usage),
    },
    agents: Object.fromEntries(agents),
  };
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
