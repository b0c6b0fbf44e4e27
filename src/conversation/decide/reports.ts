import { hasVisible, wellFormed } from '../../kernel/index.ts';
import type { TypedAnswer } from '../log/answer.ts';
import { type Entry, SYSTEM_AUTHOR, wireCallId } from '../log/entry.ts';
import { isContinued } from '../log/entry-traits.ts';
import { cutBy, emptyAnswerFailure } from '../log/finish-reason.ts';
import { failedAnswer, type ModelFailure } from '../log/model-failure.ts';
import { type FilePart, fileLine, filesOf, partsOf } from '../log/parts.ts';
import { mustAbort, samePlace, type Turn } from '../state/state.ts';
import { ATTACH } from '../tools/conversation-tools.ts';
import { CallStep } from './call-step.ts';
import { callerCallsOf } from './calls.ts';
import type { Answer, CallReport, CommandOf } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { risksOf } from './tools.ts';
import { addAnswer, addAttempt, addFailure, addLimit, addSummary, progressOf } from './turn-entries.ts';
import { advanceTurn, beginCalls, endTurn, runningTurn } from './turns.ts';

/** Reports of effects: a model's answer, failure or abort, and a tool's result. False: nothing changed (TURNS-3). */

export function modelAnswered(builder: DecisionBuilder, report: CallReport, answer: Answer): boolean {
  const turn = turnAwaitingAnswer(builder, report);
  if (!turn) return false;
  const files = filesWith(builder, turn, answer);
  const { finishReason, content, toolCalls, typed } = answer;
  const failure = failureIn(answer, files) ?? typeFailure(turn, typed);
  const invalid = !failure && typed?.kind === 'invalid' ? typed.why : undefined;
  addAnswer(builder, report, {
    content: failure
      ? failedAnswer(failure, content ?? '')
      : files.length > 0
        ? (answer.content ?? '')
        : answer.content,
    parts: partsOf(answer.content ?? '', files),
    tool_calls: answer.toolCalls.length > 0 ? [...answer.toolCalls] : undefined,
    risks: risksOf(builder, turn, answer.toolCalls),
    callerCalls: callerCallsOf(builder, turn, answer.toolCalls),
    reasoning: answer.reasoning,
    blocks: failure ? undefined : answer.blocks,
    usage: answer.usage,
    model: answer.model,
    finishReason: answer.finishReason,
    ...progressOf(answer),
    ...(typed?.kind === 'valid' ? { value: typed.value } : {}),
    invalid,
    partType: failure ? 'error' : 'text',
    ...(answer.fullOutputPath ? { id: answer.id, fullOutputPath: answer.fullOutputPath } : {}),
  });
  if (toolCalls.length > 0) beginCalls(builder, report.agent);
  else if (isContinued({ finishReason, content, invalid })) advanceTurn(builder, report.agent);
  else endTurn(builder, report.agent, failure ? 'failed' : 'completed');
  return true;
}

/** Its own files, and if it says something or is the last, those that the turn attached since its newest message with files. */
function filesWith(
  builder: DecisionBuilder,
  turn: Turn,
  { content, toolCalls, files = [] }: Answer,
): FilePart[] {
  const found = new Map(files.map((file) => [file.sha256, file]));
  if (toolCalls.length > 0 && !hasVisible(content ?? '')) return [...found.values()];
  const attached: FilePart[] = [];
  for (let index = builder.nextIndex - 1; index > turn.startedAt; index--) {
    const entry = builder.entryAt(index);
    if (entry?.type !== 'message' || entry.turnId !== turn.turnId) continue;
    if (entry.role === 'assistant' && entry.parts) break;
    if (entry.toolName === ATTACH) attached.unshift(...filesOf(entry));
  }
  for (const file of attached) found.set(file.sha256, file);
  return [...found.values()];
}

/** An answer without any text, file, call or report of one is a failure: silence must not look like a completed turn (L16). */
function failureIn(
  { content, reasoning = '', toolCalls, reported = [], finishReason }: Answer,
  files: readonly FilePart[],
): ModelFailure | null {
  if (toolCalls.length + reported.length + files.length > 0 || hasVisible(content ?? '')) return null;
  return emptyAnswerFailure(cutBy(finishReason), hasVisible(reasoning));
}

/** TYPED-2 */
function typeFailure(turn: Turn, typed: TypedAnswer | undefined): ModelFailure | null {
  if (typed?.kind === 'unchecked') return { code: 'SCHEMA_UNUSABLE', message: typed.why };
  if (typed?.kind !== 'invalid' || !turn.wasInvalid) return null;
  const message = `The answer does not match the schema, and neither did the one before: ${typed.why}. Ask again, or change the schema.`;
  return { code: 'ANSWER_INVALID', message };
}

