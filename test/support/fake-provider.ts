import { once, setMaxListeners } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * A model provider on loopback that speaks chat completions and misbehaves on demand.
 *
 *     const provider = await startFakeProvider([{ status: 429, headers: { 'retry-after': '1' } }, { text: 'Hello.' }]);
 *     … baseURL: provider.url …
 *     await provider.close();
 */
export interface FakeRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The exact bytes. */
  readonly body: Buffer;
  /** Parsed; `{}` if it is not JSON. */
  readonly json: {
    readonly stream?: boolean;
    readonly model?: string;
    readonly messages?: readonly { readonly role: string; readonly content: string | null }[];
  };
}

/** When the connection breaks: instead of the headers, after them, or after the text (before it is finished). */
type FakeMoment = 'before-headers' | 'after-headers' | 'after-text';

export interface FakeCall {
  readonly id?: string;
  readonly name: string;
  readonly arguments: string;
  /** Further fields. */
  readonly opaque?: Readonly<Record<string, unknown>>;
}

export interface FakeReply {
  /** Default 200. Another status is sent with `body` unchanged. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent unchanged instead of a completion, a list piece by piece. An object is sent as JSON. */
  readonly body?: string | Uint8Array | readonly (string | Uint8Array)[] | Readonly<Record<string, unknown>>;
  readonly text?: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly FakeCall[];
  /** Further fields of the message. */
  readonly opaque?: Readonly<Record<string, unknown>>;
  /** If null, neither the usage nor `[DONE]` is sent. */
  readonly finishReason?: string | null;
  readonly usage?: Readonly<Record<string, unknown>>;
  /** Milliseconds before each piece. */
  readonly delayMs?: number;
  /** Sends nothing more from this point, until the client disconnects or the provider closes. */
  readonly hang?: FakeMoment;
  /** Destroys the socket at this point. */
  readonly drop?: FakeMoment;
  /** An error object in the stream, after the text. */
  readonly error?: Readonly<Record<string, unknown>>;
}

export type FakeHandler = (request: FakeRequest, count: number) => FakeReply | Promise<FakeReply>;

/** A model that gives the replies of `next` in their order; a test sets them. */
export function repliesInOrder() {
  const handler: FakeHandler = (request, count) => {
    const reply = model.next.shift() ?? { text: 'no more replies' };
    return typeof reply === 'function' ? reply(request, count) : reply;
  };
  const model: { next: (FakeReply | FakeHandler)[]; readonly handler: FakeHandler } = { next: [], handler };
  return model;
}

export interface FakeProvider {
  /** For `baseURL`: `http://127.0.0.1:<port>/v1`. */
  readonly url: string;
  /** Every request so far, in order. */
  readonly requests: readonly FakeRequest[];
  /** Running answers: neither finished nor abandoned by the client. */
  openAnswers(): number;
  /** Resolves when this many requests have arrived. */
  waitForRequests(count: number): Promise<void>;
  /** Resolves when no answer is running: each was finished, or its client disconnected. */
  waitForIdle(): Promise<void>;
  /** Ends everything at once, including answers that hang. May be repeated. */
  close(): Promise<void>;
}

/**
 * `script`: the n-th request gets the n-th reply, and the last reply answers all further requests. `kept`: the number of
 * requests that are kept.
 */
export async function startFakeProvider(
  script: FakeHandler | readonly FakeReply[],
  kept = Number.POSITIVE_INFINITY,
): Promise<FakeProvider> {
  const handler: FakeHandler =
    typeof script === 'function' ? script : (_, count) => script[Math.min(count, script.length - 1)] ?? {};
  const requests: FakeRequest[] = [];
  let count = 0;
  const answers = new Set<ServerResponse>();
  const changed = new EventTarget();
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // One listener for each running answer.
  const notify = () => changed.dispatchEvent(new Event('change'));

  const server = createServer((incoming, response) => {
    answers.add(response);
    response.once('close', () => {
      answers.delete(response);
      notify();
    });
    void (async () => {
      const request = await readRequest(incoming);
      requests.push(request);
      if (requests.length > kept) requests.shift();
      notify();
      await answer(request, response, await handler(request, count++), closing.signal);
    })().catch(() => response.destroy());
  });
  server.keepAliveTimeout = 0; // otherwise a connection sometimes ends just as it is reused
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition()) {
      await new Promise((resolve) => changed.addEventListener('change', resolve, { once: true }));
    }
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    openAnswers: () => answers.size,
    waitForRequests: (count) => until(() => requests.length >= count),
    waitForIdle: () => until(() => answers.size === 0),
    async close() {
      if (closing.signal.aborted) return;
      closing.abort();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function readRequest(incoming: IncomingMessage): Promise<FakeRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const { url: path = '', headers } = incoming;
  try {
    return { path, headers, body, json: JSON.parse(body.toString('utf8')) };
  } catch {
    return { path, headers, body, json: {} };
  }
}

