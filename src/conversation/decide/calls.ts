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
  settingAt,
  type Turn,
} from '../state/state.ts';
import type { WaitingEntry } from '../state/waiting.ts';
import {
  AWAITED_TOOLS,
  availableTools,
  type ConversationToolName,
  isConversationTool,
  parseArguments,
  type ToolArguments,
} from '../tools/conversation-tools.ts';
import type { Post } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { addDismissed, addHired, type Maker } from './hiring.ts';
import { completeNode } from './runs.ts';
import { requestTool } from './tools.ts';
import { addLimit, addResult, refuse, stoppedMessage } from './turn-entries.ts';

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

type Handler<N extends ConversationToolName> = (
  builder: DecisionBuilder,
  turn: Turn,
  call: OpenCall,
  given: ToolArguments<N>,
) => void;

/** Begins one call of an assistant entry that was just appended. */
export function beginCall(builder: DecisionBuilder, turn: Turn, call: OpenCall): void {
  const cut = cutIn(builder, call);
  if (cut) return void refuse(builder, turn, call, 'ARGUMENTS_CUT', argumentsCutMessage(cut));
  const card = builder.roster.agents.get(turn.agent);
  const setting = settingAt(builder.state, call.upTo, turn.agent);
  const available = card ? availableTools(card, setting, builder.context.workflows) : [];
  if (call.atCaller) {
    checkCallersCall(builder, turn, call);
    return;
  }
  if (isConversationTool(call.name)) {
    if (available.includes(call.name)) beginConversationCall(builder, turn, call, call.name);
    else refuse(builder, turn, call, 'TOOL_NOT_AVAILABLE', `you have no tool ${call.name}`);
    return;
  }
  requestTool(builder, turn, call);
}

/** What cut the arguments of this call; null: they are complete, since a closed JSON object cannot continue. */
function cutIn(builder: DecisionBuilder, { place, arguments: text }: OpenCall): Cut | null {
  const asked = builder.entryAt(place.index);
  const cut = asked?.type === 'message' ? cutBy(asked.finishReason) : null;
  return cut && !isJson(text) ? cut : null;
}

function beginConversationCall(
  builder: DecisionBuilder,
  turn: Turn,
  call: OpenCall,
  name: ConversationToolName,
): void {
  switch (name) {
    case 'set_phase':
      withArguments(builder, turn, call, 'set_phase', setPhase);
      break;
    case 'delegate':
      withArguments(builder, turn, call, 'delegate', delegate);
      break;
    case 'ask': // stays open; the call contains the question
      withArguments(builder, turn, call, 'ask', () => undefined);
      break;
    case 'hire':
      withArguments(builder, turn, call, 'hire', hire);
      break;
    case 'dismiss':
      withArguments(builder, turn, call, 'dismiss', dismiss);
      break;
    case 'handoff':
    case 'complete_node':
      break; // carried out by `closeCall`
  }
}

/** Carries out a call that ends the turn (CALLS-3). True: the turn is over. */
export function closeCall(builder: DecisionBuilder, turn: Turn, call: OpenCall): boolean {
  let closed = false;
  if (call.name === 'handoff') {
    withArguments(builder, turn, call, 'handoff', (...given) => {
      closed = handOff(...given);
    });
  } else {
    withArguments(builder, turn, call, 'complete_node', (...given) => {
      closed = completeNode(...given);
    });
  }
  return closed;
}

function withArguments<N extends ConversationToolName>(
  builder: DecisionBuilder,
  turn: Turn,
  call: OpenCall,
  name: N,
  handle: Handler<N>,
): void {
  const parsed = parseArguments(name, call.arguments);
  if (parsed.ok) handle(builder, turn, call, parsed.value);
  else refuse(builder, turn, call, 'INVALID_ARGUMENTS', parsed.message);
}

const setPhase: Handler<'set_phase'> = (builder, turn, call, { phase, reason }) => {
  const illegal = illegalPhase(builder, phase);
  if (illegal) return void refuse(builder, turn, call, 'ILLEGAL_PHASE', illegal);
  enterPhase(builder, turn, phase, reason);
  addResult(builder, turn, call, { content: `The phase is now ${phase}.` });
};

/** Why an agent may not enter this phase now; null: it may. */
function illegalPhase(builder: DecisionBuilder, phase: string): string | null {
  const from = builder.state.phase;
  const { phases } = builder.context;
  const next = Object.hasOwn(phases, from) ? (phases[from]?.next ?? []) : [];
  if (phase === from || next.includes(phase)) return null;
  return `from phase ${from} you may enter ${[...next, from].join(', ')}; not ${phase}`;
}

function enterPhase(builder: DecisionBuilder, turn: Turn, phase: string, reason: string): void {
  const author = builder.agentAuthor(turn.agent);
  const { phase: from } = builder.state;
  builder.add({
    type: 'phase-entered',
    author,
    from,
    to: phase,
    by: author.name,
    reason,
    turnId: turn.turnId,
  });
}

const delegate: Handler<'delegate'> = (builder, turn, call, { to: named, request, schema }) => {
  const found = receiver(builder, turn, named);
  if ('fault' in found) return void refuse(builder, turn, call, found.fault.code, found.fault.message);
  const to = found.slug;
  const refusal = unreachable(builder, turn, to) ?? delegationCircle(builder, turn, to);
  if (refusal) return void refuse(builder, turn, call, refusal.code, refusal.message);
  const fault = schema && builder.context.tools.schemaFault?.(schema);
  if (fault) return void refuse(builder, turn, call, 'INVALID_ARGUMENTS', `delegate: schema: ${fault}`);
  builder.add({
    type: 'delegation-requested',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    from: turn.agent,
    to,
    request,
    ...(schema && { schema }),
    call: call.place,
    hops: turn.hops + 1,
  });
};

