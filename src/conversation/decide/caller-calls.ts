import { type Refusal, readArguments, refusal } from '../../kernel/index.ts';
import { offeredBy } from '../log/client-tools.ts';
import type { ToolCall } from '../log/entry.ts';
import type { OpenCall, Turn } from '../state/state.ts';
import { isConversationTool } from '../tools/conversation-tools.ts';
import type { Post } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { refuse } from './records.ts';

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
