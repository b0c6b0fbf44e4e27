import type { AnsweredCall, ModelOutcome, ModelRequest } from '../../agents/model-port.ts';
import { estimateTokens } from '../../conversation/index.ts';

/** The outcomes of calls that no provider answers. */

export function answered(
  request: ModelRequest,
  { text, toolCalls }: { readonly text: string; readonly toolCalls: readonly AnsweredCall[] },
  finishReason: string = toolCalls.length > 0 ? 'tool_calls' : 'stop',
): ModelOutcome {
  const inputs = request.messages.map(
    (message) => (message.content ?? '') + JSON.stringify(message.tool_calls ?? ''),
  );
  const outputs = [text, ...toolCalls.map((call) => call.name + call.arguments)];
  return {
    kind: 'answered',
    answer: {
      content: text === '' ? null : text,
      toolCalls,
      usage: { inputTokens: estimateTokens(inputs.join('')), outputTokens: estimateTokens(outputs.join('')) },
      model: 'scripted',
      finishReason,
    },
  };
}

export function failed(code: string, message: string, retryable: boolean, text = ''): ModelOutcome {
  return { kind: 'failed', code, message, partial: { content: text, reasoning: '' }, retryable };
}

const CODE_OF_STATUS: Readonly<Record<number, string>> = {
  400: 'BAD_REQUEST',
  401: 'UNAUTHORIZED',
  403: 'UNAUTHORIZED',
  404: 'NOT_FOUND',
  408: 'TIMEOUT',
  429: 'RATE_LIMITED',
};
const RETRYABLE_CODES = ['RATE_LIMITED', 'PROVIDER_ERROR', 'NETWORK_ERROR', 'TIMEOUT', 'STREAM_BROKEN'];

export function codeOf(status: number | undefined): string {
  return (
    (status !== undefined && CODE_OF_STATUS[status]) ||
    (status !== undefined && status < 500 ? 'BAD_REQUEST' : 'PROVIDER_ERROR')
  );
}

/** As with a real provider, the status decides if there is one. */
export function isRetryable(code: string, status: number | undefined): boolean {
  if (status === undefined) return RETRYABLE_CODES.includes(code);
  return status >= 500 || [408, 409, 425, 429].includes(status);
}