async function answer(
  request: FakeRequest,
  response: ServerResponse,
  reply: FakeReply,
  closing: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  const end = () => ended.abort();
  closing.addEventListener('abort', end, { once: true });
  response.once('close', end);
  const pause = () => delay(reply.delayMs ?? 0, undefined, { signal: ended.signal });
  /** Returns true if nothing more is to be sent. */
  const stopsAt = (moment: FakeMoment): boolean => {
    if (reply.drop === moment) response.destroy();
    return reply.drop === moment || reply.hang === moment;
  };
  try {
    if (stopsAt('before-headers')) return;
    const streams =
      reply.body === undefined && request.json.stream !== false && (reply.status ?? 200) === 200;
    response.writeHead(reply.status ?? 200, {
      'content-type': streams ? 'text/event-stream' : 'application/json',
      ...reply.headers,
    });
    response.flushHeaders();
    if (stopsAt('after-headers')) return;
    const [said, closingWords] = streams ? streamOf(reply) : [piecesOf(reply), []];
    for (const piece of said) {
      await pause();
      response.write(piece);
    }
    if (reply.hang === 'after-text' || reply.drop === 'after-text') await flushed(response);
    if (stopsAt('after-text')) return;
    for (const piece of closingWords) response.write(piece);
    response.end();
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    closing.removeEventListener('abort', end);
  }
}

/** Waits until the data has left this process, since a destroyed socket would drop it. */
function flushed(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => response.write(': flushed\n\n', () => setTimeout(resolve, 20)));
}

function piecesOf(reply: FakeReply): readonly (string | Uint8Array)[] {
  const { body } = reply;
  if (body === undefined) {
    return [(reply.status ?? 200) === 200 ? JSON.stringify(completionOf(reply)) : '{}'];
  }
  if (typeof body === 'string' || body instanceof Uint8Array) return [body];
  return Array.isArray(body) ? body : [JSON.stringify(body)];
}

const frame = { id: 'chatcmpl-1', created: 1, model: 'fake-model' };
const defaultUsage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };

function completionOf(reply: FakeReply): object {
  const message = {
    role: 'assistant',
    content: reply.text ?? null,
    ...(reply.reasoning === undefined ? {} : { reasoning_content: reply.reasoning }),
    ...(reply.toolCalls === undefined ? {} : { tool_calls: reply.toolCalls.map(callOf) }),
    ...reply.opaque,
  };
  const finish = reply.finishReason ?? (reply.toolCalls ? 'tool_calls' : 'stop');
  return {
    ...frame,
    object: 'chat.completion',
    choices: [{ index: 0, message, finish_reason: finish }],
    usage: reply.usage ?? defaultUsage,
  };
}

function callOf(call: FakeCall, index: number): object {
  const { name, arguments: argumentsJson } = call;
  return {
    ...call.opaque,
    index,
    id: call.id ?? `call_${index}`,
    type: 'function',
    function: { name, arguments: argumentsJson },
  };
}

/** One server-sent event. */
export function event(data: unknown): string {
  return `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

/** A chunk of a stream with this delta. */
export function chunk(delta: object, finishReason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  return event({ ...frame, object: 'chat.completion.chunk', choices });
}

/** The pieces with content, and those that finish the stream. */
function streamOf(reply: FakeReply): [string[], string[]] {
  const words = reply.text?.split(/(?<=\s)(?=\S)/) ?? [];
  const said = [
    chunk({ role: 'assistant', content: '' }),
    ...(reply.reasoning === undefined ? [] : [chunk({ reasoning_content: reply.reasoning })]),
    ...(reply.opaque === undefined ? [] : [chunk(reply.opaque)]),
    ...words.map((content) => chunk({ content })),
    ...(reply.toolCalls ?? []).map((call, index) => chunk({ tool_calls: [callOf(call, index)] })),
    ...(reply.error === undefined ? [] : [event({ error: reply.error })]),
  ];
  if (reply.error !== undefined || reply.finishReason === null) return [said, []];
  const finish = reply.finishReason ?? (reply.toolCalls ? 'tool_calls' : 'stop');
  const usage = event({
    ...frame,
    object: 'chat.completion.chunk',
    choices: [],
    usage: reply.usage ?? defaultUsage,
  });
  return [said, [chunk({}, finish), usage, event('[DONE]')]];
}
