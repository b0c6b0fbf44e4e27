import { type AgentCard, type Mode, modeBanner, type Roster } from '../conversation/index.ts';

/**
 * The prefix of every request: one system message, never stored. What changes often stands last, so that
 * provider prompt caches hit: base rules, tool policy, persona, mode banner.
 */

/** The texts that make the prefix, from `config/prompts/`. */
export interface PromptTexts {
  /** Base rules of the modes chat and agent. */
  readonly baseChat: string;
  /** Base rules of mode run. */
  readonly baseRun: string;
  /** How to use tools; only for agents that have some. */
  readonly toolPolicy: string;
}

export interface PersonaSource {
  readonly card: AgentCard;
  /** The Markdown of the agent's file; left out in mode chat. */
  readonly persona: string;
}

export function prefix(agent: PersonaSource, mode: Mode, texts: PromptTexts, roster: Roster): string {
  const sections = [mode === 'run' ? texts.baseRun : texts.baseChat];
  if (agent.card.tools.length > 0) sections.push(texts.toolPolicy);
  if (mode !== 'chat') sections.push(agent.persona);
  const filled = sections.map((section) => fill(section, agent.card, roster).trim());
  return [...filled.filter((section) => section !== ''), modeBanner(mode)].join('\n\n');
}

/** `{{name}}`, `{{slug}}`, `{{description}}` of this agent, `{{agents}}`: the others, a line each. */
function fill(text: string, card: AgentCard, roster: Roster): string {
  const values: Record<string, () => string> = {
    name: () => card.name,
    slug: () => card.slug,
    description: () => card.description,
    agents: () => otherAgents(card, roster),
  };
  return text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) =>
    Object.hasOwn(values, key) ? (values[key]?.() ?? whole) : whole,
  );
}

function otherAgents(card: AgentCard, roster: Roster): string {
  const others = [...roster.agents.values()].filter((agent) => agent.slug !== card.slug);
  if (others.length === 0) return '(none)';
  return others.map((agent) => `- ${agent.name} (\`${agent.slug}\`): ${agent.description}`).join('\n');
}
