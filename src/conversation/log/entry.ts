import { z } from 'zod';
import { clientToolSchema, toolChoiceSchema } from './client-tools.ts';
import { FEEDBACK, MODES } from './names.ts';

/**
 * The entries of a conversation's log (docs/spec/entries.md).
 *
 * An entry is one JSON object. `index` is its dense position in the log; `type` determines its other fields.
 * Unknown fields are kept: a newer minor version or an import may have written them. One file, since the types are one union.
 */

export { placeOfCallId, wireCallId } from './call-id.ts';
export * from './names.ts';

/** The parts of entries: author, delivery, mode, tool call, risk, usage; and the fields that every entry has. */

export const authorSchema = z.object({
  kind: z.enum(['person', 'agent', 'system']),
  /** A person: `<publisher>` or `<publisher>/<name>`. An agent: its slug. The system: `parley`. */
  id: z.string(),
  name: z.string(),
});
export type Author = z.infer<typeof authorSchema>;

/** The daemon itself: author of entries that neither a person nor an agent wrote. */
export const SYSTEM_AUTHOR: Author = { kind: 'system', id: 'parley', name: 'Parley' };

export const deliveryModeSchema = z.enum(['steer', 'queue', 'interrupt']);
export type DeliveryMode = z.infer<typeof deliveryModeSchema>;

export const modeSchema = z.enum(MODES);

/** What the server of a running call asks a person (SERVER-QUESTION-1). */
export const serverAsksSchema = z.object({
  server: z.string(),
  message: z.string(),
  /** JSON Schema of the answer. */
  schema: z.record(z.string(), z.unknown()),
  /** A page that the person opens; absent: only the answer is asked for. */
  url: z.string().optional(),
});
export type ServerAsks = Readonly<z.infer<typeof serverAsksSchema>>;

/** The address of a tool call: the index of its assistant entry and its position in it (L10). */
const callPlaceSchema = z.object({ index: z.int().nonnegative(), position: z.int().nonnegative() });
export type CallPlace = z.infer<typeof callPlaceSchema>;

export const SHA256 = /^[0-9a-f]{64}$/;

export const textPartSchema = z.object({ type: z.literal('text'), text: z.string() });

/** A file of a message. What `parts.ts` does with it needs no schema. */
export const filePartSchema = z.object({
  type: z.literal('file'),
  sha256: z.string().regex(SHA256),
  name: z.string().optional(),
  mediaType: z.string(),
  /** Bytes. */
  size: z.int().nonnegative(),
  /** Pixels of a picture. */
  width: z.int().positive().optional(),
  height: z.int().positive().optional(),
});
export type FilePart = Readonly<z.infer<typeof filePartSchema>>;

export const partSchema = z.discriminatedUnion('type', [textPartSchema, filePartSchema]);
export type Part = Readonly<z.infer<typeof partSchema>>;

export const toolCallSchema = z.object({
  /** The provider's id. Providers repeat ids, so nothing relies on it (L10). */
  id: z.string(),
  type: z.literal('function'),
  /** `arguments` is the JSON text exactly as the model wrote it. */
  function: z.object({ name: z.string(), arguments: z.string() }),
});
export type ToolCall = z.infer<typeof toolCallSchema>;

const opaqueFields = z.record(z.string(), z.unknown());
/** Fields of a message or a call that only the model that wrote them understands. */
export type OpaqueFields = Readonly<z.infer<typeof opaqueFields>>;

const length = z.int().nonnegative();

/** One block of an answer (`blocksOf` in `answer.ts`). Its text is the next `length` UTF-16 units of the entry's `content` or `reasoning`. */
const blockSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), length, opaque: opaqueFields.optional() }),
  z.object({ type: z.literal('reasoning'), length, opaque: opaqueFields.optional() }),
  /** The next of the entry's `tool_calls`. */
  z.object({ type: z.literal('call'), opaque: opaqueFields.optional() }),
  z.object({ type: z.literal('opaque'), opaque: opaqueFields }),
]);
export type Block = Readonly<z.infer<typeof blockSchema>>;

/** What a model wants back with its answer: the order of its blocks, signatures, encrypted reasoning. Verbatim, and to this model only. */
const blocksSchema = z.object({
  /** Dialect and model, the only reader (`WireForm.boundTo`). */
  boundTo: z.string(),
  list: z.array(blockSchema).optional(),
  /** Bytes that were too many to be kept, instead of the list. */
  omittedBytes: z.int().positive().optional(),
});
export type Blocks = z.infer<typeof blocksSchema>;

