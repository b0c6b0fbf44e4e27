import { parse, stringify } from 'yaml';
import type { AnsweredCall, Model, ModelDelta, ModelRequest, WireMessage } from '../../agents/model-port.ts';
import { type Entry, type MessageEntry, splitFailedAnswer } from '../../conversation/index.ts';
import { inTime, isTimeout, sleep as realSleep, remember } from '../../kernel/index.ts';
import { answered, codeOf, failed, isRetryable, newestBefore, textOf } from './function-model.ts';
import {
  fillDeep,
  fillJson,
  loadScript,
  type ReplyData,
  type Rule,
  type Script,
  type Values,
} from './script.ts';

/**
 * A model without a network: streams answers from the rules of a script, deterministically (CHOOSE-1).
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

  return {
    async call(request, { signal, onDelta }) {
      const choice = chooseInTime(script, request, errors.get(request.hash) ?? 0);
      if (choice === 'late') return failed('TIMEOUT', TOO_SLOW, false, '');
      if (choice === null) {
        const message = `No rule of ${script.file} fits what ${request.agent} was asked. Add one without \`when\` at the end.`;
        return failed('NO_RULE', message, false);
      }
      const streamed = await streamAnswer(choice, { signal, onDelta, sleep });
      if (signal.aborted) return { kind: 'aborted', partial: { content: streamed.text, reasoning: '' } };
      const { error } = choice.rule.reply;
      if (!error) return answered(request, streamed, choice.rule.reply.finishReason);
      remember(errors, request.hash, (errors.get(request.hash) ?? 0) + 1, REMEMBERED_REQUESTS);
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

type Listener = Parameters<Model['call']>[1] & Required<ScriptedModelOptions>;

/** Streams the answer as deltas; stops on abort. */
async function streamAnswer(choice: Choice, { signal, onDelta, sleep }: Listener) {
  const { reply } = choice.rule;
  const hasText = !reply.error || (reply.error.afterText ?? reply.text !== '');
  const words = hasText ? piecesOf(filled(reply.text, choice)) : [];
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

/** Words, each with the space after it. */
function piecesOf(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\s)(?=\S)/);
}

/**
 * Chooses the rule of a script that answers a request. Pure.
 *
 * CHOOSE-1 The same request gets the same answer, also after a restart: `n` is derived from the request. The agent's own
 *    messages in it are earlier answers; the rules are applied to each again, with the messages before it.
 * CHOOSE-2 `n: 0` matches while the rule is unused. `n: k` matches the (k+1)-th call that its other conditions match.
 *    So the rules `n: 0`, `n: 1` and one without `n` answer in this order, and so do two rules with `n: 0`.
 *    `{{n}}` counts the uses of the rule. Messages removed by a reduction are not counted.
 * CHOOSE-3 An error leaves no message if the call is retried. So errors of this request are counted separately
 *    (`errorsBefore`); an error that a retry overcame is inferred from the answer after it.
 */
interface Choice {
  readonly rule: Rule;
  readonly values: Values;
}

interface Situation {
  readonly agent: string;
  readonly conversation: string;
  readonly mode: string;
  readonly tool: string;
  readonly last: string;
}

export function choose(script: Script, request: ModelRequest, errorsBefore: number): Choice | null {
  const { messages } = request;
  const uses = new Uses(script.rules);
  const mode = modeOf(messages);
  messages.forEach((message, index) => {
    if (message.role === 'assistant') uses.replay(situationAt(request, index, mode), message);
  });
  const now = situationAt(request, messages.length, mode);
  for (let error = 0; error < errorsBefore; error += 1) uses.next(now);
  return uses.next(now);
}

/** How often each rule was used so far. */
class Uses {
  /** `uses`: calls that the rule answered. `matches`: calls that matched all its conditions except `n`. */
  readonly #counts: readonly { readonly rule: Rule; uses: number; matches: number }[];

  constructor(rules: readonly Rule[]) {
    this.#counts = rules.map((rule) => ({ rule, uses: 0, matches: 0 }));
  }

  /** Counts the uses that led to an earlier answer. */
  replay(situation: Situation, answer: WireMessage): void {
    const isFailure = splitFailedAnswer(answer.content).failure !== null;
    // CHOOSE-3: at most as many errors as there are rules can precede an answer.
    for (let tries = 0; tries <= this.#counts.length; tries += 1) {
      const choice = this.next(situation);
      if (choice === null || isFailure || !choice.rule.reply.error) return;
    }
  }

