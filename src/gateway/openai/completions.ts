import type { Usage } from '../../conversation/index.ts';
import { ParleyError, type Refusal } from '../../kernel/index.ts';
import type { Said } from './reply.ts';

/** A reply in the two forms that a client may ask for. */

export interface Completion {
  readonly id: string;
  readonly model: string;
  /** Seconds since the epoch. */
  readonly created: number;
}

export function usageOf({ inputTokens, cachedInputTokens = 0, outputTokens }: Usage): object {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
  };
}

/** Collects a whole reply. */
export class Whole {
  readonly done: Promise<object>;
  readonly onSaid: (said: Said) => void;
  readonly fail: (error: unknown) => void;

  constructor(completion: Completion) {
    const { promise, resolve, reject } = deferred<object>();
    let content = '';
    this.done = promise;
    this.fail = reject;
    this.onSaid = (said) => {
      if (said.kind === 'text') content += said.text;
      else if (said.kind === 'failed') reject(failureOf(said.refusal));
      else resolve(whole(completion, content, said.reason, said.usage));
    };
  }
}

function whole(completion: Completion, content: string, reason: string, usage: Usage): object {
  const message = { role: 'assistant', content, refusal: null };
  return {
    ...completion,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: reason }],
    usage: usageOf(usage),
  };
}

/** The same as events. */
export function createStream(
  completion: Completion,
  includeUsage: boolean,
  { heartbeatMs, onClosed }: { heartbeatMs: number; onClosed: () => void },
): { body: ReadableStream<Uint8Array>; onSaid: (said: Said) => void; fail: (error: ParleyError) => void } {
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
    if (includeUsage) {
      event({ ...completion, object: 'chat.completion.chunk', choices: [], usage: usageOf(said.usage) });
    }
    write('data: [DONE]\n\n');
    end();
  };
  return { body, onSaid, fail };
}

/** The agent's model failed: the log has it, and asking again would read the same. */
function failureOf({ code, message }: Refusal): ParleyError {
  return new ParleyError('AGENT_FAILED', `${code}: ${message}`, {
    hint: 'the log has the details; say something else',
  });
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
  promise.catch(() => undefined); // told when it is awaited
  return { promise, resolve, reject };
}
