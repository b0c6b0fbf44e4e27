import type OpenAI from 'openai';
import type {
  HeaderValue,
  HiddenValue,
  Model,
  ModelDelta,
  ModelOutcome,
  ModelRequest,
} from '../../agents/model-port.ts';
import { MAX_TIMER_MS, messageOf, systemClock } from '../../kernel/index.ts';
import { type AnswerReader, createAnswerReader } from './answer-reader.ts';
import { createProviderClient, type ProviderOptions } from './client.ts';
import { type Fault, faultOfResponse } from './faults.ts';
import { type HttpRequest, isSuccess, post, textOfBody } from './http-post.ts';
import { parse } from './json.ts';
import { faultOfNetwork } from './network-faults.ts';

/**
 * One attempt at a chat completion with any compatible endpoint.
 *
 * OPENAI-MODEL-1 The bytes of `request.body` are sent unchanged.
 * OPENAI-MODEL-2 Every expected failure is a value. It is retryable only if no delta was delivered.
 * OPENAI-MODEL-3 Socket, timer and listeners are released at the end of the call, whatever its outcome.
 * OPENAI-MODEL-4 No message contains the key or the value of a configured header.
 * OPENAI-MODEL-5 A complete answer counts, however its connection ends.
 * OPENAI-MODEL-6 An endless answer is cut at `MAX_BYTES`, which bounds the memory. The partial answer is kept.
 */
export interface OpenAiModelOptions extends ProviderOptions {
  /** Timeout for the first delta and for each next one. Milliseconds. */
  readonly timeoutMs: number;
}

/** OPENAI-MODEL-6. The longest answers take about 10 MB when each token is an event. */
const MAX_BYTES = 128 * 1024 * 1024;
/** How long a complete answer waits for its usage, and then for the end of the body, so that the connection is reused. */
const USAGE_WAIT_MS = 5_000;
const CLOSE_WAIT_MS = 100;

/** Throws `CONFIG_INVALID` for an invalid baseURL, key or header. */
export function createOpenAiModel(options: OpenAiModelOptions): Model {
  const client = createProviderClient(options);
  return {
    async call(request, { signal, onDelta }) {
      const watch = createWatch(signal);
      try {
        return await attempt({ client, options, request, watch, onDelta });
      } finally {
        watch.release(); // OPENAI-MODEL-3
      }
    },
  };
}

interface Attempt {
  readonly client: OpenAI;
  readonly options: OpenAiModelOptions;
  readonly request: ModelRequest;
  readonly watch: Watch;
  readonly onDelta: (delta: ModelDelta) => void;
}

async function attempt(context: Attempt): Promise<ModelOutcome> {
  const { watch, options } = context;
  const reader = createAnswerReader();
  const fail = (fault: Fault, gaveDelta: boolean): ModelOutcome => failed(context, reader, fault, gaveDelta);
  if (watch.state() === 'aborted') return { kind: 'aborted', partial: reader.partial() };
  watch.expectWithin(options.timeoutMs);
  const response = await send(context);
  if (watch.state() === 'aborted') return { kind: 'aborted', partial: reader.partial() };
  if (response.kind === 'fault') return fail(response.fault, false);

  let gaveDelta = false;
  const give = (deltas: readonly ModelDelta[]): void => {
    for (const delta of deltas) {
      if (watch.state() === 'aborted') return;
      gaveDelta = true;
      context.onDelta(delta);
    }
    if (deltas.length > 0) watch.expectWithin(options.timeoutMs);
  };
  const ending = await readBody(response.body, reader, watch, give);
  if (watch.state() === 'aborted') return { kind: 'aborted', partial: reader.partial() };
  if (ending !== null && !reader.isWhole() && !reader.isClosed()) {
    return fail(watch.state() === 'expired' ? timeout(options, gaveDelta) : ending, gaveDelta);
  }
  const { deltas, result } = reader.end();
  give(deltas);
  if (watch.state() === 'aborted') return { kind: 'aborted', partial: reader.partial() };
  return result.kind === 'whole'
    ? { kind: 'answered', answer: result.answer }
    : fail(result.fault, gaveDelta);
}

type Sent =
  | { readonly kind: 'body'; readonly body: AsyncIterable<Uint8Array> }
  | { readonly kind: 'fault'; readonly fault: Fault };

async function send(context: Attempt): Promise<Sent> {
  const { options, watch } = context;
  let made: HttpRequest;
  try {
    made = await requestOf(context);
  } catch (error) {
    const message = `The request could not be made: ${messageOf(error)}.`;
    return { kind: 'fault', fault: { code: 'BAD_REQUEST', message, retryable: false } };
  }
  try {
    const answer = await post(made, watch.signal);
    if (isSuccess(answer)) return { kind: 'body', body: answer };
    const { statusCode: status = 0 } = answer;
    const headers = { get: (name: string) => answer.headers[name]?.toString() ?? null };
    const text = await textOfBody(answer).catch(() => ''); // broken off or aborted: the status is known
    const body = parse(text) ?? text;
    return { kind: 'fault', fault: faultOfResponse({ status, body, headers }, systemClock()) };
  } catch (error) {
    if (watch.state() === 'expired') return { kind: 'fault', fault: timeout(options, false) };
    return { kind: 'fault', fault: faultOfNetwork(error, shownUrl(options)) };
  }
}

