import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { ParleyError } from '../../kernel/index.ts';
import type { DoorContext } from '../context.ts';
import { type Identity, requireRole } from '../guard/access.ts';
import { ACTING } from './acting.ts';
import { ask } from './log.ts';
import { READING } from './reading.ts';
import type { Asked, Told, Tool } from './tool.ts';

/**
 * What an MCP client finds here, made for one request and one caller.
 *
 * S1 A refusal is an answer that the client's model can read, with its code and what to do; it is no protocol error.
 * S2 Nobody is waited for who is gone, and nobody waits for a daemon that stops.
 */

export const TOOLS: readonly Tool[] = [...READING, ...ACTING];

const INSTRUCTIONS =
  'Conversations of people and several agents. `post` says something (with `waitSeconds` it brings the answer), `read` shows what happened, `agents` says who is there. What waits in `approvals` is answered with `answer`, by a person’s decision.';
/** Conversations that are listed as resources. */
const LISTED = 100;

export interface ServerOptions {
  readonly doors: DoorContext;
  readonly identity: Identity;
  readonly heartbeatMs: number;
  readonly onFault: (error: unknown, path: string) => void;
}

export function createMcpServer(options: ServerOptions): McpServer {
  const { doors } = options;
  const server = new McpServer({ name: 'parley', version: doors.version }, { instructions: INSTRUCTIONS });
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
        extra.sendNotification({ method: 'notifications/progress', params }).catch(() => undefined);
      };
      return attempt(one, input as Record<string, unknown>, options, { gone: extra.signal, onBeat });
    });
  }
  addResources(server, options);
  return server;
}

interface Line {
  /** Who asked is gone. */
  readonly gone: AbortSignal;
  /** Told now and then while somebody waits. */
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
    const { text, data } = await one.call(input, askedBy(options, line));
    return { content: [{ type: 'text', text }], structuredContent: { ...data } };
  } catch (error) {
    return refused(error, options, one.name); // S1
  }
}

function askedBy({ doors, identity, heartbeatMs }: ServerOptions, { gone, onBeat }: Line): Asked {
  return {
    door: doors.door(),
    identity,
    newId: doors.newId,
    async patiently(seconds, use) {
      const enough = new AbortController();
      const end = () => enough.abort();
      if (seconds === 0 || gone.aborted || doors.closing.aborted) end();
      const timer = setTimeout(end, seconds * 1_000);
      const heart = setInterval(onBeat, heartbeatMs);
      for (const signal of [gone, doors.closing]) signal.addEventListener('abort', end, { once: true }); // S2
      try {
        return await use(enough.signal);
      } finally {
        clearTimeout(timer);
        clearInterval(heart);
        for (const signal of [gone, doors.closing]) signal.removeEventListener('abort', end);
      }
    },
  };
}

function refused(error: unknown, options: ServerOptions, name: string): CallToolResult {
  const known =
    error instanceof ParleyError
      ? error
      : new ParleyError('INTERNAL', 'the daemon failed at this call', { hint: 'its log says why' });
  if (known !== error) options.onFault(error, `/mcp ${name}`);
  const { code, message, hint } = known;
  const text = `${code}: ${message}${hint ? ` (${hint})` : ''}`;
  return {
    isError: true,
    content: [{ type: 'text', text }],
    structuredContent: { code, message, ...(hint && { hint }) },
  };
}

const SCHEME = 'parley://conversations/';

/** Conversations can be read as resources too: the newest entries of each. */
function addResources(server: McpServer, options: ServerOptions): void {
  const { doors } = options;
  const list = async () => {
    interface Rows {
      readonly conversations: readonly { readonly id: string; readonly title: string | null }[];
    }
    const { conversations } = await ask<Rows>(doors.door(), 'conversations', { limit: LISTED });
    return {
      resources: conversations.map(({ id, title }) => ({
        uri: SCHEME + id,
        name: title ?? id,
        mimeType: 'text/plain',
      })),
    };
  };
  const template = new ResourceTemplate(`${SCHEME}{conversation}`, { list });
  const config = { description: 'The newest entries of a conversation', mimeType: 'text/plain' };
  server.registerResource('conversation', template, config, async (uri, { conversation }, extra) => {
    const { text } = await readResource(String(conversation), options, extra.signal);
    return { contents: [{ uri: uri.href, mimeType: 'text/plain', text }] };
  });
}

function readResource(conversation: string, options: ServerOptions, gone: AbortSignal): Promise<Told> {
  const reading = READING.find(({ name }) => name === 'read');
  if (!reading) throw new ParleyError('INTERNAL', 'there is no tool to read with');
  const asked = askedBy(options, { gone, onBeat: () => undefined });
  return reading.call(reading.input.parse({ conversation }), asked);
}
