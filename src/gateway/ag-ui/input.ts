import { isDeepStrictEqual } from 'node:util';
import type { Interrupt, ToolMessage, UserMessage } from '@ag-ui/core';
import { z } from 'zod';
import { history } from '../../bus/contract.ts';
import {
  type CallPlace,
  type ClientTool,
  clientToolsSchema,
  dataUrl,
  placeOfCallId,
  type RootedCall,
  type ServerAsks,
  UNKNOWN_TYPE,
  wireCallId,
} from '../../conversation/index.ts';
import { shown, valueAt } from '../../kernel/index.ts';
import { conversationOf } from '../client-ids.ts';
import { isEmpty, parsedBody, refusedField, unusedIn, verdictIn } from '../fields.ts';
import { type SentPart, sentFile } from '../files.ts';

/**
 * Reads a `RunAgentInput`.
 *
 * INPUT-1 The log has the history. User messages after the last other message are posted, with their ids. If there are none,
 *    the last user message is posted again: it is in the log already, and its effects are replayed.
 * INPUT-2 The state of the application is not used. Of `forwardedProps` only `sessionId` is. An application that sends more is notified.
 * INPUT-3 A thread may have any id; it is mapped to a valid conversation id.
 * INPUT-4 Tools of the application are those of the posts. Results after the last answer belong to calls of these tools if the log
 *    says so (`begin.ts`). Context is quoted after the text of a post.
 */

const id = z.string().min(1).max(256);

/** In characters. */
const MOST_THREAD_ID = 1_024;

export const runInputSchema = z.looseObject({
  threadId: z.string().min(1).max(MOST_THREAD_ID),
  runId: id,
  parentRunId: z.string().nullish(),
  messages: history(z.looseObject({ id: z.string(), role: z.string(), content: z.unknown().optional() })),
  resume: z
    .array(
      z.looseObject({
        interruptId: id,
        status: z.enum(['resolved', 'cancelled']),
        payload: z.unknown().optional(),
      }),
    )
    .nullish(),
  protocolVersion: z.unknown().optional(),
  tools: z
    .array(
      z.looseObject({
        name: z.string(),
        description: z.string().nullish(),
        parameters: z.record(z.string(), z.unknown()).nullish(),
      }),
    )
    .nullish(),
  context: z.array(z.looseObject({ description: z.string(), value: z.string() })).nullish(),
  state: z.unknown().optional(),
  forwardedProps: z.unknown().optional(),
});
type Given = z.infer<typeof runInputSchema>;

const KNOWN: ReadonlySet<string> = new Set(Object.keys(runInputSchema.shape));
/** The fields of `STATE_SNAPSHOT`, which applications send back. */
const OWN_STATE: ReadonlySet<string> = new Set(['phase', 'mode', 'activeAgent', 'agents']);
const INSTRUCTIONS = ['system', 'developer'];

export interface RunInput {
  /** The application's id of the thread. */
  readonly threadId: string;
  readonly conversation: string;
  readonly runId: string;
  readonly parentRunId: string | undefined;
  readonly posts: readonly SentPost[];
  /** INPUT-1: posted if there is nothing else. */
  readonly again: readonly SentPost[];
  /** The tools of the posts. */
  readonly tools: readonly ClientTool[];
  /** Empty: none. */
  readonly context: string;
  /** Results after the last answer. */
  readonly results: readonly SentResult[];
  /** The application's message with the result of each call, by the id of the call. */
  readonly resultIds: ReadonlyMap<string, string>;
  readonly resume: readonly Resume[];
  /** The session of the posts; checked as that of any post. */
  readonly sessionId: unknown;
  /** Ids of the messages that the application has. */
  readonly known: readonly string[];
  /** INPUT-2: fields that were sent and are not used. */
  readonly unused: readonly string[];
}

export interface SentPost {
  readonly id: string;
  readonly parts: readonly SentPart[];
  /** As the application sent it. */
  readonly given: UserMessage['content'];
}

export interface SentResult {
  /** Null: the id of its call is none of ours. */
  readonly call: CallPlace | null;
  /** The field with that id. */
  readonly where: string;
  /** As the application sent it. */
  readonly given: ToolMessage;
  readonly parts: readonly SentPart[];
  readonly isError: boolean;
}

