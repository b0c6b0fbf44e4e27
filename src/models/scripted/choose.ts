import type { ModelRequest, WireMessage } from '../../agents/model-port.ts';
import { splitFailedAnswer } from '../../conversation/index.ts';
import type { Rule, Script, Values } from './script.ts';

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
export interface Choice {
  readonly rule: Rule;
  readonly values: Values;
}

interface Count {
  /** Calls that the rule answered. */
  uses: number;
  /** Calls that matched all its conditions except `n`. */
  matches: number;
}
type Counts = Map<Rule, Count>;

interface Situation {
  readonly agent: string;
  readonly conversation: string;
  readonly mode: string;
  readonly tool: string;
  readonly last: string;
}

export function choose(script: Script, request: ModelRequest, errorsBefore: number): Choice | null {
  const { messages } = request;
  const counts: Counts = new Map(script.rules.map((rule) => [rule, { uses: 0, matches: 0 }]));
  const mode = modeOf(messages);
  messages.forEach((message, index) => {
    if (message.role === 'assistant') replay(script, counts, situationAt(request, index, mode), message);
  });
  const now = situationAt(request, messages.length, mode);
  for (let error = 0; error < errorsBefore; error += 1) use(script, counts, now);
  return use(script, counts, now);
}

/** Counts the uses that led to an earlier answer. */
function replay(script: Script, counts: Counts, situation: Situation, answer: WireMessage): void {
  const isFailure = splitFailedAnswer(answer.content).failure !== null;
  // CHOOSE-3: at most as many errors as there are rules can precede an answer.
  for (let tries = 0; tries <= script.rules.length; tries += 1) {
    const choice = use(script, counts, situation);
    if (choice === null || isFailure || !choice.rule.reply.error) return;
  }
}

/** Finds the rule for one call and counts the call. */
function use(script: Script, counts: Counts, situation: Situation): Choice | null {
  let chosen: Choice | null = null;
  for (const rule of script.rules) {
    const count = counts.get(rule);
    const groups = groupsIn(rule, situation);
    if (count === undefined || groups === null) continue;
    const isDue = rule.n === undefined || (rule.n === 0 ? count.uses === 0 : count.matches === rule.n);
    count.matches += 1;
    if (chosen !== null || !isDue) continue; // the first match answers; the others are only counted
    chosen = { rule, values: { ...valuesOf(situation, rule.n ?? count.uses), ...groups } };
    count.uses += 1;
  }
  return chosen;
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

function valuesOf(situation: Situation, n: number): Values {
  const { last, agent, conversation } = situation;
  return { last, agent, conversation, n: `${n}` };
}

/** The situation when the message at `index` was requested. */
function situationAt(request: ModelRequest, index: number, mode: string): Situation {
  const { agent, conversation, messages } = request;
  const message = messages[index - 1];
  const tool = message?.role === 'tool' ? toolOf(messages, index - 1) : '';
  return { agent, conversation, mode, tool, last: message === undefined ? '' : textOf(message) };
}

/** The content without the `[Name]: ` that a view adds. A view escapes the same text in content. */
export function textOf(message: WireMessage): string {
  const content = message.content ?? '';
  return message.role === 'tool' ? content : content.replace(/^\[[^\]\n]+\]: /, '');
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
