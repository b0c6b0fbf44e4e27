import { createHash } from 'node:crypto';
import type { FakeHandler, FakeReply, FakeRequest } from './fake-provider.ts';
import { cachedBlocks, type MessagesBody, messagesRefusals, signatureOf } from './messages-rules.ts';

/**
 * Anthropic's Messages API on loopback: refuses what the API refuses (`messages-rules.ts`), caches prefixes by the documented rules
 * and reports the usage that results, streams events as documented.
 *
 *     const api = anthropicApi(() => ({ text: 'Hello.' }));
 *     const provider = await startFakeProvider(api.answer);
 *     … provider: anthropic, baseURL: provider.url, apiKey: x …
 */

/** One block of an answer; a thinking block is signed here. */
export type SaidBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: Readonly<Record<string, unknown>> };

/** The types of errors, with their status. */
export const ERROR_STATUS = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
} as const;
export type ErrorType = keyof typeof ERROR_STATUS;

export interface AnthropicReply extends Pick<FakeReply, 'headers' | 'delayMs' | 'hang' | 'drop'> {
  /** Instead of `blocks`. */
  readonly text?: string;
  readonly blocks?: readonly SaidBlock[];
  /** Default: `tool_use` with calls, else `end_turn`. */
  readonly stopReason?: string;
  /** The request fails with it. */
  readonly error?: ErrorType;
  /** The stream ends with it, after the blocks. */
  readonly lateError?: ErrorType;
}

export type AnthropicHandler = (request: MessagesBody, count: number) => AnthropicReply;

export interface Counted {
  readonly input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
}

export interface AnthropicRules {
  /** Milliseconds since the epoch, for the lifetime of what is cached. */
  readonly now?: () => number;
  /** Of the model, in tokens. */
  readonly window?: number;
}

/** Answers requests as the API does: `answer` is for `startFakeProvider`, or the `model` of a project. */
export interface AnthropicApi {
  readonly answer: FakeHandler;
  /** What the API refused, with the reasons. */
  readonly refusals: readonly string[];
  /** Of each accepted request, in order. */
  readonly usages: readonly (Counted & { readonly body: MessagesBody })[];
}

export function anthropicApi(
  script: AnthropicHandler | readonly AnthropicReply[],
  { now = Date.now, window = 1_000_000 }: AnthropicRules = {},
): AnthropicApi {
  const handler: AnthropicHandler =
    typeof script === 'function' ? script : (_, count) => script[Math.min(count, script.length - 1)] ?? {};
  const promptCache = new PromptCache(now);
  const refusals: string[] = [];
  const usages: (Counted & { body: MessagesBody })[] = [];
  let count = 0;
  const binding = new Binding();
  const answer: FakeHandler = (request) => {
    const refused = refusalOf(request, window) ?? binding.refusalOf(request);
    if (refused) {
      refusals.push(refused[1]);
      return errorReply(...refused);
    }
    const body = request.json as unknown as MessagesBody;
    const reply = handler(body, count++);
    if (reply.error)
      return {
        ...errorReply(reply.error, `a ${reply.error}`),
        ...(reply.headers && { headers: reply.headers }),
      };
    const counted = promptCache.count(body);
    usages.push({ ...counted, body });
    binding.note(body, reply);
    return answerOf(body, reply, counted);
  };
  return { answer, refusals, usages };
}

function refusalOf({ path, headers, json }: FakeRequest, window: number): [ErrorType, string] | null {
  if (path !== '/v1/messages') return ['not_found_error', `${path} is not here`];
  if (!headers['x-api-key'] || headers.authorization)
    return ['authentication_error', 'x-api-key header is required'];
  if (headers['anthropic-version'] !== '2023-06-01')
    return ['invalid_request_error', 'anthropic-version: header is required'];
  const faults = messagesRefusals(json);
  if (faults.length > 0) return ['invalid_request_error', faults.join('; ')];
  const body = json as unknown as MessagesBody;
  if (body.model === 'missing') return ['not_found_error', 'model: missing'];
  const tokens = tokensOf(JSON.stringify(body.messages));
  return tokens > window
    ? ['invalid_request_error', `prompt is too long: ${tokens} tokens > ${window} maximum`]
    : null;
}

