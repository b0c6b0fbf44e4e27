import { createHash } from 'node:crypto';
import { z } from 'zod';
import { fileFaults } from './sample-files.ts';

/**
 * What Anthropic's Messages API refuses, written from its published schemas (the types of `@anthropic-ai/sdk`) and its documents:
 * content blocks, tool use, thinking, prompt caching. Not from our code. Only what a text conversation with tools may use.
 */

const cache = z
  .strictObject({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).optional() })
  .optional();
/** "text content blocks must contain non-whitespace text" */
const text = z.strictObject({
  type: z.literal('text'),
  text: z.string().regex(/\S/, 'text content blocks must contain non-whitespace text'),
  cache_control: cache,
});
const id = z.string().regex(/^[a-zA-Z0-9_-]+$/);
const name = z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/);
/** "image exceeds 5 MB maximum": the API counts the base64. */
const picture = z.strictObject({
  type: z.literal('base64'),
  media_type: z.enum(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
  data: z.string().max(5 * 1024 * 1024, 'image exceeds 5 MB maximum'),
});
const pdf = z.strictObject({
  type: z.literal('base64'),
  media_type: z.literal('application/pdf'),
  data: z.string(),
});
const block = z.discriminatedUnion('type', [
  text,
  z.strictObject({ type: z.literal('image'), source: picture, cache_control: cache }),
  z.strictObject({
    type: z.literal('document'),
    source: pdf,
    title: z.string().optional(),
    cache_control: cache,
  }),
  z.strictObject({
    type: z.literal('tool_use'),
    id,
    name,
    input: z.record(z.string(), z.unknown()),
    cache_control: cache,
  }),
  z.strictObject({
    type: z.literal('tool_result'),
    tool_use_id: id,
    content: z.union([z.string(), z.array(text)]).optional(),
    is_error: z.boolean().optional(),
    cache_control: cache,
  }),
  z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string().min(1) }),
  z.strictObject({ type: z.literal('redacted_thinking'), data: z.string().min(1) }),
]);
export type MessagesBlock = z.infer<typeof block>;

const tool = z.strictObject({
  type: z.literal('custom').optional(),
  name,
  description: z.string().optional(),
  input_schema: z.looseObject({ type: z.literal('object') }),
  strict: z.boolean().optional(),
  cache_control: cache,
});

const display = z.enum(['summarized', 'omitted']).optional();
const block_binding = z.strictObject({ prefix_mismatch_behavior: z.enum(['error', 'drop_block']) });

const bodySchema = z.strictObject({
  model: z.string().min(1),
  max_tokens: z.int().min(1),
  messages: z
    .array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.array(block).min(1) }))
    .min(1),
  system: z.array(text).min(1).optional(),
  tools: z.array(tool).optional(),
  tool_choice: z.looseObject({ type: z.enum(['auto', 'any', 'tool', 'none']) }).optional(),
  stream: z.boolean().optional(),
  temperature: z.number().min(0).max(1).optional(),
  top_p: z.number().min(0).max(1).optional(),
  top_k: z.int().optional(),
  stop_sequences: z.array(z.string().regex(/\S/)).optional(),
  thinking: z
    .union([
      z.strictObject({ type: z.literal('enabled'), budget_tokens: z.int().min(1_024), display }),
      z.strictObject({ type: z.literal('adaptive'), display, block_binding: block_binding.optional() }),
      z.strictObject({ type: z.literal('disabled') }),
    ])
    .optional(),
  output_config: z
    .strictObject({ effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional() })
    .optional(),
  metadata: z.strictObject({ user_id: z.string() }).optional(),
  service_tier: z.enum(['auto', 'standard_only']).optional(),
});
export type MessagesBody = z.infer<typeof bodySchema>;
type Message = MessagesBody['messages'][number];

/** The signature of a thinking block: only this text has it. */
export function signatureOf(thinking: string): string {
  return createHash('sha256').update(`signed ${thinking}`).digest('base64');
}

/** The faults of a request, in the words of the API where they are documented; empty: it is accepted. */
export function messagesRefusals(body: unknown): string[] {
  const parsed = bodySchema.safeParse(body);
  if (!parsed.success) return parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  const request = parsed.data;
  return [
    ...orderFaults(request.messages),
    ...request.messages.flatMap((message, at) => pairFaults(message, request.messages[at - 1], at)),
    ...danglingCalls(request.messages.at(-1)),
    ...idFaults(request.messages),
    ...request.messages.flatMap(thinkingFaults),
    ...loopFaults(request),
    ...parameterFaults(request),
    ...cacheFaults(request),
    ...fileFaults(body),
  ];
}

function orderFaults(messages: readonly Message[]): string[] {
  const last = messages.at(-1);
  return [
    ...(messages[0]?.role === 'user' ? [] : ['messages: first message must use the "user" role']),
    ...(last?.role === 'user' ? [] : ['messages: this model does not support assistant message prefill']),
    // The API would join them: our encoder promises that it never has to.
    ...messages.flatMap(({ role }, at) =>
      messages[at - 1]?.role === role ? [`messages.${at}: the role ${role} twice`] : [],
    ),
  ];
}

