import { buffer } from 'node:stream/consumers';
import {
  type CallToolResult,
  McpServer,
  ProtocolErrorCode,
  type ReadResourceResult,
} from '@modelcontextprotocol/server';
import { type FilePart, NAME_PATTERN } from '../../conversation/index.ts';
import { hasCode, onAbort, ParleyError } from '../../kernel/index.ts';
import { conversationOf } from '../client-ids.ts';
import type { RouteContext } from '../context.ts';
import { type Identity, requireRole } from '../guard/access.ts';
import type { FoundFile, GatewayPort } from '../port.ts';
import { errorText, publicErrorOf } from '../problem.ts';
import { ask, orElse } from '../progress/ask.ts';
import type { Told } from './render.ts';
import { newestEntries, TOOLS, type Tool, type ToolCaller } from './tools.ts';

export { createMcpHandler } from '@modelcontextprotocol/server';

/**
 * The MCP server for one request of one caller.
 *
 * GATEWAY-MCP-SERVER-1  A refusal is an answer that the client's model can read, with its code and next step, not a protocol error.
 * GATEWAY-MCP-SERVER-2  A wait ends when its client disconnects or the daemon stops.
 */

const INSTRUCTIONS =
  'Conversations of people and several agents. `post` sends a message (with `waitSeconds` it returns the answer), `read` returns the entries, `agents` lists the agents. Pending calls in `approvals` are answered with `answer`, by a person’s decision.';

export function createMcpServer(routes: RouteContext, identity: Identity): McpServer {
  const server = new McpServer({ name: 'parley', version: routes.version }, { instructions: INSTRUCTIONS });
  for (const one of TOOLS) {
    const { name, description, input: inputSchema, output: outputSchema, role } = one;
    const annotations = { readOnlyHint: role === 'read', destructiveHint: false, openWorldHint: false };
    const about = { description, inputSchema, ...(outputSchema && { outputSchema }), annotations };
    server.registerTool(name, about, (input: unknown, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      let progress = 0;
      const onBeat = () => {
        if (progressToken === undefined) return;
        progress += 1;
        const params = { progressToken, progress, message: 'waiting for the agents' };
        // Best effort: the signal aborts when the client disconnects.
        mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined);
      };
      const caller = callerOf(routes, identity, mcpReq.signal, onBeat);
      return attempt(one, input as Record<string, unknown>, caller, routes);
    });
  }
  server.server.registerCapabilities({ tools: { listChanged: false } }); // RESOURCE-3; the SDK announces it
  addResources(server, routes, (conversation, gone) =>
    newestEntries(conversation, callerOf(routes, identity, gone)),
  );
  return server;
}

