import type { ModelRequest, WireMessage } from '../agents/index.ts';

/** A request as text: each message unchanged under its role, then the names of the tools. */
export function requestText({ messages, tools }: ModelRequest): string {
  const names = tools.map((tool) => tool.function.name).join(', ');
  return [...messages.map(messageText), `── tools ──\n${names}`].join('\n\n');
}

function messageText({ role, content, tool_calls = [], tool_call_id }: WireMessage): string {
  const heading = `── ${[role, tool_call_id].filter(Boolean).join(' ')} ──`;
  const calls = tool_calls.map(({ id, function: called }) => `⚙ ${id} ${called.name} ${called.arguments}`);
  return [heading, ...(content ? [content] : []), ...calls].join('\n');
}
