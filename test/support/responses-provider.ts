import type { ResponseCreateParams } from 'openai/resources/responses/responses';
import { z } from 'zod';
import { event, type FakeHandler, type FakeReply } from './fake-provider.ts';
import { fileFaults } from './sample-files.ts';

/**
 * A strict stand-in for OpenAI's Responses API without storage, written from the types of the package `openai` and from the errors
 * that its users report. `refusalOf` judges a request; `answering` is a handler for `startFakeProvider` that judges, then streams
 * the events of an answer as they are documented.
 *
 * Ids and encrypted reasoning name what they belong to, so a request can be judged without a memory: `enc:MODEL:rs_1`, and
 * `fc_2__rs_1` is an item that the reasoning `rs_1` led to.
 */

const text = z.string().min(1);
const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[a-z0-9_]{1,60}$`));
const status = z.enum(['in_progress', 'completed', 'incomplete']);
const phase = z.enum(['commentary', 'final_answer']).nullable();
const inputText = z.strictObject({ type: z.literal('input_text'), text });
const dataUrl = (types: string) => z.string().regex(new RegExp(`^data:(?:${types});base64,`));
const inputs = [
  inputText,
  z.strictObject({
    type: z.literal('input_image'),
    detail: z.enum(['low', 'high', 'auto']),
    image_url: dataUrl('image/(?:png|jpeg|gif|webp)'),
  }),
  z.strictObject({
    type: z.literal('input_file'),
    filename: z.string().regex(/\.pdf$/i),
    file_data: dataUrl('application/pdf'),
  }),
] as const;
const summary = z.strictObject({ type: z.literal('summary_text'), text });

const item = z.union([
  z.strictObject({
    type: z.literal('message').optional(),
    role: z.enum(['user', 'system', 'developer']),
    content: z.union([text, z.array(z.discriminatedUnion('type', inputs)).min(1)]),
  }),
  z.strictObject({
    type: z.literal('message').optional(),
    role: z.literal('assistant'),
    content: text,
    phase: phase.optional(),
  }),
  z.strictObject({
    type: z.literal('message'),
    id: id('msg'),
    role: z.literal('assistant'),
    status,
    phase: phase.optional(),
    content: z
      .array(
        z.union([
          z.strictObject({ type: z.literal('output_text'), text, annotations: z.array(z.never()) }),
          z.strictObject({ type: z.literal('refusal'), refusal: text }),
        ]),
      )
      .min(1),
  }),
  z.strictObject({
    type: z.literal('reasoning'),
    id: id('rs'),
    summary: z.array(summary),
    content: z.array(z.strictObject({ type: z.literal('reasoning_text'), text })).optional(),
    encrypted_content: text, // but no status, which it returns: "Unknown parameter: 'input[1].status'"
  }),
  z.strictObject({
    type: z.literal('function_call'),
    id: id('fc').optional(),
    call_id: z.string().regex(/^[\w-]{1,64}$/),
    name: z.string().regex(/^[\w-]{1,64}$/),
    arguments: z.string(),
    status: status.optional(),
  }),
  z.strictObject({
    type: z.literal('function_call_output'),
    call_id: z.string().regex(/^[\w-]{1,64}$/),
    output: z.string(),
  }),
  z.strictObject({ type: z.literal('compaction'), id: id('cmp'), encrypted_content: text }),
]);
type Item = z.infer<typeof item>;

const request = z.strictObject({
  model: text,
  input: z.array(item).min(1),
  instructions: text.optional(),
  store: z.literal(false),
  include: z.tuple([z.literal('reasoning.encrypted_content')]),
  stream: z.boolean(),
  max_output_tokens: z.int().min(16),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  reasoning: z
    .strictObject({
      effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']),
      summary: z.enum(['auto', 'concise', 'detailed']).optional(),
    })
    .optional(),
  parallel_tool_calls: z.boolean().optional(),
  prompt_cache_key: text.max(64).optional(),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        name: z.string().regex(/^[\w-]{1,64}$/),
        description: z.string(),
        parameters: z.looseObject({ type: z.literal('object') }),
        strict: z.boolean(),
      }),
    )
    .min(1)
    .optional(),
});
export type ResponsesBody = z.infer<typeof request>;

/** What is accepted here is within the published types. */
type Published = ResponsesBody extends ResponseCreateParams ? true : never;
const isPublished: Published = true;

/** Why the provider refuses the request; null: it does not. */
export function refusalOf(body: unknown): string | null {
  const parsed = request.safeParse(body);
  if (!parsed.success || !isPublished) {
    const [issue] = parsed.error?.issues ?? [];
    return `Invalid value at ${issue?.path.join('.')}: ${issue?.message} ${JSON.stringify(issue)}`.slice(
      0,
      600,
    );
  }
  return unknownHalf(body) ?? fileFaults(body)[0] ?? itemsRefusal(parsed.data);
}

function unknownHalf(body: unknown): string | null {
  return /(?<!\\)(?:\\\\)*\\ud[89a-f]/i.test(JSON.stringify(body)) ? 'The body has half a character.' : null;
}

function itemsRefusal({ input, model }: ResponsesBody): string | null {
  const seen = new Set<string>();
  const calls = new Set<string>();
  const open = new Set<string>();
  for (const [at, one] of input.entries()) {
    if ('id' in one && one.id !== undefined) {
      if (seen.has(one.id)) return `Duplicate item found with id ${one.id}.`;
      seen.add(one.id);
      const led = /__(rs_.*)$/.exec(one.id)?.[1];
      if (led !== undefined && !seen.has(led))
        return `Item '${one.id}' of type '${one.type}' was provided without its required 'reasoning' item: '${led}'.`;
    }
    if (one.type === 'function_call') {
      if (calls.has(one.call_id)) return `Duplicate call_id ${one.call_id}.`;
      calls.add(one.call_id);
      open.add(one.call_id);
    }
    if (one.type === 'function_call_output' && !open.delete(one.call_id))
      return `No tool call found for function call output with call_id ${one.call_id}.`;
    if (one.type === 'reasoning') {
      if (one.encrypted_content !== `enc:${model}:${one.id}`)
        return `The encrypted content for item ${one.id} could not be verified.`;
      if (!hasFollower(input.slice(at + 1)))
        return `Item '${one.id}' of type 'reasoning' was provided without its required following item.`;
    }
  }
  return open.size > 0 ? `No tool output found for function call ${[...open].join()}.` : null;
}

/** The next item that is not reasoning was written by the model. */
function hasFollower(rest: readonly Item[]): boolean {
  const next = rest.find(({ type }) => type !== 'reasoning');
  if (next === undefined || next.type === 'function_call_output') return false;
  return !('role' in next) || next.role === 'assistant';
}

/** One item of an answer. */
export type Output =
  | { readonly reasoning: readonly string[]; readonly content?: readonly string[] }
  | { readonly text: string; readonly phase?: 'commentary' | 'final_answer' }
  | { readonly refusal: string }
  | { readonly call: string; readonly arguments: string }
  | { readonly compaction: true };

export interface Answer {
  readonly output?: readonly Output[];
  /** The answer is cut for this reason. */
  readonly incomplete?: 'max_output_tokens' | 'content_filter';
  /** The answer fails with this code, after its output. */
  readonly failed?: string;
  /** The stream ends with an event `error` of this code. */
  readonly error?: string;
  /** Instead of an answer. */
  readonly reply?: FakeReply;
}

export type Answering = (body: ResponsesBody, count: number) => Answer | Promise<Answer>;

/** Refuses or answers, and caches what it was sent. */
export function answering(answer: Answering, refusals: string[] = []): FakeHandler {
  const sent: string[] = [];
  return async ({ json, path }, count) => {
    const refusal = path.endsWith('/responses') ? refusalOf(json) : `Invalid URL (POST ${path})`;
    if (refusal !== null) {
      refusals.push(refusal);
      const error = { message: refusal, type: 'invalid_request_error', param: 'input', code: null };
      return { status: 400, body: { error } };
    }
    const body = request.parse(json);
    const given = await answer(body, count);
    if (given.reply) return given.reply;
    const usage = usageOf(body, sent);
    const made = body.stream ? eventsOf(body, given, count, usage) : responseOf(body, given, count, usage);
    return { body: made };
  };
}

const USAGE = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 60, cache_write_tokens: 0 },
  output_tokens: 20,
  output_tokens_details: { reasoning_tokens: 12 },
  total_tokens: 120,
};

/** Bytes of a request for a token, in this stand-in. */
const TOKEN = 4;

/** Automatic caching, as documented: the longest prefix that was sent before, of at least 1,024 tokens, in steps of 128. */
function usageOf({ tools = [], instructions = '', input }: ResponsesBody, sent: string[]): typeof USAGE {
  const read = [tools, instructions, ...input].map((one) => JSON.stringify(one)).join('\n');
  const shared = sent.map((before) => {
    let at = 0;
    while (at < read.length && read.charCodeAt(at) === before.charCodeAt(at)) at++;
    return at / TOKEN;
  });
  sent.push(read);
  const longest = Math.max(0, ...shared);
  const cached_tokens = longest < 1_024 ? 0 : Math.floor(longest / 128) * 128;
  const input_tokens = Math.ceil(read.length / TOKEN);
  return {
    ...USAGE,
    input_tokens,
    input_tokens_details: { cached_tokens, cache_write_tokens: 0 },
    total_tokens: input_tokens + USAGE.output_tokens,
  };
}

/** The items of the answer as they are returned; those after reasoning name it in their ids. */
function itemsOf(body: ResponsesBody, { output = [], incomplete }: Answer, count: number): object[] {
  let reasoned = '';
  return output.map((one, at) => {
    const item = (prefix: string) => `${prefix}_${count}_${at}${reasoned && `__${reasoned}`}`;
    const isLast = at === output.length - 1;
    const status = incomplete && isLast ? 'incomplete' : 'completed';
    if ('reasoning' in one) {
      reasoned = `rs_${count}_${at}`;
      const summary = one.reasoning.map((said) => ({ type: 'summary_text', text: said }));
      const content = one.content?.map((said) => ({ type: 'reasoning_text', text: said }));
      const encrypted_content = `enc:${body.model}:${reasoned}`;
      const whole = { id: reasoned, type: 'reasoning', status, summary, encrypted_content };
      return { ...whole, ...(content && { content }) };
    }
    if ('call' in one) {
      const called = { call_id: `call_${count}_${at}`, name: one.call, arguments: one.arguments };
      return { id: item('fc'), type: 'function_call', status, ...called };
    }
    if ('compaction' in one)
      return { id: `cmp_${count}_${at}`, type: 'compaction', encrypted_content: 'gAAA' };
    const content =
      'text' in one
        ? { type: 'output_text', text: one.text, annotations: [], logprobs: [] }
        : { type: 'refusal', refusal: one.refusal };
    const phase = 'phase' in one ? { phase: one.phase } : {};
    return { id: item('msg'), type: 'message', status, role: 'assistant', content: [content], ...phase };
  });
}

function frameOf(body: ResponsesBody, count: number): object {
  const { model, instructions = null, store, reasoning = { effort: null, summary: null } } = body;
  const given = { model, instructions, store, reasoning, tools: body.tools ?? [], temperature: 1, top_p: 1 };
  const times = { created_at: 1, background: false, previous_response_id: null };
  return { id: `resp_${count}`, object: 'response', ...given, ...times, error: null, metadata: {} };
}

export function responseOf(
  body: ResponsesBody,
  answer: Answer,
  count = 0,
  usage = USAGE,
): Record<string, unknown> {
  const { incomplete, failed } = answer;
  return {
    ...frameOf(body, count),
    status: failed ? 'failed' : incomplete ? 'incomplete' : 'completed',
    incomplete_details: incomplete ? { reason: incomplete } : null,
    ...(failed ? { error: { code: failed, message: `It failed: ${failed}` } } : {}),
    output: itemsOf(body, answer, count),
    usage: failed ? null : usage,
  };
}

type Sent = Readonly<Record<string, unknown>> & { readonly type: string };

/** The stream of an answer, an event a piece. */
export function eventsOf(body: ResponsesBody, answer: Answer, count = 0, usage = USAGE): string[] {
  let sequence = 0;
  const send = (type: string, more: object) => {
    const data = JSON.stringify({ type, sequence_number: sequence++, ...more });
    return `event: ${type}\n${event(data)}`;
  };
  const begun = { ...frameOf(body, count), status: 'in_progress', output: [], usage: null };
  const events = [
    send('response.created', { response: begun }),
    send('response.in_progress', { response: begun }),
  ];
  for (const [output_index, whole] of itemsOf(body, answer, count).entries())
    events.push(...itemEvents(output_index, whole as Sent, send));
  if (answer.error) {
    const error = { code: answer.error, message: `It failed: ${answer.error}`, param: null };
    return [...events, send('error', error)];
  }
  const response = responseOf(body, answer, count, usage);
  return [...events, send(`response.${String(response.status)}`, { response })];
}

function itemEvents(
  output_index: number,
  whole: Sent,
  send: (type: string, more: object) => string,
): string[] {
  const place = { item_id: whole.id, output_index };
  const grow = (name: string, field: string, all: string, index: object) => [
    ...(all.match(/.{1,7}/gsu) ?? []).map((delta) =>
      send(`response.${name}.delta`, { ...place, ...index, delta }),
    ),
    send(`response.${name}.done`, { ...place, ...index, [field]: all }),
  ];
  const growPart = (kind: string, name: string, part: Sent, index: object) => {
    const field = part.type === 'refusal' ? 'refusal' : 'text';
    return [
      send(`response.${kind}_part.added`, { ...place, ...index, part: { ...part, [field]: '' } }),
      ...grow(name, field, String(part[field]), index),
      send(`response.${kind}_part.done`, { ...place, ...index, part }),
    ];
  };
  const partsIn = (list: unknown) => ((list ?? []) as Sent[]).entries();
  const grown: string[] = [];
  for (const [summary_index, part] of partsIn(whole.summary))
    grown.push(...growPart('reasoning_summary', 'reasoning_summary_text', part, { summary_index }));
  for (const [content_index, part] of partsIn(whole.content))
    grown.push(...growPart('content', part.type, part, { content_index }));
  if (whole.type === 'function_call')
    grown.push(...grow('function_call_arguments', 'arguments', String(whole.arguments), {}));
  const empty = {
    ...('summary' in whole && { summary: [] }),
    ...('content' in whole && { content: [] }),
    ...('arguments' in whole && { arguments: '' }),
    ...('encrypted_content' in whole && whole.type === 'reasoning' && { encrypted_content: '' }),
  };
  return [
    send('response.output_item.added', { output_index, item: { ...whole, status: 'in_progress', ...empty } }),
    ...grown,
    send('response.output_item.done', { output_index, item: whole }),
  ];
}
