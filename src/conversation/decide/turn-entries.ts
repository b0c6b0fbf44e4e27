import {
  type Entry,
  type EntryOf,
  type MessageEntry,
  SYSTEM_AUTHOR,
  type TurnOutcome,
} from '../log/entry.ts';
import { type Cut, cutBy } from '../log/finish-reason.ts';
import { failedAnswer, type ModelFailure } from '../log/model-failure.ts';
import { filesOf, shownName } from '../log/parts.ts';
import type { Ranges } from '../log/ranges.ts';
import { agentState, type Turn } from '../state/state.ts';
import { PREVIEW_LENGTH, titleFrom } from '../text/text.ts';
import type { AnswerSoFar, CallReport, FailedAttempt, Reduction } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';

/** One function for each entry that a turn writes. */

/** What an answer has besides the fields that the turn and the request determine. */
type AnswerFields = Pick<MessageEntry, 'content' | 'partType'> & Partial<MessageEntry>;

export function addAnswer(builder: DecisionBuilder, report: CallReport, fields: AnswerFields): number {
  const { state } = builder;
  return builder.add({
    type: 'message',
    role: 'assistant',
    author: builder.agentAuthor(report.agent),
    agentId: report.agent,
    turnId: report.turnId,
    mode: state.mode,
    phase: state.phase,
    runId: state.run?.runId,
    workflowId: state.run?.workflowId,
    sessionId: agentState(state, report.agent).session?.id,
    duration: report.duration,
    requestHash: report.requestHash,
    upTo: report.upTo,
    estimatedTokens: fields.usage && report.estimatedTokens,
    ...fields,
  });
}

export function progressOf({
  sessionId,
  reported,
  prompt,
}: AnswerSoFar): Pick<AnswerFields, 'sessionId' | 'reported' | 'prompt'> {
  return { ...(sessionId ? { sessionId } : {}), reported: reported && [...reported], prompt };
}

/** L16: a failure is an entry with content, so that "continue" has an anchor. */
export function addFailure(
  builder: DecisionBuilder,
  report: CallReport,
  failure: ModelFailure & AnswerSoFar,
  partial = '',
): void {
  const content = failedAnswer(failure, partial);
  addAnswer(builder, report, { content, partType: 'error', ...progressOf(failure) });
}

/**
 * The session that a message names, for the turn that it starts or reaches, in the same append. The newest of the messages
 * counts.
 */
export function addSession(builder: DecisionBuilder, agent: string, messages: readonly number[]): void {
  const named = namedSession(messages.map((index) => builder.entryAt(index)));
  const known = agentState(builder.state, agent).session;
  if (!named || (known?.by === 'person' && known.id === named.sessionId)) return;
  builder.add({ type: 'session-set', author: SYSTEM_AUTHOR, agent, ...named });
}

/** The newest session that these messages name, and the message. */
export function namedSession(
  messages: readonly (Entry | undefined)[],
): Pick<EntryOf<'session-set'>, 'sessionId' | 'from'> | undefined {
  const named = messages.flatMap((entry) => {
    if (entry?.type !== 'message' || !entry.setsSession || entry.sessionId === undefined) return [];
    return [{ sessionId: entry.sessionId, from: entry.index }];
  });
  return named.sort((a, b) => a.from - b.from).at(-1);
}

/** What an agent reads when it hands over or delegates to a stopped agent. */
export function stoppedMessage(slug: string): string {
  return `${slug} is stopped and does nothing until a person resumes it: do it yourself, ask another agent, or tell the person`;
}

export function addAttempt(
  builder: DecisionBuilder,
  turn: Turn,
  { candidate, next, code, message, requestHash, ...report }: AttemptReport,
): number {
  return builder.add({
    type: 'attempt-failed',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    agent: turn.agent,
    ...candidate,
    code,
    message,
    requestHash,
    next,
    duration: report.duration,
    upTo: report.upTo,
  });
}

type AttemptReport = FailedAttempt & Pick<CallReport, 'duration' | 'upTo'>;

