import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import {
  type EventStore,
  StreamableHTTPServerTransport,
} from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const FORGETFUL: EventStore = {
  storeEvent: async () => randomUUID(),
  replayEventsAfter: async (id) => id,
};

/**
 * An MCP server over HTTP on loopback in this process, with faults on demand. Tools: `echo`, `shot` (a picture), `hang` (never answers) and `drop`
 * (ends the stream without an answer).
 */
export interface McpHttpServer {
  readonly url: string;
  readonly port: number;
  /** The headers of every request, in order. */
  readonly headers: readonly IncomingHttpHeaders[];
  /** Marks of calls: `hanging`, `cancelled`. */
  readonly marks: readonly string[];
  readonly openSessions: number;
  /** Forgets every session, as a restart does. */
  forgetSessions(): void;
  /** Adds a tool to every session and notifies the clients. */
  grow(): void;
  close(): Promise<void>;
}

interface Session {
  readonly transport: StreamableHTTPServerTransport;
  readonly server: McpServer;
}

export interface McpHttpServerOptions {
  readonly port?: number;
  /** Sends event ids, and refuses every resumption. */
  readonly forgetsEvents?: boolean;
  /** What the tool `shot` returns. */
  readonly picture?: Buffer;
  /** Answers a request in its place: true. */
  readonly before?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

export async function startMcpHttpServer(options: McpHttpServerOptions = {}): Promise<McpHttpServer> {
  const sessions = new Map<string, Session>();
  const headers: IncomingHttpHeaders[] = [];
  const marks: string[] = [];
  const answers = new Set<ServerResponse>();

  const drop = () => {
    const open = [...answers].filter(({ req }) => req.method === 'POST');
    if (open.every(({ headersSent }) => headersSent)) for (const answer of open) answer.end();
    else setImmediate(drop);
  };
  const http = createServer((request, response) => {
    headers.push(request.headers);
    answers.add(response);
    response.once('close', () => answers.delete(response));
    void handle(request, response);
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (options.before?.(request, response)) return;
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? sessions.get(id) : undefined;
    if (typeof id === 'string' && known === undefined) {
      response.writeHead(404).end('no such session');
      return;
    }
    if (request.headers['last-event-id'] !== undefined) {
      marks.push('asked to go on');
      response.writeHead(500).end('what events?');
      return;
    }
    const session = known ?? (await open());
    await session.transport.handleRequest(request, response);
  }

  async function open(): Promise<Session> {
    const server = serverWith(marks, drop, options.picture);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      ...(options.forgetsEvents ? { eventStore: FORGETFUL } : {}),
      onsessioninitialized: (id) => void sessions.set(id, { server, transport }),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await server.connect(transport);
    return { server, transport };
  }

  http.listen(options.port ?? 0, '127.0.0.1');
  await once(http, 'listening');
  const address = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    port: address.port,
    headers,
    marks,
    get openSessions() {
      return sessions.size;
    },
    forgetSessions: () => sessions.clear(),
    grow() {
      for (const { server } of sessions.values()) server.registerTool('grown', {}, () => text('grown'));
    },
    async close() {
      const closed = once(http, 'close');
      http.close();
      http.closeAllConnections();
      await closed;
    },
  };
}

function serverWith(marks: string[], drop: () => void, picture: Buffer = Buffer.of(1)): McpServer {
  const server = new McpServer({ name: 'web', version: '1.0.0' });
  server.registerTool('echo', {}, () => text('echo'));
  server.registerTool('hang', {}, ({ signal }) => {
    signal.addEventListener('abort', () => marks.push('cancelled'));
    marks.push('hanging');
    return new Promise(() => undefined);
  });
  server.registerTool('shot', { annotations: { readOnlyHint: true } }, () => ({
    content: [{ type: 'image', data: picture.toString('base64'), mimeType: 'image/png' }],
  }));
  server.registerTool('drop', {}, () => {
    drop();
    return new Promise(() => undefined);
  });
  return server;
}

function text(words: string) {
  return { content: [{ type: 'text' as const, text: words }] };
}
