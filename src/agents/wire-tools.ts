import { argumentsSchema, CONVERSATION_TOOLS, isConversationTool } from '../conversation/index.ts';
import type { WireTool } from './model-port.ts';

/** The tools of a request, in a stable order: the same names give the same bytes. */
export function wireTools(names: readonly string[]): readonly WireTool[] {
  return names
    .filter(isConversationTool)
    .sort()
    .map((name) => ({
      type: 'function',
      function: {
        name,
        description: CONVERSATION_TOOLS[name].description,
        parameters: argumentsSchema(name),
      },
    }));
}
