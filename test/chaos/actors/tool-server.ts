import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The outside world of a run: an MCP server over HTTP in this process, so that it outlives every daemon. It counts
 * effects by the idempotency key that each call carries.
 */
export interface ToolServerActor {
  readonly url: string;
  /** How often each call took effect, by its key: `<conversation>:<index>:<position>`. */
  readonly effects: ReadonlyMap<string, number>;
  misbehave(how: 'slow' | 'drop'): void;
  /** Answers the waiting calls. */
  heal(): void;
  close(): Promise<void>;
}

interface Request {
  readonly id?: string | number;
  readonly method: string;
  readonly params?: {
    readonly protocolVersion?: string;
    readonly name?: string;
    readonly _meta?: Readonly<Record<string, unknown>>;
  };
}

export const KEY_FIELD = 'parley/idempotency-key';
/** A call takes a moment, so that kills interrupt running calls. */
const CALL_MS = 60;

const TOOLS = [
  { name: 'look', description: 'Looks at the world.', annotations: { readOnlyHint: true } },
  { name: 'write', description: 'Changes the world.' },
].map((tool) => ({ ...tool, inputSchema: { type: 'object' } }));

export async function createToolServerActor(): Promise<ToolServerActor> {
  const effects = new Map<string, number>();
  let mood: 'slow' | 'drop' | null = null;
  const waiting = new Set<() => void>();

  const call = async (request: Request, response: ServerResponse) => {
    const key = String(request.params?._meta?.[KEY_FIELD]);
    await new Promise((resolve) => setTimeout(resolve, CALL_MS / 2));
    effects.set(key, (effects.get(key) ?? 0) + 1);
    if (mood === 'drop') return void response.destroy();
    if (mood === 'slow') await new Promise<void>((resolve) => waiting.add(resolve));
    await new Promise((resolve) => setTimeout(resolve, CALL_MS / 2));
    answer(response, request, { content: [{ type: 'text', text: `did ${key}` }] });
  };
  const server = createServer((incoming, response) => {
    response.on('error', () => response.destroy());
    if (incoming.method !== 'POST') return void response.writeHead(405).end();
    read(incoming)
      .then(async (request) => {
        if (request.id === undefined) response.writeHead(202).end();
        else if (request.method === 'tools/call') await call(request, response);
        else answer(response, request, resultOf(request));
      })
      .catch(() => response.destroy());
  });
  server.keepAliveTimeout = 0; // Otherwise a connection sometimes ends just as it is reused, which is no planned fault.
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const heal = () => {
    mood = null;
    for (const resolve of waiting) resolve();
    waiting.clear();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    effects,
    misbehave(how) {
      mood = how;
    },
    heal,
    async close() {
      heal();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function read(incoming: IncomingMessage): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString());
}

function resultOf({ method, params }: Request): object {
  if (method === 'tools/list') return { tools: TOOLS };
  if (method !== 'initialize') return {};
  return {
    protocolVersion: params?.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'world', version: '1.0.0' },
  };
}

function answer(response: ServerResponse, { id }: Request, result: object): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}
