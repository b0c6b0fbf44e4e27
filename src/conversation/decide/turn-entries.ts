import { canonicalArguments, hasVisible, readArguments } from '../../kernel/index.ts';
import {
  type Author,
  type Entry,
  type EntryOf,
  type ReportedCall,
  type Risk,
  type SentPrompt,
  SYSTEM_AUTHOR,
  type ToolCall,
  type TurnOutcome,
  wireCallId,
} from '../log/entry.ts';
import { type Cut, cutBy } from '../log/finish-reason.ts';
import { failedAnswer, type ModelFailure } from '../log/model-failure.ts';
import { type FilePart, filesOf, type Part, partsOf, shownName } from '../log/parts.ts';
import type { Ranges } from '../log/ranges.ts';
import { policyAgentOf } from '../state/roster.ts';
import { agentState, type OpenCall, samePlace, type Turn } from '../state/state.ts';
import { PREVIEW_LENGTH, titleFrom } from '../text/text.ts';
import { AWAITED_TOOLS, toolError } from '../tools/conversation-tools.ts';
import type { Answer, AnswerSoFar, CallReport, FailedAttempt, Reduction } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { withNotice } from './repeated-calls.ts';
import { closeQuestion } from './server-questions.ts';

/** One function for each entry that a turn writes. */

interface AnswerFields {
  readonly content: string | null;
  readonly parts?: Part[] | undefined;
  readonly partType: 'text' | 'error';
  readonly tool_calls?: ToolCall[];
  readonly risks?: (Risk | null)[];
  readonly callerCalls?: number[] | undefined;
  readonly reasoning?: string;
  readonly blocks?: Answer['blocks'];
  readonly usage?: Answer['usage'];
  readonly model?: string;
  readonly finishReason?: string;
  readonly sessionId?: string;
  readonly reported?: ReportedCall[] | undefined;
  readonly prompt?: SentPrompt | undefined;
  readonly value?: unknown;
  readonly invalid?: string | undefined;
  /** Set if a file with this id in its name was written before. */
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

export interface ResultFields {
  readonly content: string;
  readonly duration?: number;
  /** Set if a file with this id in its name was written before. */
  readonly id?: string;
  /** The file with the full text of a large result. */
  readonly fullOutputPath?: string;
  /** The entries that this result replaces in the view (V4). */
  readonly answers?: readonly number[];
  readonly files?: readonly FilePart[];
  /** Who brought the tool and answered its call; absent: it was answered here. */
  readonly by?: Author;
}

export function addResult(builder: DecisionBuilder, turn: Turn, call: OpenCall, fields: ResultFields): void {
  closeQuestion(builder, call);
  const content = approversNote(builder, call) + withNotice(builder, turn, call, fields);
  builder.add({
    type: 'message',
    role: 'tool',
    author: fields.by ?? builder.agentAuthor(turn.agent),
    agentId: turn.agent,
    turnId: turn.turnId,
    content,
    parts: partsOf(content, fields.files),
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

/** What an agent reads before the result of a call. */
function approversNote(builder: DecisionBuilder, call: OpenCall): string {
  const { remark } = call;
  const said =
    remark &&
    hasVisible(remark.text) &&
    `[${remark.by} approved this call: ${shown(JSON.stringify(remark.text))}]\n`;
  return changeNote(builder, call) + (said || '');
}

/** Its own arguments are beside it. Empty: nothing was changed. */
function changeNote(builder: DecisionBuilder, { place, changedBy, arguments: changed }: OpenCall): string {
  if (changedBy === undefined) return '';
  const asking = builder.entryAt(place.index);
  const asked = asking?.type === 'message' && asking.tool_calls?.[place.position]?.function.arguments;
  return `${changedArguments(changedBy, canonicalArguments(asked || ''), changed)}\n`;
}

/** Characters of a changed argument in the sentence. */
const LONGEST_SHOWN = 2_000;

/** Which arguments a person changed, in canonical form. */
function changedArguments(by: string, asked: string, changed: string): string {
  const [before, after] = [fieldsOf(asked), fieldsOf(changed)];
  const names = [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => before.get(name) !== after.get(name),
  );
  const words = names.map((name) => `${name}: ${shown(after.get(name))}`);
  return `[${by} changed the arguments of this call before it ran. ${words.join('; ')}]`;
}

function fieldsOf(text: string): ReadonlyMap<string, string> {
  const read = readArguments(text);
  return new Map(
    Object.entries(read.ok ? read.value : {}).map(([name, value]) => [name, JSON.stringify(value)]),
  );
}

function shown(value: string | undefined): string {
  if (value === undefined) return 'left out';
  return value.length <= LONGEST_SHOWN
    ? value
    : `${value.slice(0, LONGEST_SHOWN)}… (${value.length} characters)`;
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

/** An error result in the form that a model reads. Returns false: the turn is not over. */
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

/** What an agent reads when it hands over or delegates to a stopped agent. */
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

/** For a call that did not run though its `tool-started` is durable. */
export function runStarted(builder: DecisionBuilder, turn: Turn, call: OpenCall): void {
  const started = builder.find((entry) => entry.type === 'tool-started' && samePlace(entry.call, call.place));
  if (started) runTool(builder, turn, call, started.index);
}

function runTool(builder: DecisionBuilder, turn: Turn, call: OpenCall, key: number): void {
  const policyAgent = policyAgentOf(builder.roster, turn.agent);
  builder.effect({
    type: 'run-tool',
    agent: turn.agent,
    turnId: turn.turnId,
    call: call.place,
    name: call.name,
    arguments: call.arguments,
    ...(policyAgent === turn.agent ? {} : { policyAgent }),
    ...(call.approval?.status === 'given' ? { isApproved: true } : {}),
    key,
    ...(call.approval?.accepts === undefined ? {} : { accepts: call.approval.accepts }),
  });
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

/** The result of a call without one: an outcome that is not known is reported as unknown (L12). */
export function unfinished(call: OpenCall, outcome: TurnOutcome): string {
  if (AWAITED_TOOLS.has(call.name) || call.atCaller) return `[no answer: the turn was ${outcome}]`;
  // It had started before, even if it waits for an approval or its position now.
  return call.starts > 0
    ? `[the turn was ${outcome} while ${call.name} ran: whether it took effect is unknown]`
    : `[not run: the turn was ${outcome}]`;
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
