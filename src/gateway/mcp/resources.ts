import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { RouteContext } from '../context.ts';
import { errorText, publicErrorOf } from '../problem.ts';
import { ask } from '../progress/ask.ts';

/**
 * Conversations as MCP resources: the newest entries of each.
 *
 * RESOURCE-1  The list is paged: the SDK's own handler ignores cursors. A cursor is opaque, and one that was not made
 *             here is refused.
 * RESOURCE-2  What does not exist is `-32002`, as the protocol has it.
 * RESOURCE-3  No notifications are announced: there is no stream to send them on.
 */

const SCHEME = 'parley://conversations/';
const PAGE = 100;
/** The SDK has no name for it. */
const RESOURCE_NOT_FOUND = -32002;
const ABOUT = { description: 'The newest entries of a conversation', mimeType: 'text/plain' };

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

/** `read`: the newest entries of a conversation. */
export function addResources(
  { server }: McpServer,
  routes: RouteContext,
  read: (conversation: string, gone: AbortSignal) => Promise<string>,
): void {
  server.registerCapabilities({ resources: {} });
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ name: 'conversation', uriTemplate: `${SCHEME}{conversation}`, ...ABOUT }],
  }));
  server.setRequestHandler(ListResourcesRequestSchema, ({ params }) =>
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
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }, { signal }) =>
    guarded(routes, async () => {
      const conversation = uri.startsWith(SCHEME) ? uri.slice(SCHEME.length) : '';
      if (!NAME_PATTERN.test(conversation)) throw notFound(uri);
      const text = await read(conversation, signal).catch((error: unknown) => {
        throw error instanceof ParleyError && error.code === 'NOT_FOUND' ? notFound(uri) : error;
      });
      return { contents: [{ uri, mimeType: ABOUT.mimeType, text }] };
    }),
  );
}

function cursorOf(id: string): string {
  return Buffer.from(`after ${id}`).toString('base64url');
}

function positionOf(cursor: string): string {
  const [, id = ''] = /^after (.*)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (NAME_PATTERN.test(id) && cursorOf(id) === cursor) return id;
  throw new ProtocolError(
    ErrorCode.InvalidParams,
    `${JSON.stringify(cursor)} is no cursor of this server: take \`nextCursor\` of the page before`,
  );
}

function notFound(uri: string): ProtocolError {
  const message = `there is no resource ${JSON.stringify(uri)}: resources/list names those that there are`;
  return new ProtocolError(RESOURCE_NOT_FOUND, message, { uri });
}

async function guarded<T>({ onFault }: RouteContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const shown = publicErrorOf(error, (fault) => onFault(fault, '/mcp resources'));
    throw new ProtocolError(ErrorCode.InternalError, errorText(shown), { code: shown.code });
  }
}
