import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  type Result,
} from '@modelcontextprotocol/sdk/types.js';
import { onTestFinished } from 'vitest';
import type { ToolRun } from '../../../../src/agents/tool-port.ts';
import { DEFAULT_TIMES, type McpTimes } from '../../../../src/tools/mcp/connection.ts';
import { McpServer } from '../../../../src/tools/mcp/server.ts';
import { McpToolbox } from '../../../../src/tools/mcp/toolbox.ts';

export interface FakeCall {
  readonly name: string;
  readonly arguments: unknown;
  readonly meta: unknown;
  readonly signal: AbortSignal;
}

/** What the server in this process does. May be changed while it runs. */
export class FakeServer {
  tools: object[] = [];
  /** Tools of the further pages. */
  furtherPages: object[][] = [];
  offersTools = true;
  isDown = false;
  /** Accepts connections and never answers. */
  isMute = false;
  /** Each failure has a different reason. */
  countsTries = false;
  private tries = 0;
  answer: (call: FakeCall) => Result | Promise<Result> = () => ({
    content: [{ type: 'text', text: 'done' }],
  });
  readonly calls: FakeCall[] = [];
  /** One for each start of the process. */
  readonly lives: Server[] = [];

  readonly link = () => {
    this.tries += 1;
    if (this.isDown) throw new Error(this.countsTries ? `it is down, try ${this.tries}` : 'it is down');
    const [ours, its] = InMemoryTransport.createLinkedPair();
    const server = new Server(
      { name: 'fake', version: '1.0.0' },
      { capabilities: this.offersTools ? { tools: { listChanged: true } } : { prompts: {} } },
    );
    if (this.offersTools) this.serve(server);
    if (!this.isMute) void server.connect(its);
    this.lives.push(server);
    return { transport: ours, probe: false };
  };

  get newest(): Server {
    return this.lives.at(-1)!;
  }

  private serve(server: Server): void {
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
      const page = Number(params?.cursor ?? 0);
      const tools = page === 0 ? this.tools : (this.furtherPages[page - 1] ?? []);
      const isLast = page >= this.furtherPages.length;
      return isLast ? { tools } : { tools, nextCursor: String(page + 1) };
    });
    server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) => {
      const call = { name: params.name, arguments: params.arguments, meta: params._meta, signal };
      this.calls.push(call);
      return this.answer(call);
    });
  }
}

export interface TestTools {
  readonly tools: McpToolbox;
  readonly said: { readonly level: string; readonly fields: object; readonly message: string }[];
  /** Resolves when `is` returns true after a change. */
  until(is: () => boolean): Promise<void>;
}

const FAST: Partial<McpTimes> = { restartMs: 1, restartMaxMs: 2, endMs: 50 };

/** Lasts until the test that runs is over. */
export function openTools(
  servers: Readonly<Record<string, FakeServer>>,
  times: Partial<McpTimes> = FAST,
  trustsReadOnlyHint = false,
): TestTools {
  const said: TestTools['said'] = [];
  const watchers = new Set<() => void>();
  const say = (level: string) => (fields: object, message: string) => said.push({ level, fields, message });
  const tools = new McpToolbox((onChange) =>
    Object.entries(servers).map(
      ([name, { link }]) =>
        new McpServer({
          name,
          trustsReadOnlyHint,
          link,
          times: { ...DEFAULT_TIMES, ...times },
          reason: (error) => (error instanceof Error ? error.message : String(error)),
          log: { info: say('info'), warn: say('warn') },
          elapsed: () => performance.now(),
          random: () => 0,
          onChange: () => {
            onChange();
            for (const look of [...watchers]) look();
          },
        }),
    ),
  );
  const until = (is: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!is()) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
    });
  onTestFinished(() => tools.close());
  return { tools, said, until };
}

export function serverWith(...tools: object[]): FakeServer {
  const server = new FakeServer();
  server.tools = tools;
  return server;
}

/** With all servers ready. */
export async function ready(
  servers: Readonly<Record<string, FakeServer>>,
  times: Partial<McpTimes> = {},
): Promise<TestTools> {
  const toolbox = openTools(servers, { ...FAST, ...times });
  await toolbox.tools.settled();
  return toolbox;
}

/** The tools of one server, `files`, which is ready. */
export async function served(...tools: object[]) {
  const files = serverWith(...tools);
  return { files, ...(await ready({ files })) };
}

export function toolOf(name: string, more: object = {}): object {
  return { name, inputSchema: { type: 'object' }, ...more };
}

export function callOf(name: string, given: Record<string, unknown> = {}): ToolRun {
  return {
    conversation: 'c1',
    agent: 'dev',
    turnId: 't1',
    name,
    arguments: given,
    idempotencyKey: 'c1/9/0',
  };
}

export function openSignal(): AbortSignal {
  return new AbortController().signal;
}
