import { RequestError, type SessionModeState } from '@agentclientprotocol/sdk';
import type { ConversationDetail, ParleyClient, RequestOf } from '../../client/index.ts';

/** Who answers, as the modes of a session: `team`, `chat`, `agent:<slug>` and `run:<workflow>`. */

const TEAM = {
  id: 'team',
  name: 'Team',
  description: 'who answers follows the phase; agents hand over to each other',
};
const CHAT = {
  id: 'chat',
  name: 'Chat',
  description: 'a casual conversation, without the instructions of agents',
};

/** `detail`: null for a conversation that does not exist yet. */
export async function modesOf(
  client: ParleyClient,
  detail: ConversationDetail | null,
): Promise<SessionModeState> {
  const [{ agents }, { workflows }] = await Promise.all([
    client.request('agents', {}),
    client.request('workflows', {}),
  ]);
  const availableModes = [
    TEAM,
    ...agents.map(({ slug, name, description }) => ({ id: `agent:${slug}`, name, description })),
    ...workflows.map(({ id, nodes }) => {
      const description = `the workflow: ${nodes.map(({ node }) => node).join(', ')}`;
      return { id: `run:${id}`, name: `Run ${id}`, description };
    }),
    CHAT,
  ];
  const currentModeId = detail === null ? TEAM.id : modeIdOf(detail);
  const isListed = availableModes.some(({ id }) => id === currentModeId);
  const [, name = currentModeId] = currentModeId.split(':'); // a hired agent, or a workflow that was removed
  return {
    currentModeId,
    availableModes: isListed ? availableModes : [...availableModes, { id: currentModeId, name }],
  };
}

export function modeIdOf({ mode, activeAgent, run }: ConversationDetail): string {
  if (mode === 'chat') return CHAT.id;
  if (run) return `run:${run.workflow}`;
  return activeAgent === null ? TEAM.id : `agent:${activeAgent}`;
}

/** The fields of the verb `mode`. */
export function modeRequest(id: string): Pick<RequestOf<'mode'>, 'mode' | 'agent' | 'workflow'> {
  if (id === CHAT.id) return { mode: 'chat' };
  if (id === TEAM.id) return { mode: 'agent', agent: null };
  const [, kind, name] = /^(agent|run):(.+)$/.exec(id) ?? [];
  if (kind === 'agent') return { mode: 'agent', agent: name };
  if (kind === 'run') return { mode: 'run', workflow: name };
  const hint = 'choose one of availableModes, as session/new and session/load return them';
  throw invalid(`there is no mode ${JSON.stringify(id)}; ${hint}`);
}

const INVALID_PARAMS = -32602;

/** A request that the client must correct. */
export function invalid(message: string, data?: object): RequestError {
  return new RequestError(INVALID_PARAMS, message, data);
}
