import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { RouteContext } from '../context.ts';
import { conversationOf } from '../conversation-id.ts';
import { type Identity, requireRole } from '../guard/access.ts';
import { errorText, publicErrorOf } from '../problem.ts';
import { onAbort } from '../progress/event-stream.ts';
import { ACTING } from './acting.ts';
import { newestEntries, READING } from './reading.ts';
import { addResources } from './resources.ts';
import type { Asked, Tool } from './tool.ts';

export { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';

/**
 * The MCP server for one request of one caller.
 *
 * GATEWAY-MCP-SERVER-1  A refusal is an answer that the client's model can read, with its code and next step, not a protocol error.
 * GATEWAY-MCP-SERVER-2  A wait ends when its client disconnects or the daemon stops.
 */

const TOOLS: readonly Tool[] = [...READING, ...ACTING];

const INSTRUCTIONS =
  'Conversations of people and several agents. `post` sends a message (with `waitSeconds` it returns the answer), `read` returns the entries, `agents` lists the agents. Pending calls in `approvals` are answered with `answer`, by a person’s decision.';

export function createMcpServer(routes: RouteContext, identity: Identity): McpServer {
  const server = new McpServer({ name: 'parley', version: routes.version }, { instructions: INSTRUCTIONS });
  for (const one of TOOLS) {
    const { name, description, input: inputSchema, isReading } = one;
    const annotations = { readOnlyHint: isReading, destructiveHint: false, openWorldHint: false };
    server.registerTool(name, { description, inputSchema, annotations }, (input, extra) => {
      const progressToken = extra._meta?.progressToken;
      let progress = 0;
      const onBeat = () => {
        if (progressToken === undefined) return;
        progress += 1;
        const params = { progressToken, progress, message: 'waiting for the agents' };
        // Best effort: `extra.signal` aborts when the client disconnects.
        extra.sendNotification({ method: 'notifications/progress', params }).catch(() => undefined);
      };
      const asked = askedBy(routes, identity, extra.signal, onBeat);
      return attempt(one, input as Record<string, unknown>, asked, routes);
    });
  }
  server.server.registerCapabilities({ tools: { listChanged: false } }); // RESOURCE-3; the SDK announces it
  addResources(server, routes, (conversation, gone) =>
    newestEntries(conversation, askedBy(routes, identity, gone)),
  );
  return server;
}

async function attempt(
  one: Tool,
  input: Record<string, unknown>,
  asked: Asked,
  { onFault }: RouteContext,
): Promise<CallToolResult> {
  try {
    requireRole(asked.identity, one.role);
    const { text, data } = await one.call(named(input), asked);
    return { content: [{ type: 'text', text }], structuredContent: { ...data } };
  } catch (error) {
    const shown = publicErrorOf(error, (fault) => onFault(fault, `/mcp ${one.name}`));
    const { code, message, hint } = shown;
    return {
      isError: true,
      content: [{ type: 'text', text: errorText(shown) }],
      structuredContent: { code, message, ...(hint && { hint }) },
    };
  }
}

/** A conversation may be named by an id of the client's own. */
function named(input: Record<string, unknown>): Record<string, unknown> {
  const { conversation } = input;
  if (typeof conversation !== 'string' || conversation === '') return input;
  return { ...input, conversation: conversationOf(conversation) };
}

/** `gone`: aborted when the caller disconnects. `onBeat`: reports progress during a wait. */
function askedBy(
  { daemon, newId, closing, heartbeatMs }: RouteContext,
  identity: Identity,
  gone: AbortSignal,
  onBeat: () => void = () => undefined,
): Asked {
  return {
    ...{ daemon: daemon(), identity, newId },
    async patiently(seconds, use) {
      const enough = new AbortController();
      const end = () => enough.abort();
      if (seconds === 0) end();
      const detach = onAbort([gone, closing], end);
      const timer = setTimeout(end, seconds * 1_000);
      const heart = setInterval(onBeat, heartbeatMs);
      try {
        return await use(enough.signal);
      } finally {
        clearTimeout(timer);
        clearInterval(heart);
        detach();
      }
    },
  };
}
