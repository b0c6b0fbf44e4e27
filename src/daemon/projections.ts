import {
  agentState,
  type ConversationState,
  type Entry,
  isStopped,
  type Roster,
} from '../conversation/index.ts';
import type { ConversationRow } from '../persistence/index.ts';

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
