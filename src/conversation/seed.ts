import { refusal } from '../kernel/index.ts';
import type { Command, Reply } from './command.ts';
import type { Drafting } from './drafting.ts';
import type { CallPlace, Entry } from './entry.ts';
import { wireCallId } from './knowledge.ts';

/**
 * A conversation that begins with what was said elsewhere: words of the past, routed to nobody, in no turn, waking no
 * agent (L14). People's words are those of the person that brings them, and an assistant's are the agent's that is named
 * (L17: nobody else's). Every such entry says so in `meta.seeded`.
 */
export function seed(drafting: Drafting, { entries, agent, by }: Extract<Command, { type: 'seed' }>): Reply {
  const { agents } = drafting.context.roster;
  if (!agents.has(agent)) {
    const known = `known agents: ${[...agents.keys()].join(', ')}`;
    return { kind: 'refused', refusal: refusal('UNKNOWN_AGENT', `there is no agent ${agent}`, known) };
  }
  if (drafting.find((entry) => entry.type !== 'claim' && !isSeeded(entry))) {
    const refused = refusal(
      'CONVERSATION_CONFLICT',
      'the conversation has begun already',
      'only a new conversation can begin with what was said elsewhere: choose another id',
    );
    return { kind: 'refused', refusal: refused };
  }
  const first = drafting.nextIndex;
  for (const { index: _, id: __, createdAt: ___, author: ____, agentId: _____, ...entry } of entries) {
    const isAgents = entry.role === 'assistant' || entry.role === 'tool';
    const call: CallPlace | undefined = entry.call && { ...entry.call, index: first + entry.call.index };
    drafting.add({
      ...entry,
      author: isAgents ? drafting.agentAuthor(agent) : by,
      agentId: isAgents ? agent : undefined,
      call,
      tool_call_id: call ? wireCallId(call) : entry.tool_call_id,
      meta: { seeded: true },
    });
  }
  return { kind: 'done' };
}

function isSeeded(entry: Entry): boolean {
  return entry.type === 'message' && entry.meta?.seeded === true;
}
