import { z } from 'zod';
import {
  type LiveChunk,
  reportedCallSchema,
  reportedUsageSchema,
  sentPromptSchema,
  type ViewMessage,
} from '../conversation/index.ts';
import { fieldFault, isRecord, type JsonRecord, parseJson } from '../kernel/index.ts';
import { partOf, postedParts, sessionShape } from './post.ts';

/**
 * Messages about a turn that is offered to an agent in another process. The daemon and the client library use them.
 *
 * REMOTE-TURNS-1 An agent may leave out `turnId` and `epoch`: every offer has its own `reply` subject. Where present, they must
 *    match.
 * REMOTE-TURNS-2 Unknown fields and types of message are ignored: an agent may be newer than the daemon.
 */

export interface OfferedTool {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description: string;
    /** JSON Schema of the arguments. */
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}

/** What the daemon requests, before the subjects are known. */
export interface OfferBody {
  readonly conversation: string;
  readonly turnId: string;
  /** Grows from offer to offer of the same turn, over restarts of the daemon too. */
  readonly epoch: number;
  /** The built request, in the chat-completions form. */
  readonly messages: readonly { readonly role: string; readonly content: string | null }[];
  readonly tools: readonly OfferedTool[];
  readonly heartbeatMs: number;
  /** The agent's own session in this conversation, if one is known. */
  readonly sessionId?: string;
  /** With `sessionId`: places in `messages` that this session has not been told. */
  readonly missed?: readonly number[];
}

interface OfferSubjects {
  /** The agent publishes chunks here; the daemon passes them on to followers. */
  readonly live: string;
  /** The agent publishes to the daemon here. */
  readonly reply: string;
  /** The daemon ends the turn here: `{type:"abort",turnId,epoch}`. */
  readonly control: string;
}

export type TurnOffer = Omit<OfferBody, 'messages'> &
  OfferSubjects & { readonly messages: readonly ViewMessage[] };

/** The result of one call, as the model would read it. */
export interface ToolResult {
  readonly id?: string;
  readonly content: string;
}

/** The answer to a tool_call. */
export interface ToolResults {
  readonly results: readonly ToolResult[];
  /** New messages of the conversation, which the agent is shown with these results. */
  readonly messages?: readonly { readonly role: string; readonly content: string | null }[];
}

const text = z.string();
const loose = { turnId: text.optional(), epoch: z.number().optional() };
/** Invalid usage is dropped: a lost answer would cost the turn. */
const usage = reportedUsageSchema.optional().catch(undefined);
const callSchema = z.object({
  id: text.optional(),
  name: text.min(1),
  /** An object, or its JSON text as a model wrote it. */
  arguments: z
    .union([text, z.record(text, z.unknown())])
    .default('{}')
    .transform((given) => (typeof given === 'string' ? given : JSON.stringify(given))),
});

/** Calls that the agent made by itself. */
const reportedCalls = z.array(reportedCallSchema).max(256).optional();

const agentMessageSchema = z.discriminatedUnion('type', [
  z.object({ ...loose, type: z.literal('heartbeat') }),
  z.object({
    ...loose,
    type: z.literal('tool_call'),
    /** The id of this message. A repeated id is the same call. */
    id: text.optional(),
    calls: z.array(callSchema).min(1),
    content: text.nullish(),
    /** These three as of a final: a turn that a tool ends has none. */
    sessionId: sessionShape.optional(),
    reported: reportedCalls,
    prompt: sentPromptSchema.optional(),
    usage,
  }),
  z.object({
    ...loose,
    type: z.literal('final'),
    content: text.nullish(),
    /** As of a post. The texts count where there is no `content`. */
    parts: postedParts.transform((parts) => parts.map(partOf)).optional(),
    reasoning: text.optional(),
    sessionId: sessionShape.optional(),
    reported: reportedCalls,
    prompt: sentPromptSchema.optional(),
    model: text.optional(),
    /** Why the agent's model ended the answer: a record, like usage. */
    finishReason: text.optional().catch(undefined),
    usage,
  }),
  z.object({
    ...loose,
    type: z.literal('failed'),
    code: text.default('AGENT_FAILED'),
    message: text.default(''),
    sessionId: sessionShape.optional().catch(undefined),
    reported: reportedCalls.catch(undefined),
    prompt: sentPromptSchema.optional().catch(undefined),
  }),
]);
export type AgentMessage = z.infer<typeof agentMessageSchema>;

