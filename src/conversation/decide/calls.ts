import { inOneLine, isJson, nearest, type Refusal, readArguments, refusal } from '../../kernel/index.ts';
import { offeredBy } from '../log/client-tools.ts';
import type { ToolCall } from '../log/entry.ts';
import { argumentsCutMessage, type Cut, cutBy } from '../log/finish-reason.ts';
import { agentNamed } from '../state/answering.ts';
import {
  agentState,
  type ConversationState,
  isStopped,
  type OpenCall,
  ownerOf,
  type Turn,
} from '../state/state.ts';
import type { WaitingEntry } from '../state/waiting.ts';
import {
  AWAITED_TOOLS,
  type ConversationToolName,
  isConversationTool,
  parseArguments,
  type ToolArguments,
} from '../tools/conversation-tools.ts';
import type { CallStep } from './call-step.ts';
import type { Post } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { addDismissed, addHired, type Maker } from './hiring.ts';
import { completeNode } from './runs.ts';
import { requestTool, toolsAt } from './tools.ts';
import { addLimit, stoppedMessage } from './turn-entries.ts';

/**
 * Handles the tool calls of a model's answer.
 *
 * CALLS-1 A call that cannot be carried out gets an error result with the reason. Its arguments are never guessed.
 * CALLS-2 A call that changes the conversation is carried out in the append that contains its result.
 * CALLS-3 `delegate` and `ask` stay open until they are answered. `handoff` and `complete_node` end the turn, after
 *         every other call of the answer has its result.
 * CALLS-5 A call of a tool that the trigger brought stays open until the author of the trigger answers it.
 * CALLS-4 A call with arguments that were cut at the end of the answer does not run.
 */

/** Begins one call of an assistant entry that was just appended. */
export function beginCall(step: CallStep): void {
  const { builder, turn, call } = step;
  const cut = cutIn(builder, call);
  if (cut) step.refuse('ARGUMENTS_CUT', argumentsCutMessage(cut));
  else if (call.atCaller) checkCallersCall(step);
  else if (!isConversationTool(call.name)) requestTool(step);
  else if (!toolsAt(builder, turn.agent, call.upTo).includes(call.name))
    step.refuse('TOOL_NOT_AVAILABLE', `you have no tool ${call.name}`);
  else if (call.name !== 'handoff' && call.name !== 'complete_node') carryOut(step, call.name);
}

/** What cut the arguments of this call; null: they are complete, since a closed JSON object cannot continue. */
function cutIn(builder: DecisionBuilder, { place, arguments: text }: OpenCall): Cut | null {
  const asked = builder.entryAt(place.index);
  const cut = asked?.type === 'message' ? cutBy(asked.finishReason) : null;
  return cut && !isJson(text) ? cut : null;
}

/** Carries out a call that ends the turn (CALLS-3). True: the turn is over. */
export function closeCall(step: CallStep): boolean {
  return carryOut(step, step.call.name === 'handoff' ? 'handoff' : 'complete_node');
}

type Handlers = {
  /** True: the turn is over. */
  readonly [N in ConversationToolName]: (step: CallStep, given: ToolArguments<N>) => boolean;
};

const HANDLERS: Handlers = {
  set_phase: setPhase,
  delegate,
  ask: () => false, // stays open; the call contains the question
  hire,
  dismiss,
  handoff: handOff,
  complete_node: completeNode,
};

function carryOut<N extends ConversationToolName>(step: CallStep, name: N): boolean {
  const parsed = parseArguments(name, step.call.arguments);
  return parsed.ok ? HANDLERS[name](step, parsed.value) : step.refuse('INVALID_ARGUMENTS', parsed.message);
}

function setPhase(step: CallStep, { phase, reason }: ToolArguments<'set_phase'>): boolean {
  const illegal = illegalPhase(step.builder, phase);
  if (illegal) return step.refuse('ILLEGAL_PHASE', illegal);
  enterPhase(step, phase, reason);
  step.addResult({ content: `The phase is now ${phase}.` });
  return false;
}