/** V17: replaces parts of an agent's view. */
export function addSummary(builder: DecisionBuilder, turn: Turn, reduction: Reduction): number {
  return builder.add(summaryOf(turn, reduction));
}

/** A summary entry without index, id and time. */
export function summaryOf(turn: Pick<Turn, 'turnId' | 'agent'>, reduction: Reduction) {
  const { covered, leftOut, shortened, previewLength, withoutFiles = [] } = reduction;
  const taken = [...covered, ...leftOut].flat();
  const all = taken.length > 0 ? taken : [...shortened, ...withoutFiles];
  return {
    type: 'summary' as const,
    author: SYSTEM_AUTHOR,
    turnId: turn.turnId,
    agent: turn.agent,
    entries: pairs(covered),
    leftOut: leftOut.length > 0 ? pairs(leftOut) : undefined,
    shortened: shortened.length > 0 ? [...shortened] : undefined,
    previewLength: shortened.length > 0 && previewLength !== PREVIEW_LENGTH ? previewLength : undefined,
    withoutFiles: withoutFiles.length > 0 ? [...withoutFiles] : undefined,
    fromIndex: Math.min(...all),
    toIndex: Math.max(...all),
    content: reduction.content,
    writtenBy: reduction.content === '' ? undefined : reduction.writtenBy,
    tokensBefore: reduction.tokensBefore,
    tokenRatio: reduction.tokenRatio,
    usage: reduction.usage,
    model: reduction.model,
  };
}

function pairs(ranges: Ranges): [number, number][] {
  return ranges.map(([from, to]) => [from, to]);
}

/** L15: reaching a limit is an entry, so that people see it. */
export function addLimit(builder: DecisionBuilder, turn: Turn, limit: string, content: string): void {
  builder.add({
    type: 'limit-reached',
    author: SYSTEM_AUTHOR,
    turnId: turn.turnId,
    agent: turn.agent,
    limit,
    content,
  });
}

/** A turn continues: after a crash, or because its awaited calls have all their results (V11). */
export function addTurnResumed(builder: DecisionBuilder, turn: Turn, trigger: readonly number[]): number {
  return builder.add({
    type: 'turn-started',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    agent: turn.agent,
    trigger: [...trigger],
    resumed: true,
    hops: turn.hops,
    upTo: builder.nextIndex,
  });
}

export function addTurnEnded(builder: DecisionBuilder, turn: Turn, outcome: TurnOutcome): void {
  const known = builder.context.knowledge(turn.agent);
  const end = builder.nextIndex + 1;
  const isBegunNow = turn.startedAt >= builder.context.entries.length;
  builder.add({
    type: 'turn-ended',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    agent: turn.agent,
    outcome,
    finishReason: outcome === 'completed' ? (cutOf(builder, turn) ?? undefined) : undefined,
    lastProcessedMessageIndex: isBegunNow
      ? known.of(builder.all()).cursorAfter([], end)
      : known.cursorAfter(builder.drafted, end),
  });
}

/** What cut the turn's last words; null: they are complete. */
export function cutOf(builder: DecisionBuilder, { lastWords }: Turn): Cut | null {
  const words = lastWords === null ? undefined : builder.entryAt(lastWords);
  return words?.type === 'message' ? cutBy(words.finishReason) : null;
}

/** The first exchange gives a conversation its title. */
export function addTitle(builder: DecisionBuilder): void {
  if (builder.state.title !== null) return;
  const title = titleOf(builder);
  if (title) builder.add({ type: 'title-set', author: SYSTEM_AUTHOR, title });
}

/** The title, or the one that the first message gives. */
export function titleOf(builder: DecisionBuilder): string | null {
  if (builder.state.title !== null) return builder.state.title;
  const first = builder.find((entry) => entry.type === 'message' && entry.author.kind === 'person');
  if (first?.type !== 'message') return null;
  return titleFrom(first.content || filesOf(first).map(shownName).join(', '));
}