const OF_USERS: ReadonlySet<string> = new Set(['tool_result', 'image', 'document']);

function callsOf(message: Message | undefined): string[] {
  return message?.content.flatMap((one) => (one.type === 'tool_use' ? [one.id] : [])) ?? [];
}

/** Each call of the message before has its result in this one, before anything else, and no other result is here. */
function pairFaults({ role, content }: Message, before: Message | undefined, at: number): string[] {
  const calls = before?.role === 'assistant' ? callsOf(before) : [];
  const results = content.flatMap((one) => (one.type === 'tool_result' ? [one.tool_use_id] : []));
  const wrongRole = content.filter(({ type }) => (role === 'user') !== OF_USERS.has(type) && type !== 'text');
  const firstOther = content.findIndex(({ type }) => type !== 'tool_result');
  const late = firstOther >= 0 && content.slice(firstOther).some(({ type }) => type === 'tool_result');
  return [
    ...wrongRole.map(({ type }) => `messages.${at}: a block ${type} of the ${role}`),
    ...calls
      .filter((call) => !results.includes(call))
      .map(
        (call) =>
          `messages.${at - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${call}`,
      ),
    ...results
      .filter((result) => !calls.includes(result))
      .map(
        (result) => `messages.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${result}`,
      ),
    ...(new Set(results).size < results.length
      ? [`messages.${at}: each tool_use must have a single result`]
      : []),
    ...(late ? [`messages.${at}: \`tool_result\` blocks must come first`] : []),
  ];
}

function danglingCalls(last: Message | undefined): string[] {
  return callsOf(last).map((call) => `\`tool_use\` without \`tool_result\` at the end: ${call}`);
}

function idFaults(messages: readonly Message[]): string[] {
  const ids = messages.flatMap(callsOf);
  return new Set(ids).size < ids.length ? ['messages: `tool_use` ids must be unique'] : [];
}

function isThinking(one: MessagesBlock | undefined): boolean {
  return one?.type === 'thinking' || one?.type === 'redacted_thinking';
}

function thinkingFaults({ content }: Message, at: number): string[] {
  const unsigned = content.some(
    (one) => one.type === 'thinking' && one.signature !== signatureOf(one.thinking),
  );
  return [
    ...(unsigned ? [`messages.${at}: Invalid \`signature\` in \`thinking\` block`] : []),
    ...(isThinking(content.at(-1))
      ? [`messages.${at}: The final block in an assistant message cannot be \`thinking\``]
      : []),
  ];
}

/** With a thinking budget, the answer that begins a tool loop begins with its thinking. */
function loopFaults({ messages, thinking }: MessagesBody): string[] {
  if (thinking?.type !== 'enabled') return [];
  let at = messages.length - 1;
  while (at > 0 && messages[at]?.content.every(({ type }) => type === 'tool_result')) at -= 2;
  const first = messages[at + 1]?.content[0];
  if (at + 1 >= messages.length || isThinking(first)) return [];
  return [`messages.${at + 1}: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first?.type}\``];
}

function parameterFaults({
  thinking,
  temperature,
  top_p: topP,
  max_tokens: longest,
}: MessagesBody): string[] {
  const thinks = thinking !== undefined && thinking.type !== 'disabled';
  return [
    ...(thinks && (temperature ?? 1) !== 1
      ? ['`temperature` may only be set to 1 when thinking is enabled']
      : []),
    ...(thinks && (topP ?? 1) < 0.95 ? ['`top_p` must be at least 0.95 when thinking is enabled'] : []),
    ...(thinking?.type === 'enabled' && thinking.budget_tokens >= longest
      ? ['`max_tokens` must be greater than `thinking.budget_tokens`']
      : []),
  ];
}

/** All blocks in the order in which they are cached, each with what tells it from another. */
export function cachedBlocks({ tools = [], system = [], messages, ...rest }: MessagesBody) {
  const { model, thinking, tool_choice: choice } = rest;
  return [
    ...tools.map((one) => ({ of: `tools ${model}`, one })),
    ...system.map((one) => ({ of: 'system', one })),
    ...messages.flatMap(({ role, content }) =>
      content.map((one) => ({ of: `${role} ${JSON.stringify([thinking, choice])}`, one })),
    ),
  ].map(({ of, one }) => {
    const { cache_control: point, ...block } = { cache_control: undefined, ...one };
    return { text: `${of} ${JSON.stringify(block)}`, ttl: point && (point.ttl ?? '5m') };
  });
}

function cacheFaults(request: MessagesBody): string[] {
  const points = cachedBlocks(request).flatMap(({ ttl }) => ttl ?? []);
  const isOrdered = points.every((ttl, at) => ttl === '5m' || points[at - 1] !== '5m');
  return [
    ...(points.length > 4
      ? [`A maximum of 4 blocks with cache_control may be provided. Found ${points.length}.`]
      : []),
    ...(isOrdered
      ? []
      : ["a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"]),
  ];
}
