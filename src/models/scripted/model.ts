import type { AnsweredCall, Model, ModelDelta, ModelOutcome, ModelRequest } from '../../agents/model-port.ts';
import { inTime, isTimeout, sleep as realSleep } from '../../kernel/index.ts';
import { type Choice, choose } from './choose.ts';
import { loadScript } from './load.ts';
import { answered, codeOf, failed, isRetryable } from './outcomes.ts';
import { fillDeep, fillJson, type ReplyData, type Script } from './script.ts';

/**
 * A model without a network: streams answers from the rules of a script, deterministically (CHOOSE-1 in `choose.ts`).
 */
export interface ScriptedModelOptions {
  /** Resolves after the delay or when the signal aborts. */
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** The model of the script that ships with Parley. It reads the script at its first call, because that takes a while. */
export function createOfflineModel(): Model {
  let loading: Promise<Model> | null = null;
  return {
    async call(request, options) {
      loading ??= loadScript().then((script) => createScriptedModel(script));
      return (await loading).call(request, options);
    },
  };
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
      const choice = chooseInTime(script, request, errors.get(request.hash) ?? 0);
      if (choice === 'late') return failed('TIMEOUT', TOO_SLOW, false, '');
      if (choice === null) return noRule(script, request);
      const streamed = await streamAnswer(choice, { signal, onDelta, sleep });
      if (signal.aborted) return { kind: 'aborted', partial: { content: streamed.text, reasoning: '' } };
      const { error } = choice.rule.reply;
      if (!error) return answered(request, streamed, choice.rule.reply.finishReason);
      rememberError(request.hash);
      const code = error.code ?? codeOf(error.status);
      const message = filled(error.message ?? 'The script says that this call fails.', choice);
      return failed(code, message, isRetryable(code, error.status) && streamed.text === '', streamed.text);
    },
  };
}

const CHOOSE_MS = 1_000;
const TOO_SLOW = `The script needs more than ${CHOOSE_MS} ms to find its rule. Check the regular expressions of its rules: some backtrack.`;

/** An expression of the script is matched with texts of strangers, and can backtrack. Choosing changes nothing. */
function chooseInTime(script: Script, request: ModelRequest, errorsBefore: number): Choice | null | 'late' {
  try {
    return inTime(() => choose(script, request, errorsBefore), CHOOSE_MS);
  } catch (error) {
    if (isTimeout(error)) return 'late';
    throw error;
  }
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
async function streamAnswer(choice: Choice, listener: Listener): Promise<StreamedAnswer> {
  const { reply } = choice.rule;
  const { signal, onDelta, sleep } = listener;
  const words = hasText(reply) ? piecesOf(filled(reply.text, choice)) : [];
  const toolCalls: AnsweredCall[] = reply.error
    ? []
    : reply.tool_calls.map((call, position) => ({
        id: `call_${position}`,
        name: call.name,
        arguments: filledArguments(call.arguments, choice),
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

function filled<T>(template: T, { rule: { reply }, values }: Choice): T {
  return reply.verbatim ? template : (fillDeep(template, values) as T);
}

function filledArguments(written: ReplyData['tool_calls'][number]['arguments'], choice: Choice): string {
  if (typeof written !== 'string') return JSON.stringify(filled(written, choice));
  return choice.rule.reply.verbatim ? written : fillJson(written, choice.values);
}

function hasText({ error, text }: ReplyData): boolean {
  return !error || (error.afterText ?? text !== '');
}

/** Words, each with the space after it. */
function piecesOf(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\s)(?=\S)/);
}

function noRule(script: Script, request: ModelRequest): ModelOutcome {
  const message = `No rule of ${script.file} fits what ${request.agent} was asked. Add one without \`when\` at the end.`;
  return failed('NO_RULE', message, false);
}