function handOff(
  builder: DecisionBuilder,
  turn: Turn,
  call: OpenCall,
  { to: named, summary, phase }: ToolArguments<'handoff'>,
): boolean {
  const found = receiver(builder, turn, named);
  if ('fault' in found) return refuse(builder, turn, call, found.fault.code, found.fault.message);
  const to = found.slug;
  const refusal = unreachable(builder, turn, to) ?? delegated(turn);
  if (refusal) return refuse(builder, turn, call, refusal.code, refusal.message);
  const illegal = phase === undefined ? null : illegalPhase(builder, phase);
  if (illegal) return refuse(builder, turn, call, 'ILLEGAL_PHASE', illegal);
  if (phase !== undefined) enterPhase(builder, turn, phase, `handed over to ${to}`);
  builder.add({
    type: 'handoff',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    from: turn.agent,
    to,
    summary,
    phase,
    call: call.place,
    hops: turn.hops + 1,
  });
  addResult(builder, turn, call, { content: `${to} has the floor.` });
  return true;
}

const hire: Handler<'hire'> = (builder, turn, call, given) => {
  const author = builder.agentAuthor(turn.agent);
  const refused = addHired(builder, author, makerOf(builder, turn, call), given);
  if (refused) return refuseWith(builder, turn, call, refused);
  addResult(builder, turn, call, { content: `${given.slug} is part of this conversation now.` });
};

const dismiss: Handler<'dismiss'> = (builder, turn, call, given) => {
  const author = builder.agentAuthor(turn.agent);
  const refused = addDismissed(builder, author, makerOf(builder, turn, call), given);
  if (refused) return refuseWith(builder, turn, call, refused);
  addResult(builder, turn, call, { content: `${given.agent} is dismissed.` });
};

function makerOf(builder: DecisionBuilder, { agent: slug }: Turn, { upTo }: OpenCall): Maker {
  const card = builder.roster.agents.get(slug);
  const setting = settingAt(builder.state, upTo, slug);
  return { slug, tools: card ? availableTools(card, setting, builder.context.workflows) : [] };
}

function refuseWith(builder: DecisionBuilder, turn: Turn, call: OpenCall, refused: Refusal): void {
  const { code, message, hint } = refused;
  refuse(builder, turn, call, code, hint === undefined ? message : `${message}; ${hint}`);
}

interface Fault {
  readonly code: string;
  readonly message: string;
}

type Receiver = { readonly slug: string } | { readonly fault: Fault };

function receiver({ roster }: DecisionBuilder, turn: Turn, named: string): Receiver {
  const slug = agentNamed(named, roster.agents);
  if (slug !== undefined) return { slug };
  const known = [...roster.agents.keys()].filter((one) => one !== turn.agent);
  const near = nearest(named, known);
  const meant = near === null ? '' : `; did you mean ${near}?`;
  const message = `there is no agent ${inOneLine(named)}; there are ${known.join(', ') || 'no others'}${meant}`;
  return { fault: { code: 'UNKNOWN_AGENT', message } };
}

function unreachable(builder: DecisionBuilder, turn: Turn, to: string): Fault | null {
  const { limits } = builder.context;
  if (to === turn.agent) return { code: 'TO_YOURSELF', message: 'that is you: do it yourself' };
  if (isStopped(builder.state, to)) return { code: 'AGENT_STOPPED', message: stoppedMessage(to) };
  if (turn.hops + 1 <= limits.hopsPerTrigger) return null;
  const message = `this request went from agent to agent ${turn.hops} times; the limit is ${limits.hopsPerTrigger}`;
  addLimit(builder, turn, 'hopsPerTrigger', message);
  return { code: 'HOP_LIMIT', message: `${message}. Report the state of the work to the person.` };
}

/** V13: no agent may wait for itself, over any number of other agents and queued requests. */
function delegationCircle(builder: DecisionBuilder, turn: Turn, to: string): Fault | null {
  const chain = turn.delegatedBy?.chain ?? [];
  const path = chain.includes(to) ? [...chain, turn.agent] : waitPath(builder.state, to, turn.agent);
  if (path.length === 0) return null;
  return { code: 'DELEGATION_CIRCLE', message: `${to} waits for your answer: ${path.join(' → ')}` };
}

/** V13 */
function delegated(turn: Turn): Fault | null {
  if (!turn.delegatedBy) return null;
  const message = `${turn.delegatedBy.agent} asked you and waits: answer in words instead of handing over`;
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
function checkCallersCall(builder: DecisionBuilder, turn: Turn, call: OpenCall): void {
  const parsed = readArguments(call.arguments);
  if (!parsed.ok) {
    const message = `the arguments of ${call.name} are not a JSON object: ${parsed.why}`;
    refuse(builder, turn, call, 'INVALID_ARGUMENTS', message);
    return;
  }
  const brought = turn.toolsFrom === null ? undefined : builder.entryAt(turn.toolsFrom);
  const known = brought?.type === 'message' ? brought.tools : undefined;
  const tool = known?.find(({ name }) => name === call.name);
  const { tools } = builder.context;
  const wrong = tools.argumentsFault?.(call.name, tool?.parameters ?? ANY, parsed.value, 'caller');
  if (wrong) refuse(builder, turn, call, 'INVALID_ARGUMENTS', wrong);
}
