import type { CallersCall, Usage } from '../../conversation/index.ts';
import { asError, ParleyError } from '../../kernel/index.ts';
import { callerCallId } from '../client-ids.ts';
import { publicErrorOf } from '../problem.ts';
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

function usageOf({ inputTokens, cachedInputTokens = 0, outputTokens, reasoningTokens = 0 }: Usage): object {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  };
}

/** A reply as one completion; throws why there is none. */
export async function wholeCompletion(completion: Completion, reply: AsyncIterable<Said>): Promise<object> {
  let content = '';
  let calls: readonly CallersCall[] = [];
  for await (const said of reply) {
    if (said.kind === 'failed') throw asError(said.refusal);
    if (said.kind === 'text') content += said.text;
    if (said.kind === 'calls') calls = said.calls;
    if (said.kind !== 'end') continue;
    const called = calls.length > 0 && { tool_calls: calls.map(calledTool) };
    const message = {
      role: 'assistant',
      content: called ? content || null : content,
      refusal: null,
      ...called,
    };
    return {
      ...completion,
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: said.reason }],
      ...(said.usage && { usage: usageOf(said.usage) }),
    };
  }
  throw stopping();
}

/** The reply was left before its end. */
export function stopping(): ParleyError {
  return new ParleyError('STOPPING', 'the daemon stops; the log will have the answer', {
    hint: 'ask again later',
  });
}

function calledTool({ asked, place, tool: name, arguments: given }: CallersCall) {
  const id = callerCallId(asked, place.position);
  return { id, type: 'function', function: { name, arguments: given } };
}

/** As models stream them: first what is called, then its arguments. */
function callDeltas(calls: readonly CallersCall[]): object[] {
  return calls.flatMap((call, index) => {
    const { function: called, ...known } = calledTool(call);
    const begun = { index, ...known, function: { ...called, arguments: '' } };
    return [begun, { index, function: { arguments: called.arguments } }].map((one) => ({
      tool_calls: [one],
    }));
  });
}

/** A reply as server-sent events. `onFault`: called with bugs. */
export async function* completionFrames(
  completion: Completion,
  reply: AsyncIterable<Said>,
  includeUsage: boolean,
  onFault: (error: unknown) => void,
): AsyncGenerator<string> {
  const event = (body: object) => `data: ${JSON.stringify(body)}\n\n`;
  const chunk = (delta: object, reason: string | null) =>
    event({
      ...completion,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
      ...(includeUsage && { usage: null }),
    });
  yield chunk({ role: 'assistant', content: '' }, null);
  try {
    for await (const said of reply) {
      if (said.kind === 'failed') throw asError(said.refusal);
      if (said.kind === 'text') yield chunk({ content: said.text }, null);
      if (said.kind === 'calls') for (const delta of callDeltas(said.calls)) yield chunk(delta, null);
      if (said.kind !== 'end') continue;
      yield chunk({}, said.reason);
      const { usage } = said;
      if (includeUsage && usage)
        yield event({ ...completion, object: 'chat.completion.chunk', choices: [], usage: usageOf(usage) });
      yield 'data: [DONE]\n\n';
      return;
    }
    throw stopping();
  } catch (error) {
    const { code, message, hint } = publicErrorOf(error, onFault);
    yield event({ error: errorBody({ code, message, hint }, IN_LOG.has(code) ? 400 : 503) });
  }
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