/** A call that an agent in another process made by itself and reported: nothing here runs or repeats it. */
export const reportedCallSchema = z.object({
  title: z.string(),
  /** As the agent classifies it: `read`, `edit`, `execute` … */
  kind: z.string(),
  status: z.string(),
  /** JSON text. */
  arguments: z.string().optional(),
  /** Text, or the difference of a file. */
  result: z.string().optional(),
});
export type ReportedCall = Readonly<z.infer<typeof reportedCallSchema>>;

/** What the session of a coding agent was told before an answer: a function of the request that the entry answers. */
export const sentPromptSchema = z.object({
  /** It had been told nothing before. */
  isNew: z.boolean(),
  /** It was told only so many of the newest messages of others: they arrived during the turn. */
  news: z.int().positive().optional(),
  /** Kinds of files that its program takes. */
  takes: z.array(z.string()).max(8),
  /** SHA-256 of the JSON of the content blocks. */
  hash: z.string(),
});
export type SentPrompt = Readonly<z.infer<typeof sentPromptSchema>>;

/** A safe tool may run twice; a risky one may not run again without a person's approval. */
const riskSchema = z.enum(['safe', 'risky']);
export type Risk = z.infer<typeof riskSchema>;

/** Tokens of one model call, as the provider reported them. */
const usageSchema = z.object({
  inputTokens: z.number(),
  /** The part of `inputTokens` that the provider read from its cache, and the part that it wrote into it. */
  cachedInputTokens: z.number().optional(),
  cacheWriteTokens: z.number().optional(),
  outputTokens: z.number(),
  /** The part of `outputTokens` that is reasoning. */
  reasoningTokens: z.number().optional(),
  /** Cost, where prices are configured. */
  usd: z.number().optional(),
  /** An agent in another process reported it: it counts against the limits of that agent alone. */
  byAgent: z.literal(true).optional(),
});
export type Usage = z.infer<typeof usageSchema>;

/** What another process may report; its cost comes from the configured price. Entries of older logs can contain any number. */
const tokenCount = z.int().nonnegative();
export const reportedUsageSchema = z.object({
  inputTokens: tokenCount,
  cachedInputTokens: tokenCount.optional(),
  cacheWriteTokens: tokenCount.optional(),
  outputTokens: tokenCount,
  reasoningTokens: tokenCount.optional(),
});

/** Fields of every entry. */
export const commonFields = {
  index: z.int().nonnegative(),
  id: z.string().min(1),
  /** ISO 8601, UTC, milliseconds. For display only: the order of entries is `index`. */
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
  /** Sequence in the ingress stream of the post that became this entry. */
  ingressSequence: z.int().positive().optional(),
  /** The conversation in which a copied entry was made. */
  copiedFrom: z.string().optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
};

/** What a hired agent and the agents that it hires may use together. */
export const hireBudgetSchema = z.strictObject({
  tokens: z.int().positive().optional().describe('input and output tokens together'),
  usd: z.number().positive().optional().describe('US dollars; counts models that have a price'),
});
export type HireBudget = z.infer<typeof hireBudgetSchema>;

/** What a reload changed of one agent. The hashes name its definitions; absent: there was or is no such agent. */
const teamChangeSchema = z.object({
  agent: z.string(),
  change: z.enum(['added', 'changed', 'removed']),
  before: z.string().optional(),
  after: z.string().optional(),
  /** The parts of the definition that differ: `persona`, `tool.read_file`. */
  parts: z.array(z.string()),
});
export type TeamChange = z.infer<typeof teamChangeSchema>;

const indexList = z.array(z.int().nonnegative());
const indexRanges = z.array(z.tuple([z.int().nonnegative(), z.int().nonnegative()]));

/** A model by its name in the configuration, and which of its keys, from 1; absent: it has at most one. */
const modelAndKey = { model: z.string(), key: z.int().positive().optional() };
export type Candidate = Readonly<z.infer<z.ZodObject<typeof modelAndKey>>>;

