import type { Usage } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { Said } from './reply.ts';

/**
 * A reply as one completion or as a stream.
 *
 * COMPLETIONS-1 A failure that is in the log is lasting: the same request gets it again (PICK-4), so it is a 400. What was not
 *               accepted, or not answered because the daemon stops, is a 429 or 503 with `retry-after`.
 */

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
      else if (said.kind === 'failed')
        this.fail(new ParleyError(said.refusal.code, said.refusal.message, said.refusal));
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
  /** The error if it fails before any text; null: it has begun, or ended. */
  readonly begun: Promise<ParleyError | null>;
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
  const { promise: begun, resolve: begin } = deferred<ParleyError | null>();
  const fail = (error: ParleyError) => {
    const { code, message, hint } = error;
    begin(error);
    if (!controller) return;
    event({ error: errorBody({ code, message, hint }, IN_LOG.has(code) ? 400 : 503) });
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
    if (said.kind !== 'failed') begin(null);
    if (said.kind === 'text') return void (controller && chunk({ content: said.text }, null));
    if (said.kind === 'failed')
      return fail(new ParleyError(said.refusal.code, said.refusal.message, said.refusal));
    if (!controller) return;
    chunk({}, said.reason);
    if (includeUsage && said.usage) {
      event({ ...completion, object: 'chat.completion.chunk', choices: [], usage: usageOf(said.usage) });
    }
    write('data: [DONE]\n\n');
    end();
  };
  return { body, onSaid, fail, begun };
}

/** The outcome of a request, as its conversation records it. */
const IN_LOG: ReadonlySet<string> = new Set(['AGENT_FAILED', 'AGENT_STOPPED', 'LIMIT_REACHED']);

export interface Refused {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  /** The refused field of the request. */
  readonly param?: string | null;
}

export function errorBody(refused: Refused, status: number): object {
  const { code, message, hint, param = null } = refused;
  const type = TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  return {
    message: hint ? `${message} (${hint})` : message,
    type: IN_LOG.has(code) ? 'agent_error' : type,
    param: code === 'MODEL_NOT_FOUND' ? 'model' : param,
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
