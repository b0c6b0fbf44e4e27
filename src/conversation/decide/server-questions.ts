import { canonicalArguments, readArguments, refusal, visibleArguments } from '../../kernel/index.ts';
import { approvalIdOf } from '../log/call-id.ts';
import { type ServerAsks, wireCallId } from '../log/entry.ts';
import { askedText, fieldsAsked, proposedAnswer } from '../log/server-asks.ts';
import { agentState, type OpenCall, samePlace, type Turn } from '../state/state.ts';
import { CallStep } from './call-step.ts';
import type { CommandOf, Effect, Outcome } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';

/**
 * Questions that the server of a running call asks a person, as approvals: the answer goes to that server.
 *
 * SERVER-QUESTION-1 A call has one question at a time, the next one waits, and the call runs meanwhile: the answer neither starts nor ends it.
 * SERVER-QUESTION-2 An answer matches the schema of the question, or is refused; the question then stays open. The proposed
 *    answer is an example: an approval sends it only if there are no fields.
 * SERVER-QUESTION-3 The end of the call closes its question visibly, also after a crash: its connection is gone.
 */

/** `asks` null: the server waits no longer. */
export function toolAsks(
  builder: DecisionBuilder,
  { agent, turnId, call: place, asks }: CommandOf<'tool-asks'>,
): boolean {
  const { turn } = agentState(builder.state, agent);
  const call = turn?.openCalls.find((open) => samePlace(open.place, place));
  if (turn?.turnId !== turnId || turn.status !== 'running' || !call?.started) return false;
  if (asks === null || call.question)
    return asks === null && new CallStep(builder, turn, call).closeQuestion();
  const text = canonicalArguments(JSON.stringify(proposedAnswer(asks.schema)));
  const { context, nextIndex } = builder;
  const bound = [context.newId(), wireCallId(place), call.name, text];
  builder.add({
    type: 'approval-requested',
    author: builder.agentAuthor(agent),
    turnId,
    approvalId: approvalIdOf(
      context.conversation,
      nextIndex,
      context.tools.fingerprint(JSON.stringify(bound)),
    ),
    call: place,
    agent,
    tool: call.name,
    arguments: text,
    argumentsHash: context.tools.fingerprint(text),
    risk: 'risky',
    why: askedText(asks),
    mayHaveRun: false,
    asks,
  });
  return true;
}

/** SERVER-QUESTION-2 */
export function answerServer({ builder, turn, call }: CallStep, given: CommandOf<'answer'>): Outcome {
  const { question } = call;
  const { answer, by, reason } = given;
  if (!question) return { kind: 'stale' };
  if ((answer !== 'approve' && answer !== 'deny') || given.always) {
    const why = 'a server waits for this answer: it is approve, with the answer as arguments, or deny';
    return refusal('ANSWER_DOES_NOT_FIT', why, 'answer approve, deny');
  }
  const text = canonicalArguments(given.arguments ?? question.arguments);
  const parsed = readArguments(text);
  const { tools } = builder.context;
  const isMissing = given.arguments === undefined && fieldsAsked(question.asks.schema).length > 0;
  const wrong = isMissing
    ? `no answer is given: ${askedText(question.asks)}`
    : parsed.ok
      ? tools.argumentsFault?.('the answer', question.asks.schema, parsed.value, 'server')
      : parsed.why;
  if (answer === 'approve' && wrong) {
    const example = visibleArguments(question.arguments);
    const hint = `the server still waits: approve with arguments such as ${example}, or deny`;
    return refusal('INVALID_ARGUMENTS', wrong, hint);
  }
  const accepted = answer === 'approve' ? { arguments: text } : { reason };
  builder.add({
    type: 'approval-answered',
    author: by,
    approvalId: question.id,
    call: call.place,
    answer,
    ...accepted,
  });
  builder.effect(
    answerEffect(turn, call, question.asks, answer === 'approve' && parsed.ok ? parsed.value : null),
  );
  return { kind: 'done' };
}

/** Nothing was answered in time: the server reads that the question was cancelled. */
export function expireQuestion(step: CallStep): boolean {
  const { builder, turn, call } = step;
  if (!call.question || !step.closeQuestion()) return false;
  builder.effect(answerEffect(turn, call, call.question.asks, undefined));
  return true;
}

function answerEffect(
  { agent, turnId }: Turn,
  { place: call }: OpenCall,
  asks: ServerAsks,
  content: Readonly<Record<string, unknown>> | null | undefined,
): Effect {
  return { type: 'answer-tool', agent, turnId, call, key: call.index, asks, content };
}