/** Why an agent may not enter this phase now; null: it may. */
function illegalPhase(builder: DecisionBuilder, phase: string): string | null {
  const from = builder.state.phase;
  const { phases } = builder.context;
  const next = Object.hasOwn(phases, from) ? (phases[from]?.next ?? []) : [];
  if (phase === from || next.includes(phase)) return null;
  return `from phase ${from} you may enter ${[...next, from].join(', ')}; not ${phase}`;
}

function enterPhase({ builder, turn, author }: CallStep, phase: string, reason: string): void {
  builder.add({
    type: 'phase-entered',
    author,
    from: builder.state.phase,
    to: phase,
    by: author.name,
    reason,
    turnId: turn.turnId,
  });
}

function delegate(step: CallStep, { to: named, request, schema }: ToolArguments<'delegate'>): boolean {
  const { builder, turn, call, author } = step;
  const found = receiver(step, named);
  if (!found.ok) return step.refuseWith(found.refusal);
  const to = found.slug;
  const refused = unreachable(step, to) ?? delegationCircle(step, to);
  if (refused) return step.refuseWith(refused);
  const fault = schema && builder.context.tools.schemaFault?.(schema);
  if (fault) return step.refuse('INVALID_ARGUMENTS', `delegate: schema: ${fault}`);
  builder.add({
    type: 'delegation-requested',
    author,
    turnId: turn.turnId,
    from: turn.agent,
    to,
    request,
    ...(schema && { schema }),
    call: call.place,
    hops: turn.hops + 1,
  });
  return false;
}

function handOff(step: CallStep, { to: named, summary, phase }: ToolArguments<'handoff'>): boolean {
  const { builder, turn, call, author } = step;
  const found = receiver(step, named);
  if (!found.ok) return step.refuseWith(found.refusal);
  const to = found.slug;
  const refused = unreachable(step, to) ?? delegated(turn);
  if (refused) return step.refuseWith(refused);
  const illegal = phase === undefined ? null : illegalPhase(builder, phase);
  if (illegal) return step.refuse('ILLEGAL_PHASE', illegal);
  if (phase !== undefined) enterPhase(step, phase, `handed over to ${to}`);
  builder.add({
    type: 'handoff',
    author,
    turnId: turn.turnId,
    from: turn.agent,
    to,
    summary,
    phase,
    call: call.place,
    hops: turn.hops + 1,
  });
  step.addResult({ content: `${to} has the floor.` });
  return true;
}

function hire(step: CallStep, given: ToolArguments<'hire'>): boolean {
  const refused = addHired(step.builder, step.author, makerOf(step), given);
  if (refused) return step.refuseWith(refused);
  step.addResult({ content: `${given.slug} is part of this conversation now.` });
  return false;
}

function dismiss(step: CallStep, given: ToolArguments<'dismiss'>): boolean {
  const refused = addDismissed(step.builder, step.author, makerOf(step), given);
  if (refused) return step.refuseWith(refused);
  step.addResult({ content: `${given.agent} is dismissed.` });
  return false;
}

function makerOf({ builder, turn: { agent: slug }, call }: CallStep): Maker {
  return { slug, tools: toolsAt(builder, slug, call.upTo) };
}

type Receiver =
  | { readonly ok: true; readonly slug: string }
  | { readonly ok: false; readonly refusal: Refusal };

function receiver({ builder: { roster }, turn }: CallStep, named: string): Receiver {
  const slug = agentNamed(named, roster.agents);
  if (slug !== undefined) return { ok: true, slug };
  const known = [...roster.agents.keys()].filter((one) => one !== turn.agent);
  const near = nearest(named, known);
  const meant = near === null ? '' : `; did you mean ${near}?`;
  const message = `there is no agent ${inOneLine(named)}; there are ${known.join(', ') || 'no others'}${meant}`;
  return { ok: false, refusal: { code: 'UNKNOWN_AGENT', message } };
}

