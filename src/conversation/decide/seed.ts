import { refusal } from '../../kernel/index.ts';
import type { CallPlace, Entry, MessageEntry } from '../log/entry.ts';
import { wireCallId } from '../state/knowledge.ts';
import type { Command, Reply } from './command.ts';
import { type DecisionBuilder, wellFormed } from './decision-builder.ts';
import { refusalOfPost } from './posting.ts';

/**
 * Begins a conversation with messages from elsewhere. They are routed to no agent, belong to no turn and start none
 * (L14). People's messages get the author `by`, assistants' the agent `agent` (L17); each has `meta.seeded`. The command
 * is idempotent, also after a part of it was appended by another daemon. Without entries it only checks `post`.
 */
export function seed(
  builder: DecisionBuilder,
  { entries, after, agent, by, post }: Extract<Command, { type: 'seed' }>,
): Reply {
  const { agents } = builder.context.roster;
  if (!agents.has(agent)) {
    const known = `known agents: ${[...agents.keys()].join(', ')}`;
    return { kind: 'refused', refusal: refusal('UNKNOWN_AGENT', `there is no agent ${agent}`, known) };
  }
  const seeded = builder.context.entries.filter(isSeeded);
  const known = seeded.slice(after, after + entries.length);
  const isCheck = entries.length === 0;
  if (!isCheck && known.length === entries.length && known.every((entry, at) => isSame(entry, entries[at])))
    return { kind: 'done' };
  const isBegun = () => builder.find((entry) => entry.type !== 'claim' && !isSeeded(entry)) !== undefined;
  if (!isCheck && (seeded.length !== after || isBegun())) {
    const refused = refusal(
      'CONVERSATION_CONFLICT',
      'the conversation has begun already',
      'only a new conversation can begin with what was said elsewhere: choose another id',
    );
    return { kind: 'refused', refusal: refused };
  }
  const refused = post ? refusalOfPost(builder, post) : null;
  if (refused) return { kind: 'refused', refusal: refused };
  const first = builder.nextIndex;
  for (const { index: _, id: __, createdAt: ___, author: ____, agentId: _____, ...entry } of entries) {
    const isAgents = entry.role === 'assistant' || entry.role === 'tool';
    const call: CallPlace | undefined = entry.call && { ...entry.call, index: first + entry.call.index };
    builder.add({
      ...entry,
      author: isAgents ? builder.agentAuthor(agent) : by,
      agentId: isAgents ? agent : undefined,
      call,
      tool_call_id: call ? wireCallId(call) : entry.tool_call_id,
      meta: { seeded: true },
    });
  }
  return { kind: 'done' };
}

function isSeeded(entry: Entry): entry is MessageEntry {
  return entry.type === 'message' && entry.meta?.seeded === true;
}

function isSame(known: MessageEntry, given: MessageEntry | undefined): boolean {
  if (known.role !== given?.role || known.content !== (given.content && wellFormed(given.content)))
    return false;
  return JSON.stringify(functionsIn(known)) === JSON.stringify(functionsIn(given));
}

const functionsIn = (entry: MessageEntry) => entry.tool_calls?.map((call) => call.function) ?? [];
