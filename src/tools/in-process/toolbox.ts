import type { Toolbox } from '../../agents/tool-port.ts';
import { isConversationTool } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { failed } from '../guarded.ts';
import type { InProcessTool } from './tool.ts';

/** `isTaken`: names of other tools. Throws `TOOL_NAME_TAKEN`. */
export function createInProcessTools(
  tools: readonly InProcessTool[],
  isTaken: (name: string) => boolean,
): Toolbox {
  const named = new Map<string, InProcessTool>();
  for (const one of tools) {
    const { name } = one.definition;
    if (isTaken(name) || isConversationTool(name) || named.has(name)) throw taken(name);
    named.set(name, one);
  }
  const definitions = new Map([...named].map(([name, { definition }]) => [name, definition]));
  const missing = (name: string) => `there is no tool ${name}`;
  return {
    definitions: () => definitions,
    check: (name, given) => {
      const found = named.get(name);
      return found ? found.check(given) : missing(name);
    },
    run: async (call, signal) =>
      named.get(call.name)?.run(call, signal) ?? failed('TOOL_NOT_AVAILABLE', missing(call.name)),
    close: async () => undefined, // the daemon's stop aborts what runs
  };
}

function taken(name: string): ParleyError {
  return new ParleyError('TOOL_NAME_TAKEN', `another tool has the name ${name}`, {
    hint: 'rename the tool that createDaemon or a file in config/tools gives; names of built-in tools and of MCP servers (mcp__…) are taken',
  });
}