export interface Resume {
  readonly interruptId: string;
  readonly status: 'resolved' | 'cancelled';
  readonly payload?: unknown;
}

export function readRunInput(body: unknown): RunInput {
  const given = parsedBody(runInputSchema, body);
  const { threadId, runId, parentRunId, messages, resume, forwardedProps } = given;
  const isConversational = ({ role }: { role: string }) =>
    role !== 'system' && role !== 'developer' && role !== 'activity';
  const conversational = messages.filter(isConversational);
  const posts = conversational
    .slice(conversational.findLastIndex(({ role }) => role !== 'user') + 1)
    .map(postOf);
  const last = conversational.filter(({ role }) => role === 'user').slice(-1);
  checkIds(posts);
  const results = messages.filter(({ role }) => role === 'tool');
  const answered = messages.findLastIndex(({ role }) => role === 'assistant');
  return {
    threadId,
    conversation: conversationOf(threadId),
    runId,
    parentRunId: parentRunId ?? undefined,
    posts,
    again: posts.length > 0 || resume?.length ? [] : last.map(postOf),
    tools: toolsOf(given),
    context: (given.context ?? []).map(({ description, value }) => `${description}: ${value}`).join('\n'),
    results: messages.flatMap((message, at) => (at > answered ? resultOf(message, at) : [])),
    resultIds: new Map(results.map((message) => [String(message.toolCallId), message.id])),
    resume: resume ?? [],
    sessionId: valueAt(forwardedProps, ['sessionId']) ?? undefined,
    known: conversational.map((message) => message.id),
    unused: unusedOf(given),
  };
}

type GivenMessage = Given['messages'][number];

function postOf({ id: name, content }: GivenMessage): SentPost {
  const given = content as UserMessage['content']; // checked by `partsOf`
  return { id: name, parts: partsOf(content, `message ${name}`), given };
}

function resultOf(given: GivenMessage, at: number): SentResult[] {
  const { id: name, role, toolCallId, content, error } = given;
  if (role !== 'tool') return [];
  const isError = typeof error === 'string' && error !== '';
  const parts = partsOf(isError && isEmpty(content) ? error : (content ?? ''), `message ${name}`);
  const call = placeOfCallId(String(toolCallId));
  return [{ call, where: `messages.${at}.toolCallId`, given: given as ToolMessage, parts, isError }];
}

function toolsOf({ tools }: Given): readonly ClientTool[] {
  const given = (tools ?? []).map(({ name, description, parameters }) => ({
    name,
    ...(description && { description }),
    ...(parameters && !isEmpty(parameters) && { parameters }),
  }));
  return parsedBody(z.object({ tools: clientToolsSchema }), { tools: given }).tools;
}

/** The same id names the same message. */
function checkIds(posts: RunInput['posts']): void {
  const contents = new Map<string, unknown>();
  for (const { id: name, given } of posts) {
    if (contents.has(name) && !isDeepStrictEqual(contents.get(name), given))
      throw refusedField('messages', `two different messages have the id ${shown(name)}`);
    contents.set(name, given);
  }
}

const MEDIA: Readonly<Record<string, 'image' | 'audio' | undefined>> = {
  image: 'image',
  audio: 'audio',
  video: undefined,
  document: undefined,
};
const sourceShape = z.looseObject({ type: z.string(), value: z.string(), mimeType: z.string().optional() });

/** The content of a user message: a text, or parts of the protocol. */
function partsOf(content: unknown, where: string): SentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) throw refusedField(where, 'expected a text, or a list of parts');
  return content.map((part, at) => partOf(part, `${where}, part ${at}`));
}

function partOf(part: unknown, where: string): SentPart {
  const type = valueAt(part, ['type']);
  const text = valueAt(part, ['text']);
  if (type === 'text' && typeof text === 'string') return { type, text };
  if (typeof type !== 'string' || !Object.hasOwn(MEDIA, type))
    throw refusedField(where, 'expected a part of the type text, image, audio, video or document');
  const source = sourceShape.safeParse(valueAt(part, ['source']));
  if (!source.success) throw refusedField(where, 'expected source: { type, value, mimeType }');
  const { type: kind, value, mimeType = UNKNOWN_TYPE } = source.data;
  const name = valueAt(part, ['metadata', 'filename']);
  const as = { where, expects: MEDIA[type], ...(typeof name === 'string' && name !== '' && { name }) };
  if (kind === 'data') return sentFile(dataUrl(mimeType, value), as);
  if (kind === 'url') return sentFile(value, as);
  throw refusedField(where, `a source of the type ${shown(kind)} is not taken: send data, or a url`);
}

