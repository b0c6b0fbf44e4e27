import type { EntryOf } from '../log/entry.ts';
import { type HiredAgent, type HiredAgents, NONE_HIRED, type Roster } from './roster.ts';
import { agentState, type ConversationState } from './state.ts';

/** The hired agents of a conversation as a fold, and what they have used of their budgets. */

export function withHired(hired: HiredAgents, entry: EntryOf<'agent-hired'>): HiredAgents {
  const { agent: slug, name, description, tools, model } = entry;
  const card = { slug, name, description, phases: [], modes: [], runtime: 'local', tools, model } as const;
  return changed(hired, slug, {
    card,
    persona: entry.persona,
    budget: entry.budget ?? {},
    maker: entry.author.kind === 'agent' ? entry.author.id : null,
    depth: entry.depth,
    at: entry.index,
    isDismissed: false,
  });
}

export function withoutHired(hired: HiredAgents, slug: string): HiredAgents {
  const known = hired[slug];
  return known ? changed(hired, slug, { ...known, isDismissed: true }) : hired;
}

function changed(hired: HiredAgents, slug: string, agent: HiredAgent): HiredAgents {
  return Object.assign(Object.create(NONE_HIRED), hired, { [slug]: agent });
}

/** A configured agent has the slug of a hired one, and replaces it (HIRING-4). */
export function isReplaced({ agents, hired }: Roster, slug: string): boolean {
  return agents.has(slug) && !hired?.has(slug);
}

/**
 * The agents that `slug` hired, those that they hired, and so on, dismissed ones included. A hired agent is the maker only
 * of later ones: earlier ones were hired by a configured agent with its slug. So no chain is a circle.
 */
export function hiredBy(hired: HiredAgents, slug: string): string[] {
  const since = hired[slug]?.at ?? -1;
  const own = Object.values(hired).filter(({ maker, at }) => maker === slug && at > since);
  return own.flatMap(({ card }) => [card.slug, ...hiredBy(hired, card.slug)]);
}

/** One budget that a call of an agent counts in: its own, or that of one of its makers (HIRING-5). */
export interface HireAccount {
  /** The owner of the budget. */
  readonly agent: string;
  readonly budget: HiredAgent['budget'];
  /** The owner and all agents below it: their usage counts. */
  readonly members: readonly string[];
  readonly usedTokens: number;
  readonly usedUsd: number;
}

/** Own budget first. Empty for a configured agent. */
export function accountsOf(state: ConversationState, roster: Roster, slug: string): HireAccount[] {
  const one = state.hired[slug];
  if (!one || isReplaced(roster, slug)) return [];
  const members = [slug, ...hiredBy(state.hired, slug)];
  const used = members.map((member) => agentState(state, member).used);
  const account = {
    agent: slug,
    budget: one.budget,
    members,
    usedTokens: used.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
    usedUsd: used.reduce((sum, { usd }) => sum + usd, 0),
  };
  const isMakerHired = one.maker !== null && (state.hired[one.maker]?.at ?? one.at) < one.at;
  return [account, ...(isMakerHired && one.maker !== null ? accountsOf(state, roster, one.maker) : [])];
}
