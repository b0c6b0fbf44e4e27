import type { Usage } from '../../conversation/index.ts';
import { ParleyError, type Refusal } from '../../kernel/index.ts';
import type { Said } from './reply.ts';

/** A reply as one completion or as a stream. */

export interface Completion {
  readonly id: string;
  readonly model: string;
  /** Seconds since the epoch. */
  readonly created: number;
}

function usageOf({ inputTokens, cachedInputTokens = 0, outputTokens }: Usage): object {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
  };
}

/** Collects a complete reply. */
export class Whole {
  readonly done: Promise<object>;
  readonly fail: (error: unknown) => void;
  readonly #resolve: (completion: object) => void;

  constructor() {
    const { promise, resolve, reject } = deferred<object>();
    this.done = promise;
    this.fail = reject;
    this.#resolve = resolve;
  }

  begin(completion: Completion): (said: Said) => void {
    let content = '';
    return (said) => {
      if (said.kind === 'text') content += said.text;
      else if (said.kind === 'failed') this.fail(failureOf(said.refusal));
      else this.#resolve(whole(completion, content, said.reason, said.usage));
    };
  }
}

function whole(completion: Completion, content: string, reason: string, usage: Usage | null): object {
  const message = { role: 'assistant', content, refusal: null };
  return {
    ...completion,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: reason }],
    ...(usage && { usage: usageOf(usage) }),
  };
}

export interface CompletionStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly onSaid: (said: Said) => void;
  readonly fail: (error: ParleyError) => void;
}

/** A reply as server-sent events. */
export function createStream(
  completion: Completion,
  includeUsage: boolean,
  { heartbeatMs, onClosed }: { heartbeatMs: number; onClosed: () => void },
): CompletionStream {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  const write = (text: string) => controller?.enqueue(encoder.encode(text));
  const event = (body: object) => write(`data: ${JSON.stringify(body)}\n\n`);
  const chunk = (delta: object, reason: string | null) =>
    event({
      ...completion,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
      ...(includeUsage && { usage: null }),
    });
  const heart = setInterval(() => write(': still here\n\n'), heartbeatMs);
  const end = () => {
    clearInterval(heart);
    controller?.close();
    controller = null;
    onClosed();
  };
  const fail = ({ code, message, hint }: ParleyError) => {
    if (!controller) return;
    event({ error: errorBody({ code, message, hint }, 500) });
    end();
  };
  const body = new ReadableStream<Uint8Array>({
    start(started) {
      controller = started;
      chunk({ role: 'assistant', content: '' }, null);
    },
    cancel() {
      controller = null;
      end();
    },
  });
  const onSaid = (said: Said) => {
    if (said.kind === 'text') return void (controller && chunk({ content: said.text }, null));
    if (said.kind === 'failed') return fail(failureOf(said.refusal));
    if (!controller) return;
    chunk({}, said.reason);
    if (includeUsage && said.usage) {
      event({ ...completion, object: 'chat.completion.chunk', choices: [], usage: usageOf(said.usage) });
    }
    write('data: [DONE]\n\n');
    end();
  };
  return { body, onSaid, fail };
}

/** Errors that a person must fix before a retry can succeed. */
const LASTING: ReadonlySet<string> = new Set([
  'BAD_REQUEST',
  'CONTEXT_STILL_TOO_LARGE',
  'CONTEXT_TOO_LONG',
  'NOT_FOUND',
  'REDIRECTED',
  'UNAUTHORIZED',
]);

/** The agent's model failed, as the log records. Repeating the request is a new attempt. */
function failureOf({ code, message, hint }: Refusal): ParleyError {
  if (code === 'AGENT_STOPPED') return new ParleyError(code, message, { hint });
  const again = LASTING.has(code) ? '' : '; send the request again for another attempt';
  return new ParleyError('AGENT_FAILED', `${code}: ${message}`, { hint: `the log has the details${again}` });
}

export function errorBody(
  { code, message, hint }: Refusal & { hint?: string | undefined },
  status: number,
): object {
  return {
    message: hint ? `${message} (${hint})` : message,
    type: TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'),
    param: null,
    code: code === 'MODEL_NOT_FOUND' ? 'model_not_found' : code,
  };
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

function deferred<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<T>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  promise.catch(() => undefined); // handled when `done` is awaited
  return { promise, resolve, reject };
}