async function attempt(
  one: Tool,
  input: Record<string, unknown>,
  caller: ToolCaller,
  { onFault }: RouteContext,
): Promise<CallToolResult> {
  try {
    requireRole(caller.identity, one.role);
    const { text, data, ...files } = await one.call(named(input), caller);
    const blocks = await fileBlocks(caller.daemon, files);
    return { content: [{ type: 'text', text }, ...blocks], structuredContent: { ...data } };
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
function callerOf(
  { daemon, newId, closing, heartbeatMs }: RouteContext,
  identity: Identity,
  gone: AbortSignal,
  onBeat: () => void = () => undefined,
): ToolCaller {
  return {
    get daemon() {
      return daemon(); // where a refusal becomes an answer
    },
    identity,
    newId,
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

const PAGE = 100;
const ABOUT = { description: 'The newest entries of a conversation', mimeType: 'text/plain' };
const ABOUT_FILE = 'A file of a message';

/** An error with its code on the wire; the SDK's own writes its code into the message, too. */
class ProtocolError extends Error {
  readonly code: number;
  readonly data: object | undefined;

  constructor(code: number, message: string, data?: object) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/**
 * Conversations as MCP resources: the newest entries of each.
 * `read`: the newest entries of a conversation.
 *
 * RESOURCE-1  The list is paged: the SDK's own handler ignores cursors. A cursor is opaque, and one that was not made
 *             here is refused.
 * RESOURCE-2  What does not exist is `-32602` with its URI, as revision 2026-07-28 has it.
 * RESOURCE-3  No notifications are announced: there is no stream to send them on.
 */
function addResources(
  { server }: McpServer,
  routes: RouteContext,
  read: (conversation: string, gone: AbortSignal) => Promise<string>,
): void {
  server.registerCapabilities({ resources: {} });
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [
      { name: 'conversation', uriTemplate: `${SCHEME}{conversation}`, ...ABOUT },
      { name: 'file', uriTemplate: `${SCHEME}{conversation}/blobs/{sha256}`, description: ABOUT_FILE },
    ],
  }));
  server.setRequestHandler('resources/list', ({ params }) =>
    guarded(routes, async () => {
      const after = params?.cursor === undefined ? {} : { after: positionOf(params.cursor) };
      const body = { ...after, limit: PAGE };
      const { conversations, next } = await ask(routes.daemon(), 'conversations', body);
      const resources = conversations.map(({ id, title }) => ({
        uri: SCHEME + id,
        name: title ?? id,
        ...ABOUT,
      }));
      return { resources, ...(next !== null && { nextCursor: cursorOf(next) }) };
    }),
  );
  server.setRequestHandler('resources/read', ({ params: { uri } }, { mcpReq: { signal } }) =>
    guarded(routes, async () => {
      const [, conversation = '', sha256] = /^([^/]+)(?:\/blobs\/([0-9a-f]{64}))?$/.exec(pathOf(uri)) ?? [];
      if (!NAME_PATTERN.test(conversation)) throw notFound(uri);
      const orNotFound = (error: unknown) => {
        throw hasCode(error, 'NOT_FOUND') ? notFound(uri) : error;
      };
      if (sha256) return fileResource(routes.daemon(), uri, [conversation, sha256]).catch(orNotFound);
      const text = await read(conversation, signal).catch(orNotFound);
      return { contents: [{ uri, mimeType: ABOUT.mimeType, text }] };
    }),
  );
}

function pathOf(uri: string): string {
  return uri.startsWith(SCHEME) ? uri.slice(SCHEME.length) : '';
}

function cursorOf(id: string): string {
  return Buffer.from(`after ${id}`).toString('base64url');
}

function positionOf(cursor: string): string {
  const [, id = ''] = /^after (.*)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (NAME_PATTERN.test(id) && cursorOf(id) === cursor) return id;
  throw new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `${JSON.stringify(cursor)} is no cursor of this server: take \`nextCursor\` of the page before`,
  );
}

function notFound(uri: string): ProtocolError {
  const message = `there is no resource ${JSON.stringify(uri)}: resources/list names those that there are`;
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message, { uri });
}

async function guarded<T>({ onFault }: RouteContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const shown = publicErrorOf(error, (fault) => onFault(fault, '/mcp resources'));
    throw new ProtocolError(ProtocolErrorCode.InternalError, errorText(shown), { code: shown.code });
  }
}

const SCHEME = 'parley://conversations/';
/** Bytes, before they become base64. */
const MOST_SHOWN = 4 * 1024 * 1024;
const SHOWN = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

type Blocks = CallToolResult['content'];

/**
 * Files in the answers of tools: pictures as they are, everything else as a link to a resource.
 *
 * MCP-FILES-1  The pictures of one answer have at most `MOST_SHOWN` bytes, the first ones. The others are links.
 * MCP-FILES-2  The text of the answer names every file, also one that is gone meanwhile.
 */
async function fileBlocks(
  daemon: GatewayPort,
  { files = [], conversation = '' }: Pick<Told, 'files' | 'conversation'>,
): Promise<Blocks> {
  const blocks: Blocks = [];
  let room = MOST_SHOWN;
  for (const file of new Map(files.map((one) => [one.sha256, one])).values()) {
    const { mediaType: mimeType, size } = file;
    const isShown = SHOWN.includes(mimeType) && size <= room;
    const found = isShown ? await orElse(daemon.findFile(conversation, file.sha256), null) : null;
    const bytes = found && (await bytesOf(found));
    if (bytes === null) blocks.push(linkTo(conversation, file));
    else blocks.push({ type: 'image', data: bytes.toString('base64'), mimeType });
    if (bytes !== null) room -= size;
  }
  return blocks;
}

function linkTo(conversation: string, { sha256, name, mediaType: mimeType, size }: FilePart): Blocks[number] {
  const uri = `${SCHEME}${conversation}/blobs/${sha256}`;
  return { type: 'resource_link', uri, name: name ?? sha256.slice(0, 12), mimeType, size };
}

/** Null: it was erased meanwhile. */
async function bytesOf({ read }: Pick<FoundFile, 'read'>): Promise<Buffer | null> {
  const content = await read();
  return content && buffer(content);
}

/** The file of a link. Throws `NOT_FOUND`. */
async function fileResource(
  daemon: GatewayPort,
  uri: string,
  [conversation, sha256]: readonly [string, string],
): Promise<ReadResourceResult> {
  const found = await daemon.findFile(conversation, sha256);
  const bytes = await bytesOf(found);
  if (bytes === null) throw new ParleyError('NOT_FOUND', 'the file was erased');
  return { contents: [{ uri, mimeType: found.mediaType, blob: bytes.toString('base64') }] };
}
