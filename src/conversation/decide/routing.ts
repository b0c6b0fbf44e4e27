import { type Refusal, refusal } from '../../kernel/index.ts';
import { type Entry, placeOfCallId, wireCallId } from '../log/entry.ts';
import { agentByState, mentions } from '../state/answering.ts';
import type { Roster } from '../state/roster.ts';
import type { ConversationState, OpenCall } from '../state/state.ts';

/**
 * Who answers a person's message (docs/spec/wire.md, "Who answers"). The first rule that applies decides:
 *
 * ROUTING-1 the message's `to`; an unknown agent is an error to the sender
 * ROUTING-2 `@slug` mentions of known agents in prose: not in code, quotes, paths or addresses
 * ROUTING-3 the agent that waits for this answer (an `ask`)
 * ROUTING-4 the current node's agent, in mode run
 * ROUTING-5 the active agent, in mode agent
 * ROUTING-6 the agent whose `phases` contain the phase
 * ROUTING-7 the agent whose `modes` contain the mode
 * ROUTING-8 the default agent
 */

export interface Addressed {
  readonly content: string;
  readonly to?: readonly string[];
  /** The id of the entry that this message answers. */
  readonly replyTo?: string;
}

export type Route =
  | { readonly ok: true; readonly to: readonly string[]; readonly byName: boolean }
  | { readonly ok: false; readonly refusal: Refusal };

/** What the log has. */
interface Known {
  readonly entries: readonly Entry[];
  readonly indexOfId: (id: string) => number | undefined;
}

const NOTHING: Known = { entries: [], indexOfId: () => undefined };

export function route(
  message: Addressed,
  state: ConversationState,
  roster: Roster,
  log: Known = NOTHING,
): Route {
  if (message.to && message.to.length > 0) {
    const unknown = message.to.filter((slug) => !roster.agents.has(slug));
    if (unknown.length > 0) return { ok: false, refusal: unknownAgent(unknown, roster) };
    return { ok: true, to: [...new Set(message.to)], byName: true };
  }
  const { known: mentioned } = mentions(message.content, roster);
  if (mentioned.length > 0) return { ok: true, to: mentioned, byName: true };
  const asking = askingAgent(message.replyTo, state, roster, log);
  return { ok: true, to: [asking ?? agentByState(state, roster)], byName: false };
}

/** ROUTING-3: the agent that asked the question that `replyTo` names, else the one that has waited longest. */
function askingAgent(
  replyTo: string | undefined,
  state: ConversationState,
  roster: Roster,
  known: Known,
): string | undefined {
  const questions = Object.entries(state.agents)
    .filter(([slug]) => roster.agents.has(slug))
    .flatMap(([slug, agent]) => (agent.turn?.openCalls ?? []).map((call) => ({ slug, call })))
    .filter(({ call }) => call.name === 'ask')
    .sort((a, b) => a.call.place.index - b.call.place.index);
  const call = questionFor(
    questions.map((question) => question.call),
    replyTo,
    known,
  );
  return questions.find((question) => question.call === call)?.slug;
}

/**
 * The open question that a message answers: the one that `replyTo` names by entry or by call, else the oldest (V18). An answer
 * to another call or question, for example a late one, must not answer this agent's question.
 */
export function questionFor(
  calls: readonly OpenCall[],
  replyTo: string | undefined,
  known: Known,
): OpenCall | undefined {
  const questions = calls.filter((call) => call.name === 'ask');
  if (replyTo === undefined) return questions[0];
  if (placeOfCallId(replyTo) !== null) return questions.find(({ place }) => wireCallId(place) === replyTo);
  const at = known.indexOfId(replyTo);
  if (at !== undefined && isQuestion(known.entries[at]))
    return questions.find(({ place }) => place.index === at);
  return questions[0];
}

function isQuestion(entry: Entry | undefined): boolean {
  return entry?.type === 'message' && entry.tool_calls?.some((call) => call.function.name === 'ask') === true;
}

function unknownAgent(unknown: readonly string[], roster: Roster): Refusal {
  const known = [...roster.agents.keys()].join(', ');
  return refusal(
    'UNKNOWN_AGENT',
    `there is no agent ${unknown.map((slug) => JSON.stringify(slug)).join(', ')}`,
    `known agents: ${known}`,
  );
}