async function requestOf({ client, request, options }: Attempt): Promise<HttpRequest> {
  const { req, url } = await client.buildRequest({
    method: 'post',
    path: '/chat/completions',
    body: request.body,
    headers: {
      ...revealed(request),
      'content-type': 'application/json',
      accept: 'text/event-stream, application/json',
    },
    timeout: Math.max(1, Math.ceil(options.timeoutMs)),
  });
  return { url, headers: req.headers, body: request.body }; // OPENAI-MODEL-1
}

/** Reads until the body ends or the rest does not matter. Returns why it was cut, or null. */
async function readBody(
  body: AsyncIterable<Uint8Array>,
  reader: AnswerReader,
  watch: Watch,
  give: (deltas: readonly ModelDelta[]) => void,
): Promise<Fault | null> {
  const source = body[Symbol.asyncIterator]();
  let stage: 'answer' | 'usage' | 'close' = 'answer';
  let bytes = 0;
  try {
    for (;;) {
      const next = await source.next().catch(() => null);
      if (next === null || watch.state() !== 'waiting') return BROKEN_OFF;
      if (next.done) return null;
      bytes += next.value.length;
      if (bytes > MAX_BYTES) return TOO_LARGE;
      give(reader.push(next.value));
      if (reader.isClosed() && stage !== 'close') {
        stage = 'close';
        watch.expectWithin(CLOSE_WAIT_MS);
      } else if (reader.isWhole() && stage === 'answer') {
        stage = 'usage'; // OPENAI-MODEL-5
        watch.expectWithin(USAGE_WAIT_MS);
      }
    }
  } finally {
    await source.return?.(); // OPENAI-MODEL-3: closes a connection whose answer was cut
  }
}

const BROKEN_OFF: Fault = {
  code: 'NETWORK_ERROR',
  message: 'The connection to the provider broke off in the middle of its answer. Try again.',
  retryable: true,
};

const TOO_LARGE: Fault = {
  code: 'ANSWER_TOO_LARGE',
  message: `The provider sent more than ${MAX_BYTES / 1024 / 1024} MiB for one answer, which was broken off. Check maxOutputTokens, and whether the model repeats itself.`,
  retryable: false,
};

function timeout(options: OpenAiModelOptions, gaveDelta: boolean): Fault {
  const seconds = options.timeoutMs / 1000;
  const what = gaveDelta
    ? `The provider fell silent for ${seconds} s in the middle of its answer.`
    : `${shownUrl(options)} gave no answer within ${seconds} s.`;
  return { code: 'TIMEOUT', message: `${what} Try again, or allow it more time.`, retryable: true };
}

function failed(
  { options, request }: Attempt,
  reader: AnswerReader,
  fault: Fault,
  gaveDelta: boolean,
): ModelOutcome {
  const retryable = fault.retryable && !gaveDelta; // OPENAI-MODEL-2
  const outcome = {
    kind: 'failed',
    code: fault.code,
    message: redact(fault.message, options, request),
    partial: reader.partial(),
    retryable,
  } as const;
  return retryable && fault.afterMs !== undefined ? { ...outcome, afterMs: fault.afterMs } : outcome;
}

/** OPENAI-MODEL-4: some providers quote the key that they refuse. */
function redact(message: string, { apiKey = '', headers = {} }: OpenAiModelOptions, request: ModelRequest) {
  const hidden = Object.values(request.headers).flatMap((value) => (isHidden(value) ? [value.reveal()] : []));
  const secrets = [apiKey, ...Object.values(headers), ...hidden].filter((text) => text.length > 3);
  return secrets.reduce((text, secret) => text.replaceAll(secret, '***'), message);
}

function revealed({ headers }: ModelRequest): Record<string, string> {
  const pairs = Object.entries(headers).map(([name, value]) => [
    name,
    isHidden(value) ? value.reveal() : value,
  ]);
  return Object.fromEntries(pairs);
}

function isHidden(value: HeaderValue): value is HiddenValue {
  return typeof value !== 'string';
}

function shownUrl(options: OpenAiModelOptions): string {
  const url = new URL(options.baseURL);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

/**
 * One signal for both early ends of a call: the caller's abort and the timeout.
 *
 * OPENAI-MODEL-W-1 `release` removes the listener from the caller's signal, which lives longer.
 */
interface Watch {
  readonly signal: AbortSignal;
  /** `aborted` (by the caller) has precedence over `expired`. */
  state(): 'waiting' | 'aborted' | 'expired';
  /** Restarts the timeout. */
  expectWithin(milliseconds: number): void;
  release(): void;
}

function createWatch(caller: AbortSignal): Watch {
  const own = new AbortController();
  let isExpired = false;
  let timer: NodeJS.Timeout | undefined;
  let wait = 0;
  const abort = (): void => own.abort();
  caller.addEventListener('abort', abort, { once: true });
  const expire = (): void => {
    isExpired = true;
    own.abort();
  };
  return {
    signal: own.signal,
    state: () => (caller.aborted ? 'aborted' : isExpired ? 'expired' : 'waiting'),
    expectWithin(milliseconds) {
      if (timer && milliseconds === wait) return void timer.refresh();
      wait = milliseconds;
      clearTimeout(timer);
      timer = setTimeout(expire, Math.min(milliseconds, MAX_TIMER_MS));
    },
    release() {
      clearTimeout(timer);
      caller.removeEventListener('abort', abort); // OPENAI-MODEL-W-1
    },
  };
}