/** Preserved thinking: a block is of the system prompt, the tools and the messages before it, in models such as `claude-fable-5-2`. */
class Binding {
  readonly #prefixes = new Map<string, string>();

  note(body: MessagesBody, { blocks = [] }: AnthropicReply): void {
    for (const block of blocks)
      if (block.type === 'thinking') this.#prefixes.set(signatureOf(block.thinking), prefixOf(body));
  }

  refusalOf({ headers, json }: FakeRequest): [ErrorType, string] | null {
    const body = json as unknown as MessagesBody;
    const binding = body.thinking && 'block_binding' in body.thinking && body.thinking.block_binding;
    if (binding && !String(headers['anthropic-beta']).includes('thinking-binding-controls-2026-08-01'))
      return ['invalid_request_error', 'thinking.block_binding: Extra inputs are not permitted'];
    if (!/-5-[1-9]$/.test(body.model) || (binding && binding.prefix_mismatch_behavior === 'drop_block'))
      return null;
    const isMoved = body.messages.some(({ content }, at) =>
      content.some(
        (block) =>
          block.type === 'thinking' &&
          this.#prefixes.get(block.signature) !== prefixOf({ ...body, messages: body.messages.slice(0, at) }),
      ),
    );
    if (!isMoved) return null;
    return [
      'invalid_request_error',
      'Invalid `signature` in `thinking` block. The block is bound to a different conversation.',
    ];
  }
}

function prefixOf({ system, tools, messages }: MessagesBody): string {
  return JSON.stringify([system, tools, messages], (key, value) =>
    key === 'cache_control' ? undefined : value,
  );
}

function errorReply(type: ErrorType, message: string): FakeReply {
  const body = { type: 'error', error: { type, message }, request_id: 'req_1' };
  return { status: ERROR_STATUS[type], body };
}

/** A rough count: the rules of the cache need numbers, not the tokenizer. */
function tokensOf(text: string): number {
  return Math.ceil(text.length / 4);
}

const LEAST_CACHED = 1_024;
/** Positions that are looked up for each point, the point itself included. */
const LOOK_BACK = 20;
const LIFETIME_MS = { '5m': 300_000, '1h': 3_600_000 };

/** "Cache writes happen only at a breakpoint; a read looks back at most 20 blocks from each breakpoint for an earlier write." */
class PromptCache {
  readonly #now: () => number;
  readonly #writes = new Map<string, { ms: number; until: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  count(body: MessagesBody): Counted {
    let chain = '';
    let sum = 0;
    const blocks = cachedBlocks(body).map(({ text, ttl }) => {
      chain = createHash('sha256').update(chain).update(text).digest('base64');
      sum += tokensOf(text);
      return { key: chain, tokens: sum, ttl };
    });
    const points = blocks.flatMap(({ ttl, tokens }, at) => (ttl && tokens >= LEAST_CACHED ? [at] : []));
    const found = points.map((at) => this.#before(blocks, at));
    const read = Math.max(-1, ...found);
    for (const at of points) {
      const { key = '', ttl = '5m' } = blocks[at] ?? {};
      this.#writes.set(key, { ms: LIFETIME_MS[ttl], until: this.#now() + LIFETIME_MS[ttl] });
    }
    const readTokens = blocks[read]?.tokens ?? 0;
    const cached = Math.max(readTokens, blocks[points.at(-1) ?? -1]?.tokens ?? 0);
    return {
      input_tokens: sum - cached,
      cache_read_input_tokens: readTokens,
      cache_creation_input_tokens: cached - readTokens,
    };
  }

  /** The newest write at a point or before it, which it refreshes; -1: none. */
  #before(blocks: readonly { readonly key: string }[], point: number): number {
    for (let at = point; at >= 0 && at > point - LOOK_BACK; at--) {
      const write = this.#writes.get(blocks[at]?.key ?? '');
      if (!write || write.until < this.#now()) continue;
      write.until = this.#now() + write.ms;
      return at;
    }
    return -1;
  }
}

/** As the API sends it: with an id, a signature. */
function blockOf(block: SaidBlock, at: number, count: number) {
  if (block.type === 'tool_use') return { ...block, id: `toolu_${count}_${at}`, caller: { type: 'direct' } };
  if (block.type === 'thinking') return { ...block, signature: signatureOf(block.thinking) };
  return block.type === 'text' ? { ...block, citations: null } : block;
}