function unreachable({ builder, turn }: CallStep, to: string): Refusal | null {
  const { limits } = builder.context;
  if (to === turn.agent) return { code: 'TO_YOURSELF', message: 'that is you: do it yourself' };
  if (isStopped(builder.state, to)) return { code: 'AGENT_STOPPED', message: stoppedMessage(to) };
  if (turn.hops + 1 <= limits.hopsPerTrigger) return null;
  const message = `this request went from agent to agent ${turn.hops} times; the limit is ${limits.hopsPerTrigger}`;
  addLimit(builder, turn, 'hopsPerTrigger', message);
  return { code: 'HOP_LIMIT', message: `${message}. Report the state of the work to the person.` };
}

/** V13: no agent may wait for itself, over any number of other agents and queued requests. */
function delegationCircle({ builder, turn }: CallStep, to: string): Refusal | null {
  const chain = turn.delegatedBy?.chain ?? [];
  const path = chain.includes(to) ? [...chain, turn.agent] : waitPath(builder.state, to, turn.agent);
  if (path.length === 0) return null;
  return { code: 'DELEGATION_CIRCLE', message: `${to} waits for your answer: ${path.join(' → ')}` };
}

/** V13 */
function delegated({ delegatedBy }: Turn): Refusal | null {
  if (!delegatedBy) return null;
  const message = `${delegatedBy.agent} asked you and waits: answer in words instead of handing over`;
  return { code: 'DELEGATED', message };
}

/** The chain of agents over which `slug` waits for `other`, `slug` first; `[]` if it does not. Queued requests count. */
function waitPath(state: ConversationState, slug: string, other: string): readonly string[] {
  const paths = [[slug]];
  const seen = new Set<string>();
  for (const path of paths) {
    const asker = path.at(-1) ?? slug;
    if (asker === other) return path;
    if (seen.has(asker)) continue;
    seen.add(asker);
    for (const next of agentsAskedBy(state, asker)) paths.push([...path, next]);
  }
  return [];
}

/** The agents that must answer calls of this agent's open turn. */
function agentsAskedBy(state: ConversationState, asker: string): string[] {
  return Object.keys(state.agents).filter((slug) => {
    const { turn, waiting } = agentState(state, slug);
    return [turn?.delegatedBy, ...waiting.map((item) => item.delegatedBy)].some(
      (delegatedBy) => delegatedBy?.agent === asker && ownerOf(state, delegatedBy.call) === asker,
    );
  });
}

/** Started, and a tool will report its result. */
export function isRunning(call: OpenCall): boolean {
  return call.started && !isConversationTool(call.name);
}

/** Its result comes from another agent or a person, or it needs an approval first. */
export function isAwaited(call: OpenCall): boolean {
  return AWAITED_TOOLS.has(call.name) || call.atCaller !== null || call.approval?.status === 'pending';
}

/**
 * Calls of tools that a post brought (CLIENT-TOOLS-1): its author answers them.
 *
 * CALLER-CALLS-1 A name is that of one tool: a post that brings a known one is refused, and a tool that is configured later wins.
 * CALLER-CALLS-2 Its caller is not asked for a call with arguments that do not match.
 *
 * Why these tools cannot be brought to these agents; null: they can.
 */
