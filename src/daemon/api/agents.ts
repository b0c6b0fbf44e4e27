import { shownParameters } from '../../agents/index.ts';
import type { AnswerOf, Bus, RequestOf } from '../../bus/index.ts';
import type { AgentCard } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { ListedRow } from '../conversations/projections.ts';
import type { Team } from '../team/team.ts';
/** The answer of endpoint `agents`. `rows`: the conversation list. The persona of an agent in another process is not known here. */
export async function listAgents(
  { team }: { readonly team: Team },
  rows: readonly ListedRow[],
  bus: Pick<Bus, 'isAgentConnected'>,
  { persona }: RequestOf<'agents'> = {},
): Promise<AnswerOf<'agents'>> {
  const known = team.rules.roster.agents;
  if (persona !== undefined && !known.has(persona)) {
    throw new ParleyError('UNKNOWN_AGENT', `there is no agent ${persona}`, {
      hint: `known agents: ${[...known.keys()].join(', ')}`,
    });
  }
  const agents = [...known.values()].map(async (card) => {
    const connected = card.runtime === 'bus' ? await bus.isAgentConnected(card.slug) : undefined;
    return {
      slug: card.slug,
      name: card.name,
      description: card.description,
      phases: card.phases,
      modes: card.modes,
      runtime: card.runtime,
      status: statusOf(card, rows, connected),
      tools: card.tools,
      clientTools: card.clientTools !== false,
      ...(team.agents.get(card.slug)?.answers && { typed: true as const }),
      ...(persona === card.slug && personaOf(card, team)),
      ...(connected === undefined ? {} : { connected }),
      ...modelOf(card, team),
    };
  });
  return {
    agents: await Promise.all(agents),
    models: team.models.names,
    default: team.rules.roster.defaultAgent,
  };
}

function personaOf({ slug, runtime }: AgentCard, { agents }: Team) {
  const persona = runtime === 'local' ? agents.get(slug)?.persona : undefined;
  return persona === undefined ? undefined : { persona };
}

/** Only an agent in this process has a model here: another program makes its own requests. */
function modelOf({ slug, runtime }: AgentCard, { agents }: Team) {
  const agent = runtime === 'local' ? agents.get(slug) : undefined;
  if (!agent) return undefined;
  const { accepts = [] } = agent.profile.form;
  const shownFiles = accepts === 'references' ? ['image', 'pdf', 'audio'] : accepts;
  return { model: agent.profile.name, shownFiles, ...shownParameters(agent.profile) };
}

/** Over all conversations, as their list has it. */
function statusOf({ slug }: AgentCard, rows: readonly ListedRow[], connected: boolean | undefined): string {
  if (rows.some(({ running }) => running.includes(slug))) return 'running';
  if (rows.some(({ waiting }) => waiting.includes(slug))) return 'waiting';
  return connected === false ? 'not connected' : 'idle';
}

/** The tools that can be called now, and the MCP servers. */
export function listTools({ toolbox }: Team): AnswerOf<'tools'> {
  const tools = [...toolbox.definitions().values()].map(({ name, risk }) => ({ name, risk }));
  return { tools, servers: toolbox.servers?.() ?? [] };
}

/** Merges the answers of several daemons; the first is this daemon's own, which has what is the same in all. */
export function mergeAgents<Agent extends { readonly slug: string; readonly status: string }>(
  pages: readonly { readonly agents: readonly Agent[] }[],
): { readonly agents: readonly Agent[] } {
  const [own, ...others] = pages;
  const running = new Set(
    others.flatMap(({ agents }) =>
      agents.filter(({ status }) => status === 'running').map(({ slug }) => slug),
    ),
  );
  const agents = own?.agents.map((agent) =>
    running.has(agent.slug) ? { ...agent, status: 'running' } : agent,
  );
  return { ...own, agents: agents ?? [] };
}
