import type { ModelOutcome, ModelRequest } from '../../agents/model-port.ts';
import type { Usage } from '../../conversation/index.ts';
import type { RemoteOutcome } from './port.ts';
import type { SessionEvent } from './session.ts';

/** The outcome of a call to an agent in another process: its answer, its failure, or why there was no answer. */

type Failed = Extract<ModelOutcome, { kind: 'failed' }>;
/** How the last offer ended without an answer. */
type Missed = { readonly kind: 'session' } | Exclude<RemoteOutcome, { kind: 'accepted' }> | 'silent';

/** How often a turn is offered to an agent that is silent. */
export const MAX_OFFERS = 3;

export function toolCalls(
  { message }: Extract<SessionEvent, { type: 'tool_call' }>,
  request: Pick<ModelRequest, 'body'>,
): ModelOutcome {
  const { content, calls } = message;
  const usage = bounded(message.usage, request, [
    content,
    ...calls.flatMap((call) => [call.name, call.arguments]),
  ]);
  const toolCalls = calls.map((call, position) => {
    return { id: call.id ?? `call_${position}`, name: call.name, arguments: call.arguments };
  });
  const answer = { content: content || null, toolCalls, usage, finishReason: 'tool_calls' };
  return { kind: 'answered', answer };
}

export function final(
  { message }: Extract<SessionEvent, { type: 'final' }>,
  request: Pick<ModelRequest, 'body'>,
): ModelOutcome {
  const { content, reasoning, sessionId, model, finishReason = 'stop' } = message;
  const usage = bounded(message.usage, request, [content, reasoning]);
  return {
    kind: 'answered',
    answer: { content: content ?? '', reasoning, sessionId, model, usage, toolCalls: [], finishReason },
  };
}

/** REMOTE-MODEL-7: no token is shorter than a byte. */
function bounded(
  usage: Usage | undefined,
  { body }: Pick<ModelRequest, 'body'>,
  received: readonly (string | null | undefined)[],
): Usage | undefined {
  if (!usage) return undefined;
  const sent = body.reduce((sum, bytes) => sum + bytes.length, 0);
  const inputTokens = Math.min(usage.inputTokens, sent);
  const outputTokens = Math.min(usage.outputTokens, Buffer.byteLength(received.join('')));
  const { cachedInputTokens: cached } = usage;
  return {
    inputTokens,
    ...(cached !== undefined && { cachedInputTokens: Math.min(cached, inputTokens) }),
    outputTokens,
    byAgent: true,
  };
}

export function failed(
  event: Extract<SessionEvent, { type: 'failed' | 'invalid' }>,
  agent: string,
  partial: string,
): Failed {
  const base = { kind: 'failed', partial: { content: partial, reasoning: '' }, retryable: false } as const;
  if (event.type === 'failed') {
    return { ...base, code: event.code, message: event.message || `The agent ${agent} reported a failure.` };
  }
  const advice = 'Fix the program of this agent.';
  return {
    ...base,
    code: 'INVALID_RESPONSE',
    message: `The agent ${agent} sent an invalid message: ${event.reason}. ${advice}`,
  };
}

export function failure(agent: string, last: Missed, partial: string, silenceMs: number): Failed {
  const fail = (code: string, message: string, retryable: boolean): Failed => ({
    kind: 'failed',
    code,
    message,
    partial: { content: partial, reasoning: '' },
    retryable: retryable && partial === '',
  });
  const kind = last === 'silent' ? last : last.kind;
  switch (kind) {
    case 'no-responder':
      return fail(
        'AGENT_NOT_CONNECTED',
        `The agent ${agent} is not connected. Start the program that connects as this agent (the page guides/remote-agents of Parley's documents).`,
        true,
      );
    case 'disconnected':
      return fail('NETWORK_ERROR', 'There is no connection to the NATS server now.', true);
    case 'too-large': {
      const { bytes, limit } = last as Extract<RemoteOutcome, { kind: 'too-large' }>;
      const advice = 'Raise max_payload of the server, or lower contextTokens of its model.';
      return fail(
        'AGENT_OFFER_TOO_LARGE',
        `The request to ${agent} has ${bytes} bytes and the server carries ${limit}. ${advice}`,
        false,
      );
    }
    case 'refused': {
      const { reason } = last as Extract<RemoteOutcome, { kind: 'refused' }>;
      return fail(
        'AGENT_REFUSED',
        `The agent ${agent} did not take the turn${reason && `: ${reason}`}.`,
        true,
      );
    }
    default: {
      const what = `The agent ${agent} was silent for ${silenceMs} ms, each of ${MAX_OFFERS} times that it was offered the turn.`;
      return fail('AGENT_SILENT', `${what} Is its process stuck?`, false);
    }
  }
}
