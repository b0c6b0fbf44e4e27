import { argumentsSchema, CONVERSATION_TOOLS, isConversationTool } from '../../conversation/index.ts';
import type { WireTool } from '../model-port.ts';
import type { ToolDefinition } from '../tool-port.ts';

/** The tools of a request, in a stable order: the same names give the same bytes. What nobody offers is left out. */
export function wireTools(
  names: readonly string[],
  definitions: ReadonlyMap<string, ToolDefinition>,
): readonly WireTool[] {
  return [...names].sort().flatMap((name) => wireTool(name, definitions.get(name)));
}

function wireTool(name: string, definition: ToolDefinition | undefined): WireTool[] {
  if (isConversationTool(name)) {
    const { description } = CONVERSATION_TOOLS[name];
    return [{ type: 'function', function: { name, description, parameters: argumentsSchema(name) } }];
  }
  if (!definition) return [];
  const { description, parameters } = definition;
  return [{ type: 'function', function: { name, description, parameters } }];
}
