import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { ParleyError } from '../../kernel/index.ts';
import type { RouteContext } from '../context.ts';
import { conversationOf } from '../conversation-id.ts';
import { type Identity, requireRole } from '../guard/access.ts';
import { publicErrorOf } from '../problem.ts';
import { ACTING } from './acting.ts';
import { READING } from './reading.ts';
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

export interface ServerOptions {
  readonly routes: RouteContext;
  readonly identity: Identity;
  readonly heartbeatMs: number;
  readonly onFault: (error: unknown, path: string) => void;
}

export function createMcpServer(options: ServerOptions): McpServer {
  const { routes } = options;
  const server = new McpServer({ name: 'parley', version: routes.version }, { instructions: INSTRUCTIONS });
  for (const one of TOOLS) {
    const { name, description, input: inputSchema, isReading } = one;
    const annotations = { readOnlyHint: isReading, destructiveHint: false, openWorldHint: false };
    server.registerTool(name, { description, inputSchema, annotations }, async (input, extra) => {
      const progressToken = extra._meta?.progressToken;
      let beats = 0;
      const onBeat = () => {
        if (progressToken === undefined) return;
        beats += 1;
        const params = { progressToken, progress: beats, message: 'waiting for the agents' };
        // Best effort: `extra.signal` aborts when the client disconnects.
        extra.sendNotification({ method: 'notifications/progress', params }).catch(() => undefined);
      };
      return attempt(one, input as Record<string, unknown>, options, { gone: extra.signal, onBeat });
    });
  }
  server.server.registerCapabilities({ tools: { listChanged: false } }); // RESOURCE-3; the SDK announces it
  const read = (conversation: string, gone: AbortSignal) => newestEntries(conversation, options, gone);
  addResources(server, { routes, read, onFault: options.onFault });
  return server;
}

interface Line {
  /** Aborted when the caller disconnects. */
  readonly gone: AbortSignal;
  /** Reports progress during a wait. */
  readonly onBeat: () => void;
}

async function attempt(
  one: Tool,
  input: Record<string, unknown>,
  options: ServerOptions,
  line: Line,
): Promise<CallToolResult> {
  try {
    requireRole(options.identity, one.role);
    const { text, data } = await one.call(named(input), askedBy(options, line));
    return { content: [{ type: 'text', text }], structuredContent: { ...data } };
  } catch (error) {
    return refused(error, options, one.name);
  }
}

/** A conversation may be named by an id of the client's own. */
function named(input: Record<string, unknown>): Record<string, unknown> {
  const { conversation } = input;
  if (typeof conversation !== 'string' || conversation === '') return input;
  return { ...input, conversation: conversationOf(conversation) };
}

function askedBy({ routes, identity, heartbeatMs }: ServerOptions, { gone, onBeat }: Line): Asked {
  return {
    daemon: routes.daemon(),
    identity,
    newId: routes.newId,
    async patiently(seconds, use) {
      const enough = new AbortController();
      const end = () => enough.abort();
      if (seconds === 0 || gone.aborted || routes.closing.aborted) end();
      const timer = setTimeout(end, seconds * 1_000);
      const heart = setInterval(onBeat, heartbeatMs);
      for (const signal of [gone, routes.closing]) signal.addEventListener('abort', end, { once: true });
      try {
        return await use(enough.signal);
      } finally {
        clearTimeout(timer);
        clearInterval(heart);
        for (const signal of [gone, routes.closing]) signal.removeEventListener('abort', end);
      }
    },
  };
}

function refused(error: unknown, options: ServerOptions, name: string): CallToolResult {
  const { code, message, hint } = publicErrorOf(error, (fault) => options.onFault(fault, `/mcp ${name}`));
  const text = `${code}: ${message}${hint ? ` (${hint})` : ''}`;
  return {
    isError: true,
    content: [{ type: 'text', text }],
    structuredContent: { code, message, ...(hint && { hint }) },
  };
}

/** The text of the tool `read`. */
async function newestEntries(
  conversation: string,
  options: ServerOptions,
  gone: AbortSignal,
): Promise<string> {
  const reading = READING.find(({ name }) => name === 'read');
  if (!reading) throw new ParleyError('INTERNAL', 'there is no tool to read with');
  const asked = askedBy(options, { gone, onBeat: () => undefined });
  return (await reading.call(reading.input.parse({ conversation }), asked)).text;
}
