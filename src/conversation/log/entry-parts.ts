import { z } from 'zod';
import { MODES } from './names.ts';

export { placeOfCallId, wireCallId } from './call-id.ts';

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

/** The address of a tool call: the index of its assistant entry and its position in it (L10). */
export const callPlaceSchema = z.object({ index: z.int().nonnegative(), position: z.int().nonnegative() });
export type CallPlace = z.infer<typeof callPlaceSchema>;

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

/** What a model wants back with its answer: signatures, encrypted reasoning. It is returned verbatim, and to this model only. */
export const opaqueSchema = z.object({
  /** Dialect and model, the only reader (`WireForm.boundTo`). */
  boundTo: z.string(),
  message: opaqueFields.optional(),
  /** By position; null: that call has none. */
  calls: z.array(opaqueFields.nullable()).optional(),
  /** Bytes that were too many to be kept, instead of the fields. */
  omittedBytes: z.int().positive().optional(),
});
export type Opaque = z.infer<typeof opaqueSchema>;

/** A safe tool may run twice; a risky one may not run again without a person's approval. */
export const riskSchema = z.enum(['safe', 'risky']);
export type Risk = z.infer<typeof riskSchema>;

/** Tokens of one model call, as the provider reported them. */
export const usageSchema = z.object({
  inputTokens: z.number(),
  cachedInputTokens: z.number().optional(),
  outputTokens: z.number(),
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
  outputTokens: tokenCount,
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
  /** Of a copy: the conversation in which the entry was made. */
  copiedFrom: z.string().optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
};