/** INPUT-2 */
function unusedOf(given: Given): string[] {
  const { messages, state, forwardedProps } = given;
  const keysOf = (value: unknown) => (typeof value === 'object' && value !== null ? Object.keys(value) : []);
  const roles = INSTRUCTIONS.filter((role) => messages.some((message) => message.role === role));
  return [
    ...unusedIn(given, KNOWN),
    ...(isEmpty(forwardedProps) || keysOf(forwardedProps).join() === 'sessionId' ? [] : ['forwardedProps']),
    ...keysOf(state).flatMap((key) => (OWN_STATE.has(key) ? [] : [`state.${key}`])),
    ...roles.map((role) => `messages of the role ${role}`),
  ];
}

/**
 * Questions and approvals as interrupts, and their answers.
 *
 * INTERRUPTS-1 The id encodes the call, the approval and the post that caused it: no state is kept between two runs, and the
 *    next run continues the same turn.
 */
export function interruptOf(call: RootedCall): Interrupt {
  const { place, agent, tool, approval, question, root } = call;
  const toolCallId = wireCallId(place);
  const behind = root === null ? '' : `@${root}`;
  if (approval === null) {
    return {
      id: `${toolCallId}${behind}`,
      reason: 'input_required',
      message: question,
      toolCallId,
      responseSchema: { type: 'string' },
      metadata: { agent },
    };
  }
  return {
    id: `${toolCallId}.${approval.id}${behind}`,
    reason: 'tool_call',
    message: question,
    toolCallId,
    responseSchema: approval.mayHaveRun ? OUTCOME_SCHEMA : approvalSchema(approval.asks),
    metadata: { agent, tool, arguments: call.arguments, approvalId: approval.id },
  };
}

const reason = { type: 'string' };
/** With the answer that a server asks for. */
const approvalSchema = (asks?: ServerAsks) => ({
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason, ...(asks && { arguments: asks.schema }) },
  required: ['approved'],
});
const OUTCOME_SCHEMA = {
  type: 'object',
  properties: { answer: { enum: ['rerun', 'failed', 'result'] }, reason, result: {} },
  required: ['answer'],
};

export interface Addressed {
  readonly index: number;
  readonly position: number;
  /** Null: a question. */
  readonly approvalId: string | null;
  /** The post that caused it. */
  readonly root: number | null;
}

export function addressedBy({ interruptId }: Resume): Addressed {
  const [whole, index, position, approvalId, root] =
    /^c(\d{1,15})_(\d{1,6})(?:\.([^\s@]+))?(?:@(\d{1,15}))?$/.exec(interruptId) ?? [];
  if (!whole) throw refusedField('resume', `${JSON.stringify(interruptId)} is no interrupt of this agent`);
  return {
    index: Number(index),
    position: Number(position),
    approvalId: approvalId ?? null,
    root: root === undefined ? null : Number(root),
  };
}

/** The text of the answer to a question. */
export function replyOf({ status, payload }: Resume): string {
  if (status === 'cancelled') return '[no answer]';
  if (typeof payload === 'string') return payload;
  const { answer, value } = asRecord(payload);
  const words = answer ?? value;
  return typeof words === 'string' ? words : JSON.stringify(payload ?? null);
}

/** The fields of the verb `answer`. A cancelled approval is denied. */
export function verdictOf({ status, payload }: Resume): Record<string, unknown> {
  if (status === 'cancelled') return { answer: 'deny', reason: 'cancelled without a decision' };
  if (typeof payload === 'boolean') return { answer: payload ? 'approve' : 'deny' };
  const verdict = verdictIn(asRecord(payload));
  if (verdict) return verdict;
  throw refusedField('resume', 'expected {"approved": true} or {"approved": false}');
}

function asRecord(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
}