  /** Finds the rule for one call and counts the call. */
  next(situation: Situation): Choice | null {
    let chosen: Choice | null = null;
    for (const count of this.#counts) {
      const { rule, uses, matches } = count;
      const groups = groupsIn(rule, situation);
      if (groups === null) continue;
      const isDue = rule.n === undefined || (rule.n === 0 ? uses === 0 : matches === rule.n);
      count.matches += 1;
      if (chosen !== null || !isDue) continue; // the first match answers; the others are only counted
      const { last, agent, conversation } = situation;
      chosen = { rule, values: { last, agent, conversation, n: `${rule.n ?? uses}`, ...groups } };
      count.uses += 1;
    }
    return chosen;
  }
}

/** The regex groups of `last` if all conditions except `n` match; else null. */
function groupsIn(rule: Rule, situation: Situation): Values | null {
  if (rule.agent !== undefined && rule.agent !== situation.agent) return null;
  if (rule.mode !== undefined && rule.mode !== situation.mode) return null;
  if (rule.tool !== undefined && rule.tool !== situation.tool) return null;
  if (rule.last === undefined) return {};
  if ('text' in rule.last) return situation.last.includes(rule.last.text) ? {} : null;
  const match = rule.last.expression.exec(situation.last);
  return match && Object.fromEntries(match.map((group, index) => [`${index}`, group ?? '']));
}

/** The situation when the message at `index` was requested. */
function situationAt(request: ModelRequest, index: number, mode: string): Situation {
  const { agent, conversation, messages } = request;
  const newest = newestBefore(messages, index);
  const message = messages[newest];
  const tool = message?.role === 'tool' ? toolOf(messages, newest) : '';
  return { agent, conversation, mode, tool, last: message === undefined ? '' : textOf(message) };
}

/** The tool whose result is at `index`. */
function toolOf(messages: readonly WireMessage[], index: number): string {
  const id = messages[index]?.tool_call_id;
  const caller = messages.slice(0, index).findLast((message) => message.role === 'assistant');
  return caller?.tool_calls?.find((call) => call.id === id)?.function.name ?? '';
}

/** The mode banner of the prefix. */
function modeOf(messages: readonly WireMessage[]): string {
  const [first] = messages; // its role depends on the profile of the model that the script replaces
  const prefix = first?.role === 'system' || first?.role === 'developer' ? (first.content ?? '') : '';
  return /^MODE\n- active: (\w+)$/m.exec(prefix)?.[1] ?? '';
}

/**
 * The script that repeats the answers of a conversation.
 *
 * RECORD-1 One rule for each answer of an agent, in order: the same posts get the same texts and calls. A rule for an answer
 *    that failed fails with the same code, without another attempt.
 * RECORD-2 Texts and arguments are verbatim. An object replaces the text of arguments only if it becomes the same text again.
 */
export function recordedScript(conversation: string, entries: readonly Entry[]): string {
  const answers = entries.filter(isAnswer);
  const head = `# Recorded from the conversation ${conversation}: each rule is one answer, in order.\nrules:\n`;
  const rules = answers.map((answer) => {
    const rule = { when: { agent: answer.author.id, n: 0 }, reply: replyOf(answer) };
    return `  # entry ${answer.index}\n${stringify([rule], { lineWidth: 0 }).replace(/^(?=.)/gm, '  ')}`;
  });
  return head + rules.join('');
}

function isAnswer(entry: Entry): entry is MessageEntry {
  return entry.type === 'message' && entry.role === 'assistant' && entry.author.kind === 'agent';
}

function replyOf({ content, tool_calls: calls = [], finishReason }: MessageEntry) {
  const { text, failure } = splitFailedAnswer(content ?? '');
  const reason = finishReason ?? (calls.length > 0 ? 'tool_calls' : 'stop');
  const isUsual = reason === (calls.length > 0 ? 'tool_calls' : 'stop') && (text !== '' || calls.length > 0);
  return {
    verbatim: true,
    ...(text === '' ? {} : { text }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(({ function: called }) => callOf(called)) }),
    // This status is not retried.
    ...(failure ? { error: { ...failure, status: 400 } } : isUsual ? {} : { finishReason: reason }),
  };
}

function callOf({ name, arguments: text }: { readonly name: string; readonly arguments: string }) {
  return { name, arguments: asObject(text) ?? text };
}

function asObject(text: string): object | null {
  try {
    const compact = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
    const value: unknown = parse(stringify(JSON.parse(text), { lineWidth: 0 }));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (text.includes('__proto__')) return null; // the schema of scripts drops this key
    return isObject && JSON.stringify(value) === compact ? value : null;
  } catch {
    return null;
  }
}
