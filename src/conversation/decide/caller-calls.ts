import { type Refusal, readArguments, refusal } from '../../kernel/index.ts';
import { offeredBy } from '../log/client-tools.ts';
import { type Author, type CallPlace, type MessageEntry, type ToolCall, wireCallId } from '../log/entry.ts';
import { type ConversationState, type OpenCall, samePlace, type Turn } from '../state/state.ts';
import { isConversationTool } from '../tools/conversation-tools.ts';
import type { CallersResult, Command, Post, Reply } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { addResult, refuse } from './records.ts';
import { plainContent } from './repeated-calls.ts';
import { advanceTurn } from './turns.ts';

/**
 * Calls of tools that a post brought (CLIENT-TOOLS-1): its author answers them.
 *
 * CALLER-CALLS-1 A name is that of one tool: a post that brings a known one is refused, and a tool that is configured later wins.
 * CALLER-CALLS-2 Its caller is not asked for a call with arguments that do not match.
 */

/** Why these tools cannot be brought to these agents; null: they can. */
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

/** The caller is not asked for a call with wrong arguments. */
export function checkCallersCall(builder: DecisionBuilder, turn: Turn, call: OpenCall): void {
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
  const wrong = tool?.parameters && tools.argumentsFault?.(tool.name, tool.parameters, parsed.value);
  if (wrong) refuse(builder, turn, call, 'INVALID_ARGUMENTS', wrong);
}

/** A call that waits for its caller. */
export interface AwaitedCall {
  readonly turn: Turn;
  readonly call: OpenCall;
}

export function awaitedCalls(state: ConversationState): AwaitedCall[] {
  return Object.values(state.agents).flatMap(({ turn }) =>
    turn ? turn.openCalls.flatMap((call) => (call.atCaller ? [{ turn, call }] : [])) : [],
  );
}

/**
 * Results of calls that the author of a post answers.
 *
 * CALLER-RESULTS-1 Only the author of the post answers, each call once. A repetition of the same results,
 *    with the same files, changes nothing.
 * CALLER-RESULTS-2 All results of a request count, or none.
 */
export function answerCalls(
  builder: DecisionBuilder,
  { results, by }: Extract<Command, { type: 'answer-calls' }>,
): Reply {
  const known: number[] = [];
  const open: (AwaitedCall & { readonly result: CallersResult })[] = [];
  for (const result of results) {
    const found = awaited(builder, result, by);
    if (typeof found === 'number') known.push(found);
    else if ('code' in found) return { kind: 'refused', refusal: found };
    else open.push({ ...found, result });
  }
  const index = open.length > 0 ? builder.nextIndex : Math.max(...known);
  for (const { turn, call, result } of open) {
    const { content, files } = result;
    addResult(builder, turn, call, { content, by, ...(files && { files }) });
  }
  for (const agent of new Set(open.map(({ turn }) => turn.agent))) advanceTurn(builder, agent);
  return { kind: 'answered', index };
}

/** The open call of a result, or the index of the same result in the log, or why it is refused. */
function awaited(builder: DecisionBuilder, given: CallersResult, by: Author): AwaitedCall | number | Refusal {
  const { call: place } = given;
  const id = wireCallId(place);
  const asked = builder.entryAt(place.index);
  const isCallers = asked?.type === 'message' && asked.callerCalls?.includes(place.position);
  if (!isCallers)
    return refusal('NOT_FOUND', `there is no call ${id} that a caller answers`, 'check the id of the call');
  const caller = callerOf(builder, asked);
  if (caller !== by.id)
    return refusal(
      'FORBIDDEN',
      `${by.id} may not answer the call ${id}: ${caller ?? 'another author'} brought its tool`,
      'its author answers it, with the same credentials and name',
    );
  const open = awaitedCalls(builder.state).find(({ call }) => samePlace(call.place, place));
  if (open) return open;
  const result = builder.find(
    (entry) =>
      entry.type === 'message' &&
      entry.role === 'tool' &&
      samePlace(place, entry.call) &&
      entry.index > place.index,
  ) as MessageEntry | undefined;
  const isOwn = result?.author.kind === 'person';
  if (result && isOwn && plainContent(result) === plainContent(given)) return result.index;
  const how = isOwn ? 'was answered already' : `is over: ${result?.content ?? 'its turn has ended'}`;
  return refusal('CALL_OVER', `the call ${id} ${how}`, 'nothing was changed; send a message to continue');
}

/** Who brought the tools of the turn that wrote an answer. */
function callerOf(builder: DecisionBuilder, { turnId }: MessageEntry): string | undefined {
  const start = builder.find((entry) => entry.type === 'turn-started' && entry.turnId === turnId);
  if (start?.type !== 'turn-started') return undefined;
  const brought = start.trigger.map((index) => builder.entryAt(index));
  return brought.findLast((entry) => entry?.type === 'message' && entry.tools)?.author.id;
}

/** Its caller did not answer in time: the model reads that, and the turn continues. */
export function expireCall(builder: DecisionBuilder, place: CallPlace): boolean {
  const found = awaitedCalls(builder.state).find(({ call }) => samePlace(call.place, place));
  if (!found) return false;
  const { turn, call } = found;
  const message = `${call.name} is a tool of the person's program, which did not answer in time: whether it took effect is unknown`;
  refuse(builder, turn, call, 'CALL_EXPIRED', message);
  advanceTurn(builder, turn.agent);
  return true;
}