/** The fields of each type, besides those of every entry. */
const fields = {
  message: {
    role: z.enum(['user', 'assistant', 'system', 'tool']),
    content: z.string().nullable(),
    /** Set if the message has a file (`parts.ts`). */
    parts: z.array(partSchema).optional(),
    tool_calls: z.array(toolCallSchema).optional(),
    /** By position: the risk of each call as judged when it was requested; null for a call that runs no tool (L11). */
    risks: z.array(riskSchema.nullable()).optional(),
    /** Positions of the calls that the author of the turn's trigger answers (`client-tools.ts`). */
    callerCalls: z.array(z.int().nonnegative()).optional(),
    tool_call_id: z.string().optional(),
    reasoning: z.string().optional(),
    /** Absent: one block of reasoning, one of text, then the calls. */
    blocks: blocksSchema.optional(),
    reported: z.array(reportedCallSchema).optional(),
    prompt: sentPromptSchema.optional(),
    /** The agents that routing resolved; absent if there are none. */
    to: z.array(z.string()).optional(),
    replyTo: z.string().optional(),
    /** The JSON Schema of the answer of the turn that it starts (TYPED-1). */
    schema: opaqueFields.optional(),
    /** On the last answer of a turn: the value that it is, checked against the schema. */
    value: z.unknown().optional(),
    /** On an answer that does not match the schema: what is wrong, for the model. The same turn continues (TYPED-2). */
    invalid: z.string().optional(),
    delivery: deliveryModeSchema.optional(),
    /** The workflow of a run that the post started, in the same append. */
    workflow: z.string().optional(),
    /** The tools that a post brings (`client-tools.ts`). */
    tools: z.array(clientToolSchema).optional(),
    toolChoice: toolChoiceSchema.optional(),
    parallelToolCalls: z.literal(false).optional(),
    /** The sender of a post with a `sessionId` may set the sessions of the agents that it wakes. Absent: the id has no effect. */
    setsSession: z.literal(true).optional(),
    /** The span of the publisher that caused the post (W3C Trace Context). */
    traceparent: z.string().max(55).optional(),
    partType: z.string().optional(),
    toolName: z.string().optional(),
    /** Milliseconds that the model call or the tool took, without those in which its server waited for a person. */
    duration: z.number().optional(),
    widget: z.record(z.string(), z.unknown()).optional(),
    fullOutputPath: z.string().optional(),
    usage: usageSchema.optional(),
    model: z.string().optional(),
    /** Why the model ended this answer (`finish-reason.ts`); absent if the provider gave no reason. */
    finishReason: z.string().optional(),
    /** SHA-256 (hex) of the request body that this entry answers. */
    requestHash: z.string().optional(),
    /** Index of the entry that requested the model call. */
    upTo: z.int().nonnegative().optional(),
    /** Estimated tokens of that request; with `usage` it gives the error of the estimate. */
    estimatedTokens: z.int().nonnegative().optional(),
    /** On a tool message: the call it answers. The first result of a call counts (V7). */
    call: callPlaceSchema.optional(),
    /** On a tool message: the entries that it replaces in the view (V4, V7). */
    answers: indexList.optional(),
  },
  'phase-entered': {
    from: z.string(),
    to: z.string(),
    by: z.string(),
    reason: z.string().optional(),
    forced: z.boolean().optional(),
  },
  'mode-entered': {
    from: modeSchema,
    to: modeSchema,
    by: z.string(),
    activeAgent: z.string().nullable().optional(),
  },
  handoff: {
    from: z.string(),
    to: z.string(),
    summary: z.string(),
    call: callPlaceSchema.optional(),
    /** Agent hops from the person's message that began this chain (L15). */
    hops: z.int().nonnegative().optional(),
  },
  'delegation-requested': {
    from: z.string(),
    to: z.string(),
    request: z.string(),
    /** The JSON Schema of the answer (TYPED-1). */
    schema: opaqueFields.optional(),
    call: callPlaceSchema,
    hops: z.int().nonnegative().optional(),
  },
  'delegation-answered': {
    from: z.string(),
    to: z.string(),
    answers: indexList,
    late: z.boolean(),
    call: callPlaceSchema.optional(),
  },
  'turn-started': {
    turnId: z.string(),
    agent: z.string(),
    trigger: indexList,
    /** Hash of the request of this turn's next model call (L6). */
    requestHash: z.string().optional(),
    /** The index of this entry. */
    upTo: z.int().nonnegative().optional(),
    /** Hash of the agent's definition: with the log it gives each request until the turn's next `turn-started`. */
    definition: z.string().optional(),
    /** Set when the turn continues after a crash or a wait. */
    resumed: z.boolean().optional(),
    /** Agent hops from the person's message that began this chain (L15). */
    hops: z.int().nonnegative().optional(),
  },
  'message-delivered': {
    turnId: z.string(),
    agent: z.string(),
    entries: indexList,
  },
  'turn-ended': {
    turnId: z.string(),
    agent: z.string(),
    outcome: z.enum(['completed', 'failed', 'aborted', 'waiting', 'limited']),
    /** Why the last answer of a completed turn is incomplete (`finish-reason.ts`). */
    finishReason: z.string().optional(),
    lastProcessedMessageIndex: z.int().nonnegative(),
  },
  'tool-started': {
    call: callPlaceSchema,
    toolName: z.string().optional(),
    /** As judged when it was requested, or higher (L11). */
    risk: riskSchema.optional(),
    /** The call runs again after a crash. */
    rerun: z.boolean().optional(),
  },
  'approval-requested': {
    approvalId: z.string(),
    call: callPlaceSchema,
    /** The agent, tool and arguments to approve. */
    agent: z.string().optional(),
    tool: z.string().optional(),
    /** As they run if the call is approved, with escapes for invisible characters (HIDDEN-4). */
    arguments: z.string().optional(),
    argumentsHash: z.string().optional(),
    risk: z.string(),
    why: z.string().optional(),
    mayHaveRun: z.boolean(),
    /** Digest of the tool definition that an approval accepts, if its server changed the tool. */
    accepts: z.string().optional(),
    /** The later calls that an operator may allow with it (`always`); absent: none. */
    covers: z.string().optional(),
    /** The earlier answer with `always` that answers it in the same append: no person is asked. */
    grant: z.int().nonnegative().optional(),
    /** The server of a running call asks a person: `arguments` proposes the answer (SERVER-QUESTION-1). */
    asks: serverAsksSchema.optional(),
  },
  'approval-answered': {
    approvalId: z.string(),
    call: callPlaceSchema.optional(),
    /** The person's answer, or `expired`. */
    answer: z.string(),
    /** It also allows later calls of this agent in this conversation: those that the request `covers` (GRANTS-1). */
    always: z.literal(true).optional(),
    /** The earlier answer with `always` that gave this one. */
    grant: z.int().nonnegative().optional(),
    reason: z.string().optional(),
    /** The person changed them: the approved call runs with these, in canonical form (HIDDEN-4). */
    arguments: z.string().optional(),
  },
  summary: {
    agent: z.string(),
    /** Ranges, both ends included, that this entry replaces in the agent's view (V17). */
    entries: indexRanges,
    /** Ranges that the agent was never shown and never will be, for lack of space. `recall` can read them. */
    leftOut: indexRanges.optional(),
    /** The agent's own results that are shown as previews from here on. */
    shortened: indexList.optional(),
    /** Length of such a preview in code points; absent: 500. */
    previewLength: z.int().nonnegative().optional(),
    /** Entries whose files are only named from here on. */
    withoutFiles: indexList.optional(),
    fromIndex: z.int().nonnegative(),
    toIndex: z.int().nonnegative(),
    content: z.string(),
    /** Absent if the summary has no text. */
    writtenBy: z.enum(['model', 'extract']).optional(),
    /** Estimated tokens of the request before the reduction. */
    tokensBefore: z.int().nonnegative().optional(),
    /** Set if a provider refused the request as too long: at least this many real tokens per estimated token. */
    tokenRatio: z.number().optional(),
    usage: usageSchema.optional(),
    model: z.string().optional(),
    /** SHA-256 (hex) of the request after the reduction. */
    requestHash: z.string().optional(),
  },
  /** A model call that failed before any of its answer was shown; another model or key is asked next (docs/guides/model-providers.md). */
  'attempt-failed': {
    turnId: z.string(),
    agent: z.string(),
    ...modelAndKey,
    code: z.string(),
    message: z.string(),
    /** Milliseconds, retries included. */
    duration: z.number(),
    /** SHA-256 (hex) of the request; absent: it was not sent, after a recent failure or for lack of room in the window. */
    requestHash: z.string().optional(),
    /** Index of the entry that requested the call. */
    upTo: z.int().nonnegative(),
    next: z.object(modelAndKey),
  },
  'run-started': {
    runId: z.string(),
    workflowId: z.string(),
  },
  'node-entered': {
    runId: z.string(),
    node: z.string(),
    brief: z.string().optional(),
    /** The node's agent: entering the node starts its turn (L14). */
    to: z.array(z.string()).optional(),
    /** Instead of `to`, if the run has no input yet: the first message routed to this agent starts its turn. */
    agent: z.string().optional(),
    /** While nodes run side by side: the branch, by the node that it began at. Without `to`: it waits here for the others. */
    branch: z.string().optional(),
    /** The node before. */
    from: z.string().optional(),
    /** Outcome and summary of the node before. */
    outcome: z.string().optional(),
    summary: z.string().optional(),
    /** The value of the node before. */
    value: z.unknown().optional(),
    hops: z.int().nonnegative().optional(),
  },
  'run-ended': {
    runId: z.string(),
    outcome: z.string(),
    summary: z.string().optional(),
    /** The value of the node that ended it. */
    value: z.unknown().optional(),
  },
  'title-set': {
    title: z.string(),
    /** A model wrote it (`titleModel`); absent: a person, or the first words of the first message. */
    writtenBy: z.literal('model').optional(),
    usage: usageSchema.optional(),
    model: z.string().optional(),
    /** Lists show it among the archived ones; absent: they show it among the others. */
    archived: z.literal(true).optional(),
  },
  /** What a person thinks of an answer; their newest one counts (`feedback.ts`). */
  feedback: {
    /** The index of the answer. */
    on: z.int().nonnegative(),
    value: z.enum(FEEDBACK),
    note: z.string().optional(),
  },
  'session-set': {
    agent: z.string(),
    sessionId: z.string(),
    /** The message that named it; the next entries begin or continue the turn that it belongs to. */
    from: z.int().nonnegative(),
  },
  'limit-reached': {
    limit: z.string(),
    agent: z.string().optional(),
    content: z.string(),
  },
  claim: {
    /** The daemon that owns this conversation from here on. */
    daemon: z.string(),
    /** Number of claims of this conversation so far. */
    epoch: z.int().positive(),
    /** Number of claims in a row that resumed the same work without progress, this one included. */
    attempt: z.int().positive().optional(),
    /** Id of the ingress stream whose sequences the entries from here on contain. */
    ingress: z.string().optional(),
  },
  /** The entries before it are a copy of `from` up to and including index `at` (docs/guides/work-with-conversations.md). */
  forked: {
    from: z.string(),
    at: z.int().nonnegative(),
    /** The name of an imported file; `from` is then this conversation (FORK-4). */
    file: z.string().optional(),
  },
  'agent-stopped': {
    agent: z.string().nullable(),
    by: z.string(),
  },
  'agent-resumed': {
    agent: z.string().nullable(),
    by: z.string(),
  },
  'agent-hired': {
    /** Its slug. It answers in this conversation only (docs/guides/work-with-conversations.md). */
    agent: z.string(),
    name: z.string(),
    description: z.string(),
    persona: z.string(),
    /** Names and patterns, all within those of its maker. */
    tools: z.array(z.string()),
    model: z.string(),
    budget: hireBudgetSchema.optional(),
    /** Id of the author: the agent or person who hired it. */
    by: z.string(),
    /** Number of hires from a configured agent or a person to this one: 1 or more. */
    depth: z.int().positive(),
  },
  'agent-dismissed': {
    agent: z.string(),
    by: z.string(),
    reason: z.string().optional(),
  },
  /** The configuration of these agents was replaced (docs/guides/configure-agents.md). */
  'team-changed': {
    agents: z.array(teamChangeSchema),
  },
  note: {
    content: z.string(),
    /** A late result has its call, its tool, and the file with the full text if it is large. */
    call: callPlaceSchema.optional(),
    toolName: z.string().optional(),
    fullOutputPath: z.string().optional(),
  },
} as const;

