import { z } from 'zod';

/**
 * The entries of a conversation's log: what CONTRACT.md calls "Entries".
 *
 * An entry is one JSON object. `index` is its dense place in the log; `type` says what else it holds.
 * Unknown fields are kept (a newer minor version or an import may have written them).
 */

/** Conversation ids and publisher names. */
export const NAME_PATTERN = /^[A-Za-z0-9_-]{1,128}$/;
/** Agent slugs. */
export const SLUG_PATTERN = /^[a-z0-9][a-z0-9-]{0,63}$/;

export const authorSchema = z.object({
  kind: z.enum(['person', 'agent', 'system']),
  /** A person: `<publisher>` or `<publisher>/<name>`. An agent: its slug. The system: `parley`. */
  id: z.string(),
  name: z.string(),
});
export type Author = z.infer<typeof authorSchema>;

/** The daemon itself, author of what nobody said. */
export const SYSTEM_AUTHOR: Author = { kind: 'system', id: 'parley', name: 'Parley' };

export const deliverySchema = z.enum(['steer', 'queue', 'interrupt']);
export type Delivery = z.infer<typeof deliverySchema>;

export const modeSchema = z.enum(['chat', 'agent', 'run']);
export type Mode = z.infer<typeof modeSchema>;

/** A tool call is known by its place: the index of its assistant entry and its position in it (L10). */
export const callPlaceSchema = z.object({ index: z.int().nonnegative(), position: z.int().nonnegative() });
export type CallPlace = z.infer<typeof callPlaceSchema>;

export const toolCallSchema = z.object({
  /** The provider's id; providers repeat them, so nothing relies on it (L10). */
  id: z.string(),
  type: z.literal('function'),
  /** `arguments` is the JSON text as the model wrote it. */
  function: z.object({ name: z.string(), arguments: z.string() }),
});
export type ToolCall = z.infer<typeof toolCallSchema>;

/** A safe tool may be run twice; a risky one may not without a person's word. */
export const riskSchema = z.enum(['safe', 'risky']);
export type Risk = z.infer<typeof riskSchema>;

/** Tokens of one model call, as the provider reported them. */
export const usageSchema = z.object({
  inputTokens: z.number(),
  cachedInputTokens: z.number().optional(),
  outputTokens: z.number(),
  /** What it cost, where prices are configured. */
  usd: z.number().optional(),
});
export type Usage = z.infer<typeof usageSchema>;

const indexList = z.array(z.int().nonnegative());
const indexRanges = z.array(z.tuple([z.int().nonnegative(), z.int().nonnegative()]));

const base = {
  index: z.int().nonnegative(),
  id: z.string().min(1),
  /** ISO 8601, UTC, milliseconds. For people: order comes from `index` alone. */
  createdAt: z.string(),
  author: authorSchema,
  turnId: z.string().optional(),
  mode: modeSchema.optional(),
  phase: z.string().optional(),
  runId: z.string().optional(),
  workflowId: z.string().optional(),
  agentId: z.string().optional(),
  sessionId: z.string().optional(),
  includeInContext: z.boolean().optional(),
  isCollapsed: z.boolean().optional(),
  /** The sequence in the ingress stream of the post that this entry came from. */
  ingressSequence: z.int().positive().optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
};