/** L16: a failure is an entry with content, so that "continue" has an anchor. */
export function modelFailed(builder: DecisionBuilder, command: CommandOf<'model-failed'>): boolean {
  if (!turnAwaitingAnswer(builder, command)) return false;
  addFailure(builder, command, command, command.partial);
  endTurn(builder, command.agent, 'failed');
  return true;
}

/** The next candidate is asked once the failed attempt is durable: a restart in between continues with it. */
export function attemptFailed(builder: DecisionBuilder, command: CommandOf<'attempt-failed'>): boolean {
  const turn = turnAwaitingAnswer(builder, command);
  if (!turn) return false;
  const key = addAttempt(builder, turn, command);
  if (mustAbort(builder.state, command.agent)) endTurn(builder, command.agent, 'aborted');
  else builder.effect({ type: 'call-model', agent: turn.agent, turnId: turn.turnId, key });
  return true;
}

/** An abort by a person is not an error (L16): the partial text stays, and what the agent reported. */
export function modelAborted(builder: DecisionBuilder, command: CommandOf<'model-aborted'>): boolean {
  const turn = runningTurn(builder, command.agent, command.turnId);
  if (!turn) return false;
  const { partial: content, reported = [] } = command;
  if (content || reported.length > 0)
    addAnswer(builder, command, { content, partType: 'text', ...progressOf(command) });
  if (command.limit) addLimit(builder, turn, command.limit.name, command.limit.message);
  endTurn(builder, command.agent, command.limit ? 'limited' : 'aborted');
  return true;
}

/** The view becomes smaller: the model is called again with a new request. */
export function reduceView(builder: DecisionBuilder, command: CommandOf<'reduce-view'>): boolean {
  const turn = turnAwaitingAnswer(builder, command);
  if (!turn) return false;
  if (mustAbort(builder.state, command.agent)) {
    endTurn(builder, command.agent, 'aborted');
    return true;
  }
  const key = addSummary(builder, turn, command.reduction);
  builder.effect({ type: 'call-model', agent: turn.agent, turnId: turn.turnId, key });
  return true;
}

export function toolFinished(builder: DecisionBuilder, command: CommandOf<'tool-finished'>): boolean {
  const turn = runningTurn(builder, command.agent, command.turnId);
  const call = turn?.openCalls.find((open) => samePlace(open.place, command.call));
  if (!turn || !call?.started) return addLateNote(builder, command);
  new CallStep(builder, turn, call).addResult({
    content: command.result,
    duration: command.duration,
    files: command.files,
    id: command.id,
    fullOutputPath: command.fullOutputPath,
  });
  advanceTurn(builder, command.agent);
  return true;
}

/**
 * A result of a call that has one already, or that waits for an approval, becomes a note for people. No agent sees it:
 * other agents never see a result (L18), and the caller has the result that counts (V7).
 */
function addLateNote(builder: DecisionBuilder, command: CommandOf<'tool-finished'>): boolean {
  const { call } = command;
  const files = command.files?.map((file) => `\n${fileLine(file)}: not kept`) ?? [];
  const result = wellFormed(command.result + files.join('')); // as the log stores it
  const asked = builder.entryAt(call.index);
  if (asked?.type !== 'message' || asked.turnId !== command.turnId || asked.author.id !== command.agent)
    return false;
  const toolName = asked.tool_calls?.[call.position]?.function.name;
  const content = `a late result of ${toolName} (call ${wireCallId(call)}): ${result}`;
  const ofThisCall = (entry: Entry) => 'call' in entry && samePlace(call, entry.call);
  const wasStarted = builder.find((entry) => entry.type === 'tool-started' && ofThisCall(entry));
  const isKnown = builder.find(
    (entry) =>
      ofThisCall(entry) &&
      ((entry.type === 'message' && entry.content === result) ||
        (entry.type === 'note' && entry.content === content)),
  );
  if (!wasStarted || isKnown) return false; // a repeated report is no second result
  builder.add({
    type: 'note',
    author: SYSTEM_AUTHOR,
    turnId: command.turnId,
    content,
    includeInContext: false,
    call,
    toolName,
    id: command.id,
    fullOutputPath: command.fullOutputPath,
  });
  return true;
}

/** The running turn that waits for this report's model call; none while tools run or after the answer (TURNS-3). */
function turnAwaitingAnswer(
  builder: DecisionBuilder,
  report: Pick<CallReport, 'agent' | 'turnId' | 'upTo'>,
): Turn | undefined {
  const turn = runningTurn(builder, report.agent, report.turnId);
  return turn && turn.openCalls.length === 0 && report.upTo >= turn.answeredUpTo ? turn : undefined;
}