export type EntryType = keyof typeof fields;
type Over<Common, Own> = {
  readonly [K in keyof (Common & Own)]: K extends keyof Own ? Own[K] : (Common & Own)[K];
};
type Fields = {
  [T in EntryType]: Over<typeof commonFields & { readonly type: z.ZodLiteral<T> }, (typeof fields)[T]>;
};

type EntrySchema = { [T in EntryType]: z.ZodObject<Fields[T], z.core.$loose> }[EntryType];

/** One schema per entry type. It checks known fields strictly and keeps unknown ones. */
export const entrySchema = z.discriminatedUnion(
  'type',
  // `Object.entries` does not keep which type has which fields.
  Object.entries(fields).map(([type, own]) =>
    z.looseObject({ ...commonFields, type: z.literal(type), ...own }),
  ) as unknown as [EntrySchema, ...EntrySchema[]],
);

/** The entry of one type: `EntryOf<'turn-started'>`. */
export type EntryOf<T extends EntryType> = z.infer<z.ZodObject<Fields[T]>>;
export type Entry = { [T in EntryType]: EntryOf<T> }[EntryType];
export type MessageEntry = EntryOf<'message'>;
export type TurnOutcome = EntryOf<'turn-ended'>['outcome'];

/** An entry before the log gives it an index. */
export type NewEntry = {
  [T in EntryType]: Omit<EntryOf<T>, 'index' | 'id' | 'createdAt'> & { id?: string };
}[EntryType];
