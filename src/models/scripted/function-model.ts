import type {
  AnsweredCall,
  Model,
  ModelOutcome,
  ModelRequest,
  WireMessage,
} from '../../agents/model-port.ts';
import { estimateTokens, type FilePart } from '../../conversation/index.ts';
import { abortable, messageOf } from '../../kernel/index.ts';

/** A model that is a function: for tests, and for programs that answer themselves. */

export interface FunctionRequest extends ModelRequest {
  /** The text of the last message, without the `[Name]: ` that a view adds. */
  readonly last: string;
  /** The tool whose result the last message is; absent: it is no result. */
  readonly tool?: string | undefined;
  /** The files that the model is shown with what is new since its last answer. */
  readonly files: readonly FilePart[];
}

export interface FunctionCall {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

/**
 * A text, calls of tools, or both. An `Error` fails the call; with a `status` (HTTP) or a `code` of `ModelOutcome` it is
 * retried as that of a provider.
 */
export type FunctionReply =
  | string
  | readonly FunctionCall[]
  | { readonly text?: string; readonly toolCalls?: readonly FunctionCall[] }
  | Error;

export type ModelFunction = (request: FunctionRequest) => FunctionReply | Promise<FunctionReply>;

export function createFunctionModel(answer: ModelFunction): Model {
  return {
    async call(request, { signal, onDelta }) {
      const reply = signal.aborted
        ? null
        : await abortable(replyTo(request, answer), signal).catch(() => null);
      if (reply === null) return { kind: 'aborted', partial: { content: '', reasoning: '' } };
      const outcome = outcomeOf(reply, request);
      if (outcome.kind === 'answered' && outcome.answer.content !== null)
        onDelta({ type: 'text', delta: outcome.answer.content });
      return outcome;
    },
  };
}

async function replyTo(request: ModelRequest, answer: ModelFunction): Promise<FunctionReply> {
  try {
    const { messages } = request;
    const message = messages[newestBefore(messages, messages.length)];
    const since = messages.findLastIndex(({ role }) => role === 'assistant') + 1;
    const files = messages.slice(since).flatMap((one) => one.files ?? []);
    const calls = messages.flatMap((one) => one.tool_calls ?? []);
    const tool = calls.findLast(({ id }) => id === message?.tool_call_id)?.function.name;
    const reply: unknown = await answer({ ...request, last: message ? textOf(message) : '', tool, files });
    if (typeof reply === 'string' || (typeof reply === 'object' && reply !== null))
      return reply as FunctionReply;
    return new Error(
      `the function of a model returned ${reply}: a text, calls, { text, toolCalls } or an Error is an answer`,
    );
  } catch (error) {
    return error instanceof Error ? error : new Error(messageOf(error));
  }
}

function outcomeOf(reply: FunctionReply, request: ModelRequest): ModelOutcome {
  if (reply instanceof Error) return failureOf(reply);
  const { text = '', toolCalls = [] } =
    typeof reply === 'string' ? { text: reply } : 'length' in reply ? { toolCalls: reply } : reply;
  const calls = toolCalls.map(({ name, arguments: given = {} }, position) => ({
    id: `call_${position}`,
    name,
    arguments: JSON.stringify(given),
  }));
  return answered(request, { text, toolCalls: calls });
}

function failureOf(error: Error & { readonly code?: unknown; readonly status?: unknown }): ModelOutcome {
  const status = typeof error.status === 'number' ? error.status : undefined;
  const known = typeof error.code === 'string' ? error.code : undefined;
  const isPlain = known === undefined && status === undefined;
  const code = known ?? codeOf(status);
  return failed(code, error.message, !isPlain && isRetryable(code, status));
}

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

const FILE_LINES = /^(?:\[file[ :].*@blob\/[0-9a-f]{12}.*\](?:\n|$))+$/;

/** The index of the message before `end`; of a result, if a message with its files alone follows it (V19). */
export function newestBefore(messages: readonly WireMessage[], end: number): number {
  const isFiles = FILE_LINES.test(messages[end - 1]?.content ?? '') && messages[end - 2]?.role === 'tool';
  return isFiles ? end - 2 : end - 1;
}

/** The content without the `[Name]: ` that a view adds. A view escapes the same text in content. */
export function textOf(message: WireMessage): string {
  const content = message.content ?? '';
  return message.role === 'tool' ? content : content.replace(/^\[[^\]\n]+\]: /, '');
}
