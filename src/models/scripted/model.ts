import type { AnsweredCall, Model, ModelDelta, ModelOutcome, ModelRequest } from '../../agents/model-port.ts';
import { sleep as realSleep } from '../../kernel/index.ts';
import { type Choice, choose } from './choose.ts';
import type { ReplyData, Script } from './script.ts';
import { fill, fillDeep } from './template.ts';

/**
 * A model without a network: answers by the rules of a script, streaming, the same every time (CHOOSE-1 in `choose.ts`).
 */
export interface ScriptedModelOptions {
  /** Resolves after so many milliseconds, or when the signal aborts. */
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** Requests whose errors are remembered (CHOOSE-3): more are never under way at once. */
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
      const spoken = await speak(choice, { signal, onDelta, sleep });
      const partial = { content: spoken.text, reasoning: '' };
      if (signal.aborted) return { kind: 'aborted', partial };
      const { error } = choice.rule.reply;
      if (!error) return answered(request, spoken, choice.rule.reply.finishReason);
      rememberError(request.hash);
      const code = error.code ?? codeOf(error.status);
      return {
        kind: 'failed',
        code,
        message: fill(error.message ?? 'The script says that this call fails.', choice.values),
        partial,
        retryable: isPassing(code, error.status) && spoken.text === '',
      };
    },
  };
}

interface Spoken {
  readonly text: string;
  readonly toolCalls: readonly AnsweredCall[];
}

interface Listener {
  readonly signal: AbortSignal;
  readonly onDelta: (delta: ModelDelta) => void;
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** Gives the answer piece by piece, and stops where it is aborted. */
async function speak({ rule: { reply }, values }: Choice, listener: Listener): Promise<Spoken> {
  const { signal, onDelta, sleep } = listener;
  const words = isTextGiven(reply) ? piecesOf(fill(reply.text, values)) : [];
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
  // What ends with an error, or says nothing in between, takes its time too.
  if (reply.delayMs > 0 && (reply.error || deltas.length === 1)) await sleep(reply.delayMs, signal);
  return { text, toolCalls };
}

function isTextGiven({ error, text }: ReplyData): boolean {
  return !error || (error.afterText ?? text !== '');
}

/** Word by word, with the space behind each. */
function piecesOf(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\s)(?=\S)/);
}

function answered(
  request: ModelRequest,
  { text, toolCalls }: Spoken,
  finishReason: string = toolCalls.length > 0 ? 'tool_calls' : 'stop',
): ModelOutcome {
  const asked = request.messages.map(
    (message) => (message.content ?? '') + JSON.stringify(message.tool_calls ?? ''),
  );
  const said = [text, ...toolCalls.map((call) => call.name + call.arguments)];
  return {
    kind: 'answered',
    answer: {
      content: text === '' ? null : text,
      toolCalls,
      usage: { inputTokens: estimateTokens(asked), outputTokens: estimateTokens(said) },
      model: 'scripted',
      finishReason,
    },
  };
}

/** Four ASCII characters are about one token, any other one is one. */
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
const PASSING_CODES = ['RATE_LIMITED', 'PROVIDER_ERROR', 'NETWORK_ERROR', 'TIMEOUT', 'STREAM_BROKEN'];

function codeOf(status: number | undefined): string {
  return (
    (status !== undefined && CODE_OF_STATUS[status]) ||
    (status !== undefined && status < 500 ? 'BAD_REQUEST' : 'PROVIDER_ERROR')
  );
}

/** As with a real provider: the status decides where there is one. */
function isPassing(code: string, status: number | undefined): boolean {
  if (status === undefined) return PASSING_CODES.includes(code);
  return status >= 500 || [408, 409, 425, 429].includes(status);
}
