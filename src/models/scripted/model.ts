import type { AnsweredCall, Model, ModelDelta, ModelOutcome, ModelRequest } from '../../agents/model-port.ts';
import { sleep as realSleep } from '../../kernel/index.ts';
import { type Choice, choose } from './choose.ts';
import type { ReplyData, Script } from './script.ts';
import { fill, fillDeep } from './template.ts';

/**
 * A model without a network: streams answers from the rules of a script, deterministically (CHOOSE-1 in `choose.ts`).
 */
export interface ScriptedModelOptions {
  /** Resolves after the delay or when the signal aborts. */
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** Maximum of requests whose errors are counted (CHOOSE-3): more never run at once. */
const REMEMBERED_REQUESTS = 1_000;

export function createScriptedModel(script: Script, options: ScriptedModelOptions = {}): Model {
  const sleep = options.sleep ?? realSleep;
  const errors = new Map<string, number>();

  function rememberError(hash: string): void {
    errors.set(hash, (errors.get(hash) ?? 0) + 1);
    const [oldest] = errors.keys();
    if (errors.size > REMEMBERED_REQUESTS && oldest !== undefined) errors.delete(oldest);
  }

  return {
    async call(request, { signal, onDelta }) {
      const choice = choose(script, request, errors.get(request.hash) ?? 0);
      if (choice === null) return noRule(script, request);
      const streamed = await streamAnswer(choice, { signal, onDelta, sleep });
      const partial = { content: streamed.text, reasoning: '' };
      if (signal.aborted) return { kind: 'aborted', partial };
      const { error } = choice.rule.reply;
      if (!error) return answered(request, streamed, choice.rule.reply.finishReason);
      rememberError(request.hash);
      const code = error.code ?? codeOf(error.status);
      return {
        kind: 'failed',
        code,
        message: fill(error.message ?? 'The script says that this call fails.', choice.values),
        partial,
        retryable: isRetryable(code, error.status) && streamed.text === '',
      };
    },
  };
}

interface StreamedAnswer {
  readonly text: string;
  readonly toolCalls: readonly AnsweredCall[];
}

interface Listener {
  readonly signal: AbortSignal;
  readonly onDelta: (delta: ModelDelta) => void;
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** Streams the answer as deltas; stops on abort. */
async function streamAnswer(
  { rule: { reply }, values }: Choice,
  listener: Listener,
): Promise<StreamedAnswer> {
  const { signal, onDelta, sleep } = listener;
  const words = hasText(reply) ? piecesOf(fill(reply.text, values)) : [];
  const toolCalls: AnsweredCall[] = reply.error
    ? []
    : reply.tool_calls.map((call, position) => ({
        id: `call_${position}`,
        name: call.name,
        arguments: JSON.stringify(fillDeep(call.arguments, values)),
      }));
  const deltas: ModelDelta[] = [
    ...words.map((delta) => ({ type: 'text', delta }) as const),
    ...toolCalls.map(
      (call, position) =>
        ({ type: 'tool_call_delta', position, name: call.name, delta: call.arguments }) as const,
    ),
  ];
  let text = '';
  for (const [index, delta] of deltas.entries()) {
    if (index > 0 && reply.delayMs > 0) await sleep(reply.delayMs, signal);
    if (signal.aborted) return { text, toolCalls: [] };
    if (delta.type === 'text') text += delta.delta;
    onDelta(delta);
  }
  // The delay also applies to an error and to an answer of one delta.
  if (reply.delayMs > 0 && (reply.error || deltas.length === 1)) await sleep(reply.delayMs, signal);
  return { text, toolCalls };
}

function hasText({ error, text }: ReplyData): boolean {
  return !error || (error.afterText ?? text !== '');
}

/** Words, each with the space after it. */
function piecesOf(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\s)(?=\S)/);
}

function answered(
  request: ModelRequest,
  { text, toolCalls }: StreamedAnswer,
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
      usage: { inputTokens: estimateTokens(inputs), outputTokens: estimateTokens(outputs) },
      model: 'scripted',
      finishReason,
    },
  };
}

/** About four ASCII characters per token; any other character is one token. */
function estimateTokens(texts: readonly string[]): number {
  let ascii = 0;
  let others = 0;
  for (const character of texts.join('')) {
    if (character.charCodeAt(0) < 128) ascii += 1;
    else others += 1;
  }
  return Math.ceil(ascii / 4) + others;
}

function noRule(script: Script, request: ModelRequest): ModelOutcome {
  return {
    kind: 'failed',
    code: 'NO_RULE',
    message: `No rule of ${script.file} fits what ${request.agent} was asked. Add one without \`when\` at the end.`,
    partial: { content: '', reasoning: '' },
    retryable: false,
  };
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

function codeOf(status: number | undefined): string {
  return (
    (status !== undefined && CODE_OF_STATUS[status]) ||
    (status !== undefined && status < 500 ? 'BAD_REQUEST' : 'PROVIDER_ERROR')
  );
}

/** As with a real provider, the status decides if there is one. */
function isRetryable(code: string, status: number | undefined): boolean {
  if (status === undefined) return RETRYABLE_CODES.includes(code);
  return status >= 500 || [408, 409, 425, 429].includes(status);
}