const fields = {
  message: {
    ...base,
    type: z.literal('message'),
    role: z.enum(['user', 'assistant', 'system', 'tool']),
    content: z.string().nullable(),
    tool_calls: z.array(toolCallSchema).optional(),
    /** By position: the risk of each call as judged when it was requested; null where nothing is to be run (L11). */
    risks: z.array(riskSchema.nullable()).optional(),
    tool_call_id: z.string().optional(),
    reasoning: z.string().optional(),
    /** The agents that routing resolved; absent on what was routed to nobody. */
    to: z.array(z.string()).optional(),
    replyTo: z.string().optional(),
    delivery: deliverySchema.optional(),
    partType: z.string().optional(),
    toolName: z.string().optional(),
    /** Milliseconds that the model call or the tool took. */
    duration: z.number().optional(),
    widget: z.record(z.string(), z.unknown()).optional(),
    fullOutputPath: z.string().optional(),
    usage: usageSchema.optional(),
    model: z.string().optional(),
    /** SHA-256 (hex) of the request body that this entry answers. */
    requestHash: z.string().optional(),
    /** The log's length at which that request was built. */
    upTo: z.int().nonnegative().optional(),
    /** Tokens that the request was estimated at: beside `usage` it says how far the estimate is off. */
    estimatedTokens: z.int().nonnegative().optional(),
    /** On a tool message: the call it answers. The first result of a call counts (V7). */
    call: callPlaceSchema.optional(),
    /** On a tool message: the entries it stands for (V4, V7). */
    answers: indexList.optional(),
  },
  'phase-entered': {
    ...base,
    type: z.literal('phase-entered'),
    from: z.string(),
    to: z.string(),
    by: z.string(),
    reason: z.string().optional(),
    forced: z.boolean().optional(),
  },
  'mode-entered': {
    ...base,
    type: z.literal('mode-entered'),
    from: modeSchema,
    to: modeSchema,
    by: z.string(),
    activeAgent: z.string().nullable().optional(),
  },
  handoff: {
    ...base,
    type: z.literal('handoff'),
    from: z.string(),
    to: z.string(),
    summary: z.string(),
    call: callPlaceSchema.optional(),
    /** Agent hops from the person's message that began this chain (L15). */
    hops: z.int().nonnegative().optional(),
  },
  'delegation-requested': {
    ...base,
    type: z.literal('delegation-requested'),
    from: z.string(),
    to: z.string(),
    request: z.string(),
    call: callPlaceSchema,
    hops: z.int().nonnegative().optional(),
  },
  'delegation-answered': {
    ...base,
    type: z.literal('delegation-answered'),
    from: z.string(),
    to: z.string(),
    answers: indexList,
    late: z.boolean(),
    call: callPlaceSchema.optional(),
  },
  'turn-started': {
    ...base,
    type: z.literal('turn-started'),
    turnId: z.string(),
    agent: z.string(),
    trigger: indexList,
    /** Hash of the request of this turn's next model call, and the log's length it was built at (L6). */
    requestHash: z.string().optional(),
    upTo: z.int().nonnegative().optional(),
    /** Set when the turn goes on after a crash or a wait. */
    resumed: z.boolean().optional(),
    /** Agent hops from the person's message that began this chain (L15). */
    hops: z.int().nonnegative().optional(),
  },
  'message-delivered': {
    ...base,
    type: z.literal('message-delivered'),
    turnId: z.string(),
    agent: z.string(),
    entries: indexList,
  },
  'turn-ended': {
    ...base,
    type: z.literal('turn-ended'),
    turnId: z.string(),
    agent: z.string(),
    outcome: z.enum(['completed', 'failed', 'aborted', 'waiting', 'limited']),
    lastProcessedMessageIndex: z.int().nonnegative(),
  },
  'tool-started': {
    ...base,
    type: z.literal('tool-started'),
    call: callPlaceSchema,
    toolName: z.string().optional(),
    /** As judged when it was requested, or stricter (L11). */
    risk: riskSchema.optional(),
    /** It is run once more after a crash. */
    rerun: z.boolean().optional(),
  },
  'approval-requested': {
    ...base,
    type: z.literal('approval-requested'),
    approvalId: z.string(),
    call: callPlaceSchema,
    /** Who wants to call what. */
    agent: z.string().optional(),
    tool: z.string().optional(),
    arguments: z.string().optional(),
    argumentsHash: z.string().optional(),
    risk: z.string(),
    why: z.string().optional(),
    mayHaveRun: z.boolean(),
  },
  'approval-answered': {
    ...base,
    type: z.literal('approval-answered'),
    approvalId: z.string(),
    call: callPlaceSchema.optional(),
    /** What the person said; `expired` if nobody did in time. */
    answer: z.string(),
    reason: z.string().optional(),
  },
  summary: {
    ...base,
    type: z.literal('summary'),
    agent: z.string(),
    /** Ranges, both ends included, that this entry stands for in the agent's view (V17). */
    entries: indexRanges,
    /** Ranges that do not fit and that the agent was never shown: it can read them back, and never will be shown them. */
    leftOut: indexRanges.optional(),
    /** Own results, each shown as a preview from here on. */
    shortened: indexList.optional(),
    /** What such a preview shows, in code points; absent: 500. */
    previewLength: z.int().nonnegative().optional(),
    fromIndex: z.int().nonnegative(),
    toIndex: z.int().nonnegative(),
    content: z.string(),
    /** Who wrote it: a model, or the extract that needs none. */
    writtenBy: z.enum(['model', 'extract']).optional(),
    /** Estimated tokens of the request before. */
    tokensBefore: z.int().nonnegative().optional(),
    /** Set where a provider refused the request as too long: what its tokens are to the estimate, at least. */
    tokenRatio: z.number().optional(),
    usage: usageSchema.optional(),
    model: z.string().optional(),
    /** SHA-256 (hex) of the request that follows. */
    requestHash: z.string().optional(),
  },
  'run-started': { ...base, type: z.literal('run-started'), runId: z.string(), workflowId: z.string() },
  'node-entered': {
    ...base,
    type: z.literal('node-entered'),
    runId: z.string(),
    node: z.string(),
    brief: z.string().optional(),
    /** The node's agent: entering wakes it (L14). */
    to: z.array(z.string()).optional(),
    /** What the node before left behind. */
    outcome: z.string().optional(),
    summary: z.string().optional(),
    hops: z.int().nonnegative().optional(),
  },
  'run-ended': {
    ...base,
    type: z.literal('run-ended'),
    runId: z.string(),
    outcome: z.string(),
    summary: z.string().optional(),
  },
  'agent-stopped': {
    ...base,
    type: z.literal('agent-stopped'),
    agent: z.string().nullable(),
    by: z.string(),
  },
  'agent-resumed': {
    ...base,
    type: z.literal('agent-resumed'),
    agent: z.string().nullable(),
    by: z.string(),
  },
  'title-set': { ...base, type: z.literal('title-set'), title: z.string() },
  'session-set': { ...base, type: z.literal('session-set'), agent: z.string(), sessionId: z.string() },
  'limit-reached': {
    ...base,
    type: z.literal('limit-reached'),
    limit: z.string(),
    agent: z.string().optional(),
    content: z.string(),
  },
  claim: {
    ...base,
    type: z.literal('claim'),
    /** The daemon that works on this conversation from here on. */
    daemon: z.string(),
    /** Counts the claims of this conversation. */
    epoch: z.int().positive(),
    /** How often what is under way was taken up without getting anywhere, this time included. */
    attempt: z.int().positive().optional(),
    /** The life of the ingress stream whose sequences the entries from here on name. */
    ingress: z.string().optional(),
  },
  note: {
    ...base,
    type: z.literal('note'),
    content: z.string(),
    /** Of a result that came late: its call, its tool, and where the whole of a large one is. */
    call: callPlaceSchema.optional(),
    toolName: z.string().optional(),
    fullOutputPath: z.string().optional(),
  },
} as const;

