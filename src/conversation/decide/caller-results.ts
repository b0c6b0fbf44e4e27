import { type Refusal, refusal } from '../../kernel/index.ts';
import { type Author, type CallPlace, type MessageEntry, wireCallId } from '../log/entry.ts';
import { type ConversationState, type OpenCall, samePlace, type Turn } from '../state/state.ts';
import { CallStep } from './call-step.ts';
import type { CallersResult, CommandOf, Outcome } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { plainContent } from './repeated-calls.ts';
import { advanceTurn } from './turns.ts';

export interface AwaitedCall {
  readonly turn: Turn;
  readonly call: OpenCall;
}

export function awaitedCalls(state: ConversationState): AwaitedCall[] {
  return Object.values(state.agents).flatMap(({ turn }) =>
    turn ? turn.openCalls.flatMap((call) => (call.atCaller ? [{ turn, call }] : [])) : [],
  );
}

/**
 * Results of calls that the author of a post answers.
 *
 * CALLER-RESULTS-1 Only the author of the post answers, each call once. A repetition of the same results,
 *    with the same files, changes nothing.
 * CALLER-RESULTS-2 All results of a request count, or none.
 */
export function answerCalls(builder: DecisionBuilder, { results, by }: CommandOf<'answer-calls'>): Outcome {
  const known: number[] = [];
  const open: (AwaitedCall & { readonly result: CallersResult })[] = [];
  for (const result of results) {
    const found = awaited(builder, result, by);
    if (typeof found === 'number') known.push(found);
    else if ('code' in found) return found;
    else open.push({ ...found, result });
  }
  const index = open.length > 0 ? builder.nextIndex : Math.max(...known);
  for (const { turn, call, result } of open) {
    const { content, files } = result;
    new CallStep(builder, turn, call).addResult({ content, by, ...(files && { files }) });
  }
  for (const agent of new Set(open.map(({ turn }) => turn.agent))) advanceTurn(builder, agent);
  return { kind: 'answered', index };
}

/** The open call of a result, or the index of the same result in the log, or why it is refused. */
function awaited(builder: DecisionBuilder, given: CallersResult, by: Author): AwaitedCall | number | Refusal {
  const { call: place } = given;
  const id = wireCallId(place);
  const asked = builder.entryAt(place.index);
  const isCallers = asked?.type === 'message' && asked.callerCalls?.includes(place.position);
  if (!isCallers)
    return refusal('NOT_FOUND', `there is no call ${id} that a caller answers`, 'check the id of the call');
  const caller = callerOf(builder, asked);
  if (caller !== by.id)
    return refusal(
      'FORBIDDEN',
      `${by.id} may not answer the call ${id}: ${caller ?? 'another author'} brought its tool`,
      'its author answers it, with the same credentials and name',
    );
  const open = awaitedCalls(builder.state).find(({ call }) => samePlace(call.place, place));
  if (open) return open;
  const result = builder.find(
    (entry) =>
      entry.type === 'message' &&
      entry.role === 'tool' &&
      samePlace(place, entry.call) &&
      entry.index > place.index,
  ) as MessageEntry | undefined;
  const isOwn = result?.author.kind === 'person';
  if (result && isOwn && plainContent(result) === plainContent(given)) return result.index;
  const how = isOwn ? 'was answered already' : `is over: ${result?.content ?? 'its turn has ended'}`;
  return refusal('CALL_OVER', `the call ${id} ${how}`, 'nothing was changed; send a message to continue');
}

/** Who brought the tools of the turn that wrote an answer. */
function callerOf(builder: DecisionBuilder, { turnId }: MessageEntry): string | undefined {
  const start = builder.find((entry) => entry.type === 'turn-started' && entry.turnId === turnId);
  if (start?.type !== 'turn-started') return undefined;
  const brought = start.trigger.map((index) => builder.entryAt(index));
  return brought.findLast((entry) => entry?.type === 'message' && entry.tools)?.author.id;
}

/** Its caller did not answer in time: the model reads that, and the turn continues. */
export function expireCall(builder: DecisionBuilder, place: CallPlace): boolean {
  const found = awaitedCalls(builder.state).find(({ call }) => samePlace(call.place, place));
  if (!found) return false;
  const { turn, call } = found;
  const message = `${call.name} is a tool of the person's program, which did not answer in time: whether it took effect is unknown`;
  new CallStep(builder, turn, call).refuse('CALL_EXPIRED', message);
  advanceTurn(builder, turn.agent);
  return true;
}
