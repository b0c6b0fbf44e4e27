import type { ModelRequest, WireMessage } from '../../agents/model-port.ts';
import type { Rule, Script } from './script.ts';
import type { Values } from './template.ts';

/**
 * Which rule of a script answers a request. Pure.
 *
 * CHOOSE-1 The same request gets the same answer, today or after a restart: `n` is found in the request itself. The
 *    agent's own messages in it are answers that were given before; the rules are applied again to each, with
 *    the messages that stood before it. A counter in memory would start anew with the process.
 * CHOOSE-2 `n: 0` fits while the rule has not been used. `n: k` fits at the (k+1)-th call that its other conditions fit.
 *    So the rules `n: 0`, `n: 1` and one without `n` answer in this order, and so do two rules with `n: 0`.
 *    `{{n}}` counts the uses of the rule. What a reduced history has forgotten is not counted.
 * CHOOSE-3 An error leaves no message when the call is tried again, so errors of this very request count on top
 *    (`errorsBefore`), and one that was got over is told by the answer that followed it.
 */
export interface Choice {
  readonly rule: Rule;
  readonly values: Values;
}

interface Count {
  /** Calls that it answered. */
  uses: number;
  /** Calls that all its conditions but `n` fitted. */
  fits: number;
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
  const counts: Counts = new Map(script.rules.map((rule) => [rule, { uses: 0, fits: 0 }]));
  const mode = modeOf(messages);
  messages.forEach((message, index) => {
    if (message.role === 'assistant') replay(script, counts, situationAt(request, index, mode), message);
  });
  const now = situationAt(request, messages.length, mode);
  for (let error = 0; error < errorsBefore; error += 1) use(script, counts, now);
  return use(script, counts, now);
}

/** Counts what led to an answer that was given before. */
function replay(script: Script, counts: Counts, situation: Situation, answer: WireMessage): void {
  const isFailure = /(^|\n)LLM_ERROR \{/.test(answer.content ?? '');
  // CHOOSE-3: more rules than there are cannot have failed before one answered.
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
    const isTime = rule.n === undefined || (rule.n === 0 ? count.uses === 0 : count.fits === rule.n);
    count.fits += 1;
    if (chosen !== null || !isTime) continue; // the first that fits; the others are only counted
    chosen = { rule, values: { ...valuesOf(situation, rule.n ?? count.uses), ...groups } };
    count.uses += 1;
  }
  return chosen;
}

/** The groups of `last` by number when the conditions fit, `n` left aside; else null. */
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

/** What stood last when the message at `index` was asked for. */
function situationAt(request: ModelRequest, index: number, mode: string): Situation {
  const { agent, conversation, messages } = request;
  const message = messages[index - 1];
  const tool = message?.role === 'tool' ? toolOf(messages, index - 1) : '';
  return { agent, conversation, mode, tool, last: message === undefined ? '' : textOf(message) };
}

/** The content without the `[Name]: ` that a view adds; a person's own such words are escaped there. */
function textOf(message: WireMessage): string {
  const content = message.content ?? '';
  return message.role === 'tool' ? content : content.replace(/^\[[^\]\n]+\]: /, '');
}

/** The name of the tool whose result stands at `index`. */
function toolOf(messages: readonly WireMessage[], index: number): string {
  const id = messages[index]?.tool_call_id;
  const caller = messages.slice(0, index).findLast((message) => message.role === 'assistant');
  return caller?.tool_calls?.find((call) => call.id === id)?.function.name ?? '';
}

/** The mode banner of the prefix. */
function modeOf(messages: readonly WireMessage[]): string {
  const prefix = messages[0]?.role === 'system' ? (messages[0].content ?? '') : '';
  return /^MODE\n- active: (\w+)$/m.exec(prefix)?.[1] ?? '';
}