export function refusalOfTools(
  builder: DecisionBuilder,
  message: Post,
  to: readonly string[],
): Refusal | null {
  const tools = message.tools ?? [];
  const { toolChoice } = message;
  if (typeof toolChoice === 'object' && !tools.some(({ name }) => name === toolChoice.name))
    return refusal(
      'INVALID_FIELD',
      `field toolChoice: the post brings no tool ${toolChoice.name}`,
      'name one of its tools, or leave the field out',
    );
  if (tools.length === 0) return null;
  for (const [at, { parameters = {} }] of tools.entries()) {
    const fault = builder.context.tools.schemaFault?.(parameters) ?? null;
    if (fault !== null)
      return refusal(
        'INVALID_FIELD',
        `field tools.${at}.parameters: ${fault}`,
        'parameters are a JSON Schema, of draft 2020-12 or 7',
      );
  }
  const taken = tools.map(({ name }) => name).filter((name) => isTaken(builder, name));
  if (taken.length > 0)
    return refusal(
      'TOOL_NAME_TAKEN',
      `tools of this team have the names ${taken.join(', ')}`,
      'rename your tools, for example with a prefix of your program',
    );
  const unwilling = to.filter((slug) => !takesTools(builder, slug));
  if (unwilling.length === 0) return null;
  return refusal(
    'TOOLS_NOT_TAKEN',
    `${unwilling.join(', ')} takes no tools of callers`,
    'post without tools, or to another agent; clientTools: false in the file of an agent decides',
  );
}

function isTaken({ context, roster }: DecisionBuilder, name: string): boolean {
  const isListed = () => [...roster.agents.values()].some(({ tools }) => tools.includes(name));
  return isConversationTool(name) || context.tools.has?.(name) === true || isListed();
}

function takesTools({ roster }: DecisionBuilder, slug: string): boolean {
  return roster.agents.get(slug)?.clientTools !== false;
}

/** A post can join a turn if it brings nothing that this turn lacks: no schema, and no other tools than those of the same author. */
export function canJoin(
  builder: DecisionBuilder,
  { toolsFrom }: Turn,
  { index, brings }: WaitingEntry,
): boolean {
  if (!brings) return true;
  const [turns, post] = [toolsFrom ?? -1, index].map((at) => builder.entryAt(at));
  if (turns?.type !== 'message' || post?.type !== 'message' || post.schema) return false;
  const { toolChoice = 'auto' } = post; // another one is a demand, which is for the first call of a turn
  const [known, brought] = [turns, post].map((one) => [one.author.id, offeredBy(one), one.parallelToolCalls]);
  return (
    (toolChoice === 'auto' || toolChoice === 'none') && JSON.stringify(known) === JSON.stringify(brought)
  );
}

/** The positions of the calls that the author of the turn's tools answers (CLIENT-TOOLS-2). */
export function callerCallsOf(
  builder: DecisionBuilder,
  turn: Turn,
  calls: readonly ToolCall[],
): number[] | undefined {
  const brought = turn.toolsFrom === null ? undefined : builder.entryAt(turn.toolsFrom);
  if (brought?.type !== 'message' || !takesTools(builder, turn.agent)) return undefined;
  const names = new Set(offeredBy(brought).map(({ name }) => name));
  const found = calls.flatMap(({ function: { name } }, position) =>
    names.has(name) && !isTaken(builder, name) ? [position] : [],
  );
  return found.length > 0 ? found : undefined;
}

/** The parameters of a tool that has none. */
const ANY = {};

/** The caller is not asked for a call with wrong arguments. */
function checkCallersCall(step: CallStep): void {
  const { builder, turn, call } = step;
  const parsed = readArguments(call.arguments);
  if (!parsed.ok) {
    const message = `the arguments of ${call.name} are not a JSON object: ${parsed.why}`;
    step.refuse('INVALID_ARGUMENTS', message);
    return;
  }
  const brought = turn.toolsFrom === null ? undefined : builder.entryAt(turn.toolsFrom);
  const known = brought?.type === 'message' ? brought.tools : undefined;
  const tool = known?.find(({ name }) => name === call.name);
  const { tools } = builder.context;
  const wrong = tools.argumentsFault?.(call.name, tool?.parameters ?? ANY, parsed.value, 'caller');
  if (wrong) step.refuse('INVALID_ARGUMENTS', wrong);
}