/** One strict-typed, loosely-parsed schema per entry type: unknown fields survive a round trip. */
export const entrySchema = z.discriminatedUnion('type', [
  z.looseObject(fields.message),
  z.looseObject(fields['phase-entered']),
  z.looseObject(fields['mode-entered']),
  z.looseObject(fields.handoff),
  z.looseObject(fields['delegation-requested']),
  z.looseObject(fields['delegation-answered']),
  z.looseObject(fields['turn-started']),
  z.looseObject(fields['message-delivered']),
  z.looseObject(fields['turn-ended']),
  z.looseObject(fields['tool-started']),
  z.looseObject(fields['approval-requested']),
  z.looseObject(fields['approval-answered']),
  z.looseObject(fields.summary),
  z.looseObject(fields['run-started']),
  z.looseObject(fields['node-entered']),
  z.looseObject(fields['run-ended']),
  z.looseObject(fields['agent-stopped']),
  z.looseObject(fields['agent-resumed']),
  z.looseObject(fields['title-set']),
  z.looseObject(fields['session-set']),
  z.looseObject(fields['limit-reached']),
  z.looseObject(fields.claim),
  z.looseObject(fields.note),
]);

type Fields = typeof fields;
export type EntryType = keyof Fields;
/** The entry of one type: `EntryOf<'turn-started'>`. */
export type EntryOf<T extends EntryType> = z.infer<z.ZodObject<Fields[T]>>;
export type Entry = { [T in EntryType]: EntryOf<T> }[EntryType];
export type MessageEntry = EntryOf<'message'>;
export type TurnOutcome = EntryOf<'turn-ended'>['outcome'];

/** An entry before it has its place: what `decide` drafts and the log numbers. */
export type Draft = {
  [T in EntryType]: Omit<EntryOf<T>, 'index' | 'id' | 'createdAt'> & { id?: string };
}[EntryType];