let answers = 0;

/** An answer as the API gives it whole. */
export function messageOf(model: string, said: readonly SaidBlock[], counted: Counted, stopReason?: string) {
  answers += 1;
  const calls = said.some(({ type }) => type === 'tool_use');
  const thoughts = said.filter(({ type }) => type === 'thinking');
  const details = { thinking_tokens: thoughts.length === 0 ? 0 : tokensOf(JSON.stringify(thoughts)) };
  return {
    ...{ id: `msg_${answers}`, type: 'message', role: 'assistant', model },
    content: said.map((block, at) => blockOf(block, at, answers)),
    stop_reason: stopReason ?? (calls ? 'tool_use' : 'end_turn'),
    stop_sequence: null,
    usage: {
      ...counted,
      output_tokens: 1 + tokensOf(JSON.stringify(said)),
      output_tokens_details: details,
      service_tier: 'standard',
    },
  };
}

function answerOf(body: MessagesBody, reply: AnthropicReply, counted: Counted): FakeReply {
  const { headers, delayMs, hang, drop, lateError: late, text } = reply;
  const said: readonly SaidBlock[] = reply.blocks ?? (text === undefined ? [] : [{ type: 'text', text }]);
  const message = messageOf(body.model, said, counted, reply.stopReason);
  const common = { ...(delayMs !== undefined && { delayMs }), ...(hang && { hang }), ...(drop && { drop }) };
  if (body.stream !== true) return { ...common, ...(headers && { headers }), body: message };
  const pieces = [
    ...streamOf(message),
    ...(late ? [event('error', { type: 'error', error: { type: late, message: `a ${late}` } })] : []),
  ];
  const isBroken = late ?? hang ?? drop;
  const sent = isBroken ? pieces.filter((piece) => !/^event: message_(delta|stop)/.test(piece)) : pieces;
  return { ...common, headers: { 'content-type': 'text/event-stream', ...headers }, body: sent };
}

function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

type Sent = ReturnType<typeof blockOf>;

/** The same as a stream, piece by piece. */
export function streamOf(message: ReturnType<typeof messageOf>): string[] {
  const { content, stop_reason, usage, ...head } = message;
  const { output_tokens, ...others } = usage;
  const start = {
    ...head,
    ...{ content: [], stop_reason: null, stop_sequence: null },
    usage: { ...others, output_tokens: 1 },
  };
  return [
    event('message_start', { type: 'message_start', message: start }),
    event('ping', { type: 'ping' }),
    ...content.flatMap((block, index) => [
      event('content_block_start', { type: 'content_block_start', index, content_block: emptyOf(block) }),
      ...deltasOf(block).map((delta) =>
        event('content_block_delta', { type: 'content_block_delta', index, delta }),
      ),
      event('content_block_stop', { type: 'content_block_stop', index }),
    ]),
    event('message_delta', {
      type: 'message_delta',
      delta: { stop_reason, stop_sequence: null },
      usage: { ...usage, input_tokens: null },
    }),
    event('message_stop', { type: 'message_stop' }),
  ];
}

function emptyOf(block: Sent): object {
  if (block.type === 'text') return { ...block, text: '' };
  if (block.type === 'thinking') return { ...block, thinking: '', signature: '' };
  return block.type === 'tool_use' ? { ...block, input: {} } : block;
}

function deltasOf(block: Sent): object[] {
  const pieces = (text: string) => text.match(/[\s\S]{1,12}/g) ?? [];
  if (block.type === 'text') return pieces(block.text).map((text) => ({ type: 'text_delta', text }));
  if (block.type === 'tool_use') {
    const json = JSON.stringify(block.input);
    return ['', ...pieces(json === '{}' ? '' : json)].map((partial_json) => ({
      type: 'input_json_delta',
      partial_json,
    }));
  }
  if (block.type !== 'thinking') return [];
  const thinking = pieces(block.thinking).map((piece) => ({ type: 'thinking_delta', thinking: piece }));
  const { signature } = block as { readonly signature?: string };
  return [...thinking, { type: 'signature_delta', signature }];
}
