import { randomBytes } from 'node:crypto';
import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { ContentBlock, McpCapabilities, McpServer } from '@agentclientprotocol/sdk';
import {
  type CallToolResult,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { PERMITS } from '../../conversation/index.ts';
import { isSameSecret, messageOf, VERSION } from '../../kernel/index.ts';
import { BRIDGE } from './bridge.ts';
import type { ToolRequest, TurnTool } from './turn.ts';

/**
 * Parley's tools for a coding agent: an MCP server on the loopback address.
 *
 * TURN-TOOLS-1 A token belongs to one conversation. Its tools are those of the turn that runs there; without a turn there is none.
 *                They are known before the session begins, since agents list them then.
 * TURN-TOOLS-2 An agent that takes no server over HTTP gets a program that forwards its standard streams there.
 * TURN-TOOLS-3 A call is made by the daemon, with its policy, approvals and records, as for every agent in another process.
 * TURN-TOOLS-4 Pictures and sound of a result follow its text, whole; its text has a line for each file.
 * TURN-TOOLS-5 Programs give a call up that waits for a person, often after a minute: they cancel it, or close its connection. The call
 *                goes on. One that asks for progress hears of it in time, and some wait longer then.
 */

export interface CallResult {
  readonly text: string;
  /** Pictures and sound of it (TURN-TOOLS-4). */
  readonly blocks: readonly ContentBlock[];
}

interface Turn {
  readonly tools: readonly TurnTool[];
  /** `isGivenUp`: the program does not wait for the result any more (TURN-TOOLS-5). */
  call(request: ToolRequest, isGivenUp: () => boolean): Promise<CallResult>;
}

/** Less than programs wait for a call. */
const BEAT_MS = 20_000;

export class TurnTools {
  readonly #beatMs: number;
  #server: Promise<HttpServer> | null = null;
  /** By conversation. */
  readonly #tokens = new Map<string, string>();
  readonly #turns = new Map<string, Turn>();
  /** By conversation: the names of the newest list, since its servers were given. */
  readonly #listed = new Map<string, ReadonlySet<string>>();
  /** Ids of requests that were cancelled, by conversation. */
  readonly #cancelled = new Map<string, Set<unknown>>();

  constructor(beatMs = BEAT_MS) {
    this.#beatMs = beatMs;
  }

  /** Its agent listed the tools before one of the turn was there. */
  isOutdated(conversation: string): boolean {
    const listed = this.#listed.get(conversation);
    return listed !== undefined && this.#toolsOf(conversation).some(({ name }) => !listed.has(name));
  }

  async serversFor(conversation: string, can: McpCapabilities | undefined): Promise<McpServer[]> {
    this.#server ??= this.#listen();
    const { port } = (await this.#server).address() as AddressInfo;
    const token = this.#tokens.get(conversation) ?? randomBytes(24).toString('base64url');
    this.#tokens.set(conversation, token);
    this.#listed.delete(conversation);
    const url = `http://127.0.0.1:${port}/mcp`;
    const headers = [{ name: 'Authorization', value: `Bearer ${token}` }];
    if (can?.http) return [{ type: 'http', name: 'parley', url, headers }];
    const env = [
      { name: 'PARLEY_TOOLS_URL', value: url },
      { name: 'PARLEY_TOOLS_TOKEN', value: token },
    ];
    return [{ name: 'parley', command: process.execPath, args: ['-e', BRIDGE], env }];
  }

  begin(conversation: string, tools: readonly TurnTool[], call: Turn['call']): void {
    this.#turns.set(conversation, {
      tools: tools.filter(({ function: { name } }) => !PERMITS.has(name)),
      call,
    });
  }

  end(conversation: string): void {
    this.#turns.delete(conversation);
  }

  async close(): Promise<void> {
    const server = await this.#server;
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
  }

  async #listen(): Promise<HttpServer> {
    const server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy()); // the agent sees a lost connection
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    server.unref();
    return server;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const conversation = this.#conversationOf(request.headers.authorization ?? '');
    if (conversation === null) return void response.writeHead(401).end();
    const sent = request.method === 'POST' ? await buffer(request) : undefined;
    const enableJsonResponse = !sent?.includes('"progressToken"');
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse });
    const server = this.#mcpServer(conversation, () => response.destroyed);
    response.once('close', () => void server.close());
    await server.connect(transport);
    const { status, headers, body } = await transport.handleRequest(
      new Request('http://127.0.0.1/mcp', {
        method: request.method ?? 'GET',
        headers: headersOf(request),
        ...(sent && { body: sent }),
      }),
    );
    response.writeHead(status, Object.fromEntries(headers));
    if (body) await pipeline(body, response);
    else response.end();
  }

  #conversationOf(authorization: string): string | null {
    const found = [...this.#tokens].find(([, token]) => isSameSecret(authorization, `Bearer ${token}`));
    return found?.[0] ?? null;
  }

  #toolsOf(conversation: string): TurnTool['function'][] {
    return (this.#turns.get(conversation)?.tools ?? []).map(({ function: tool }) => tool);
  }

  #mcpServer(conversation: string, isClosed: () => boolean): Server {
    const cancelled = this.#cancelled.get(conversation) ?? new Set();
    this.#cancelled.set(conversation, cancelled);
    const server = new Server({ name: 'parley', version: VERSION }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => {
      const tools = this.#toolsOf(conversation);
      this.#listed.set(conversation, new Set(tools.map(({ name }) => name)));
      return {
        tools: tools.map(({ name, description, parameters }) => ({
          name,
          description,
          inputSchema: { type: 'object' as const, ...parameters },
        })),
      };
    });
    server.setNotificationHandler('notifications/cancelled', ({ params: { requestId } }) => {
      cancelled.add(requestId);
    });
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq: { id, _meta, notify } }) => {
      cancelled.delete(id); // of an earlier connection
      const turn = this.#turns.get(conversation);
      const isOffered = turn?.tools.some(({ function: { name } }) => name === params.name);
      if (!turn || !isOffered) return failed(`${params.name} is not offered in this turn`);
      const { progressToken } = _meta ?? {};
      let progress = 0;
      const tell = () => {
        if (progressToken === undefined) return;
        progress += 1;
        void notify({ method: 'notifications/progress', params: { progressToken, progress } }).catch(
          () => undefined,
        ); // it is gone
      };
      const beat = setInterval(tell, this.#beatMs);
      try {
        const request = { name: params.name, arguments: params.arguments ?? {} };
        const { text, blocks } = await turn.call(request, () => isClosed() || cancelled.has(id));
        return { content: [{ type: 'text' as const, text }, ...blocks] } as CallToolResult;
      } catch (error) {
        return failed(messageOf(error));
      } finally {
        clearInterval(beat);
      }
    });
    return server;
  }
}

function headersOf({ headers }: IncomingMessage): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, [value].flat().join(', ')]],
  );
}

function failed(text: string) {
  return { content: [{ type: 'text' as const, text }], isError: true };
}
