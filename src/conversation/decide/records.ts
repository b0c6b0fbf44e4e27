import { type Risk, SYSTEM_AUTHOR, type ToolCall } from '../log/entry.ts';
import type { Ranges } from '../log/ranges.ts';
import { wireCallId } from '../state/knowledge.ts';
import { agentState, type OpenCall, samePlace, type Turn } from '../state/state.ts';
import { PREVIEW_LENGTH } from '../text/text.ts';
import { toolError } from '../tools/conversation-tools.ts';
import type { Answer, CallReport, Reduction } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';

/** The entries that a turn writes, in one place each. */

interface AnswerFields {
  readonly content: string | null;
  readonly partType: 'text' | 'error';
  readonly tool_calls?: ToolCall[];
  readonly risks?: (Risk | null)[];
  readonly reasoning?: string;
  readonly usage?: Answer['usage'];
  readonly model?: string;
  readonly finishReason?: string;
  readonly sessionId?: string;
  /** Given when a file of that name was written before. */
  readonly id?: string;
  readonly fullOutputPath?: string;
}

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
    sessionId: agentState(state, report.agent).sessionId ?? undefined,
    duration: report.duration,
    requestHash: report.requestHash,
    upTo: report.upTo,
    estimatedTokens: fields.usage && report.estimatedTokens,
    ...fields,
  });
}

export interface ResultFields {
  readonly content: string;
  readonly duration?: number;
  /** Given when a file of that name was written before. */
  readonly id?: string;
  /** Where the whole of a large result is. */
  readonly fullOutputPath?: string;
  /** The entries that this result stands for (V4). */
  readonly answers?: readonly number[];
}

export function addResult(builder: DecisionBuilder, turn: Turn, call: OpenCall, fields: ResultFields): void {
  builder.add({
    type: 'message',
    role: 'tool',
    author: builder.agentAuthor(turn.agent),
    agentId: turn.agent,
    turnId: turn.turnId,
    content: fields.content,
    toolName: call.name,
    tool_call_id: wireCallId(call.place),
    call: call.place,
    answers: fields.answers && [...fields.answers],
    id: fields.id,
    fullOutputPath: fields.fullOutputPath,
    partType: 'tool_result',
    duration: fields.duration ?? 0,
  });
}

/** An error result, as a model reads it. False: for callers that say whether the turn is over. */
export function refuse(
  builder: DecisionBuilder,
  turn: Turn,
  call: OpenCall,
  code: string,
  message: string,
): false {
  addResult(builder, turn, call, { content: toolError(code, message) });
  return false;
}

/** What an agent reads that hands over or delegates to one that is stopped. */
export function stoppedMessage(slug: string): string {
  return `${slug} is stopped and does nothing until a person resumes it: do it yourself, ask another agent, or tell the person`;
}

/** The intent is durable before the tool runs (L9). */
export function startTool(
  builder: DecisionBuilder,
  turn: Turn,
  call: OpenCall,
  risk: Risk,
  rerun: boolean,
): void {
  const key = builder.add({
    type: 'tool-started',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    call: call.place,
    toolName: call.name,
    risk,
    rerun: rerun || undefined,
  });
  runTool(builder, turn, call, key);
}

/** The intent is durable already; the call did not run. */
export function runStarted(builder: DecisionBuilder, turn: Turn, call: OpenCall): void {
  const started = builder.find((entry) => entry.type === 'tool-started' && samePlace(entry.call, call.place));
  if (started) runTool(builder, turn, call, started.index);
}

function runTool(builder: DecisionBuilder, turn: Turn, call: OpenCall, key: number): void {
  builder.effect({
    type: 'run-tool',
    agent: turn.agent,
    turnId: turn.turnId,
    call: call.place,
    name: call.name,
    arguments: call.arguments,
    ...(call.approval?.status === 'given' ? { isApproved: true } : {}),
    key,
    ...(call.approval?.accepts === undefined ? {} : { accepts: call.approval.accepts }),
  });
}

/** V17: what stands in an agent's view for what did not fit. */
export function addSummary(builder: DecisionBuilder, turn: Turn, reduction: Reduction): number {
  return builder.add(summaryOf(turn, reduction));
}

/** All of it but where and when it stands. */
export function summaryOf(turn: Pick<Turn, 'turnId' | 'agent'>, reduction: Reduction) {
  const { covered, leftOut, shortened, previewLength } = reduction;
  const taken = [...covered, ...leftOut].flat();
  const all = taken.length > 0 ? taken : shortened;
  return {
    type: 'summary' as const,
    author: SYSTEM_AUTHOR,
    turnId: turn.turnId,
    agent: turn.agent,
    entries: pairs(covered),
    leftOut: leftOut.length > 0 ? pairs(leftOut) : undefined,
    shortened: shortened.length > 0 ? [...shortened] : undefined,
    previewLength: shortened.length > 0 && previewLength !== PREVIEW_LENGTH ? previewLength : undefined,
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

/** L15: a limit that was reached is an entry that people see. */
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