export type DecodedAgentMessage =
  | { readonly kind: 'message'; readonly message: AgentMessage }
  /** A message of another turn or an older offer, or of an unknown type, is a sign of life at most. */
  | { readonly kind: 'stale' | 'unknown' }
  | { readonly kind: 'invalid'; readonly reason: string };

const TYPES: ReadonlySet<unknown> = new Set(['heartbeat', 'tool_call', 'final', 'failed']);

export function decodeAgentMessage(
  data: Uint8Array,
  offer: { readonly turnId: string; readonly epoch: number },
): DecodedAgentMessage {
  const value = parseObject(data);
  if (!value) return { kind: 'invalid', reason: 'it is not a JSON object' };
  if (value.turnId !== undefined && value.turnId !== offer.turnId) return { kind: 'stale' };
  if (value.epoch !== undefined && value.epoch !== offer.epoch) return { kind: 'stale' };
  if (!TYPES.has(value.type)) return { kind: 'unknown' };
  const parsed = agentMessageSchema.safeParse(value);
  return parsed.success
    ? { kind: 'message', message: parsed.data }
    : { kind: 'invalid', reason: reasonOf(parsed.error, value) };
}

const offerSchema = z.looseObject({
  conversation: text,
  turnId: text,
  epoch: z.number(),
  messages: z.array(z.looseObject({ role: text, content: text.nullable() })),
  tools: z.array(z.unknown()),
  live: text,
  reply: text,
  control: text,
  heartbeatMs: z.number().positive(),
  sessionId: text.optional(),
  missed: z.array(z.int().nonnegative()).optional(),
});

export function decodeOffer(
  data: Uint8Array,
): { ok: true; offer: TurnOffer } | { ok: false; reason: string } {
  const value = parseObject(data);
  const parsed = offerSchema.safeParse(value);
  if (!parsed.success) return { ok: false, reason: reasonOf(parsed.error, value) };
  // The schema checks what the client uses; the other fields are as the daemon sent them.
  return { ok: true, offer: parsed.data as unknown as TurnOffer };
}

/** An agent's answer to an offer: the instance that took it, or why it did not. Null: not understood. */
export function decodeAcceptance(
  data: Uint8Array,
): { accepted: boolean; instance: string; reason: string } | null {
  const value = parseObject(data);
  if (typeof value?.accepted !== 'boolean') return null;
  const { accepted, instance, reason } = value;
  return {
    accepted,
    instance: typeof instance === 'string' ? instance : '',
    reason: typeof reason === 'string' ? reason : '',
  };
}

export function isAbort(
  data: Uint8Array,
  offer: { readonly turnId: string; readonly epoch: number },
): boolean {
  const value = parseObject(data);
  return value?.type === 'abort' && value.turnId === offer.turnId && value.epoch === offer.epoch;
}

export function decodeResults(data: Uint8Array): ToolResults | null {
  const schema = z.object({
    results: z.array(z.object({ id: text.optional(), content: text })),
    messages: z.array(z.looseObject({ role: text, content: text.nullable() })).optional(),
  });
  return schema.safeParse(parseObject(data)).data ?? null;
}

function parseObject(data: Uint8Array): JsonRecord | null {
  const value = parseJson(new TextDecoder().decode(data));
  return isRecord(value) ? value : null;
}

function reasonOf(error: z.ZodError, value: unknown): string {
  const [issue] = error.issues;
  return issue ? fieldFault(issue, value) : 'not understood';
}

/** One chunk of live text, as an agent publishes it. */
export const agentChunkShape = z.object({
  turnId: z.string(),
  call: z.string(),
  n: z.number(),
  type: z.enum(['text', 'reasoning', 'tool_call_delta']),
  delta: z.string(),
  toolCallId: z.string().optional(),
  toolName: z.string().optional(),
});

/**
 * A chunk of an agent in another process, without unknown fields. Null: of another turn; `unknown`: not a chunk as this
 * version knows it, and a sign of life.
 */
export function decodeChunk(data: Uint8Array, turnId: string): LiveChunk | 'unknown' | null {
  const value = parseObject(data);
  if (value?.turnId !== turnId) return null;
  return (agentChunkShape.safeParse(value).data as LiveChunk | undefined) ?? 'unknown';
}
