import type { Mode } from '../log/entry.ts';
import type { AgentCard } from './roster.ts';

/** Who answers a message that no question awaits, by the state of the conversation (rules: `decide/routing.ts`). Consoles use it too. */

/** What of the state determines it. */
export interface Floor {
  readonly activeAgent: string | null;
  readonly phase: string;
  readonly mode: Mode;
  /** The agent of its current node. */
  readonly run: { readonly agent: string | null } | null;
}

type Answerer = Pick<AgentCard, 'slug' | 'phases' | 'modes'>;

export interface Answerers {
  /** In slug order. */
  readonly agents: ReadonlyMap<string, Answerer>;
  readonly defaultAgent: string;
}

/** ROUTING-4 to ROUTING-8: the agent that the conversation's state determines. */
export function agentByState(floor: Floor, roster: Answerers): string {
  const { activeAgent, phase, mode, run } = floor;
  if (mode === 'run' && run?.agent && roster.agents.has(run.agent)) return run.agent;
  if (mode === 'agent' && activeAgent !== null && roster.agents.has(activeAgent)) return activeAgent;
  return (
    preferredAgent((agent) => agent.phases.includes(phase), floor, roster) ??
    preferredAgent((agent) => agent.modes.includes(mode), floor, roster) ??
    roster.defaultAgent
  );
}

/** Of several matching agents: the active one, else the default one, else the first slug in order. */
function preferredAgent(
  fits: (agent: Answerer) => boolean,
  { activeAgent }: Floor,
  roster: Answerers,
): string | undefined {
  const fitting = [...roster.agents.values()].filter(fits).map((agent) => agent.slug);
  const preferred = [activeAgent, roster.defaultAgent].find(
    (slug) => slug !== null && fitting.includes(slug),
  );
  return preferred ?? fitting[0];
}

const MENTION = /(?<![\p{L}\p{N}_])@([a-z0-9][a-z0-9-]*)(?![\p{L}\p{N}_])/giu;

/** ROUTING-2: the known agents that a text mentions, in the order of their first mention. */
export function mentions(content: string, roster: Pick<Answerers, 'agents'>): string[] {
  if (!content.includes('@')) return [];
  const found = new Set<string>();
  for (const match of content.matchAll(MENTION)) {
    const slug = longestKnownSlug((match[1] ?? '').toLowerCase(), roster);
    if (slug !== undefined) found.add(slug);
  }
  return [...found];
}

/** What looks like a mention, and names no agent. */
export function unknownMentions(content: string, roster: Pick<Answerers, 'agents'>): string[] {
  const words = [...content.matchAll(MENTION)].map(([, word = '']) => word.toLowerCase());
  return [...new Set(words)].filter((word) => longestKnownSlug(word, roster) === undefined);
}

/** Maximum length of a slug: longer words are not looked up. */
const LONGEST_SLUG = 64;

/** `@dev-ops` is dev-ops if that agent exists, else dev followed by text; `@developer` is never dev. */
function longestKnownSlug(word: string, roster: Pick<Answerers, 'agents'>): string | undefined {
  for (let end = word.length; end > 0; end = word.lastIndexOf('-', end - 1)) {
    if (end > LONGEST_SLUG) continue;
    const candidate = word.slice(0, end);
    if (roster.agents.has(candidate)) return candidate;
  }
  return undefined;
}
