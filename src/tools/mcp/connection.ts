import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type Tool, ToolListChangedNotificationSchema, ToolSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { linkedAbort, VERSION } from '../../kernel/index.ts';
import { type ToolResult, toolResult } from './render-result.ts';
import type { McpTimes } from './settings.ts';
import { LONGEST_MESSAGE, MessageTooLarge } from './transport/too-large.ts';

/**
 * One life of a server: from its start until it is gone.
 *
 * MCP-CONNECTION-1 Requests go below the SDK's `listTools` and `callTool`: those refuse a whole list for one odd tool, and throw away
 *    the result of a tool that has run when it does not match the schema the tool gave for it.
 * MCP-CONNECTION-2 When the connection ends, whoever's doing, `onClosed` comes and every call on it rejects.
 */

/** A server that hands out cursors for ever is cut off here. */
export const MOST_PAGES = 100;

const toolPage = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

/** What a connection is made over. */
export interface Link {
  readonly transport: Transport;
  /** Errors of the transport leave it open whether the server is still there: then it is asked. */
  readonly probe: boolean;
  /** What the server said when nobody could hear it. */
  readonly lastWords?: () => string;
}

export interface ConnectionEvents {
  onToolsChanged(): void;
  /** Comes before the calls on it reject. */
  onClosed(): void;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
}

export class Connection {
  private readonly client: Client;
  private readonly link: Link;
  private readonly times: McpTimes;
  private probing: Promise<void> | null = null;
  private tooLarge: MessageTooLarge | null = null;
  private hasEnded = false;

  private constructor(link: Link, times: McpTimes, events: ConnectionEvents) {
    this.link = link;
    this.times = times;
    this.client = new Client({ name: 'parley', version: VERSION }, { capabilities: {} });
    this.client.setNotificationHandler(ToolListChangedNotificationSchema, () => events.onToolsChanged());
    this.client.onclose = () => {
      this.hasEnded = true;
      events.onClosed();
    };
    this.client.onerror = (error) => {
      if (error instanceof MessageTooLarge) this.tooLarge = error;
      else if (link.probe) this.probe();
    };
  }

  /** Rejects when the server cannot be spoken to; then nothing of it is left. */
  static async open(
    link: Link,
    options: { times: McpTimes; events: ConnectionEvents; signal: AbortSignal },
  ): Promise<Connection> {
    const { times, events, signal } = options;
    const connection = new Connection(link, times, events);
    const own = linkedAbort(signal);
    // Closing is what ends an attempt: the SDK's own time limit does not cover all that it waits for.
    own.signal.addEventListener('abort', () => void link.transport.close(), { once: true });
    const late = setTimeout(() => own.abort(), times.connectMs);
    try {
      await connection.client.connect(link.transport, { timeout: times.connectMs });
      own.signal.throwIfAborted();
      return connection;
    } catch (error) {
      await link.transport.close();
      throw own.signal.aborted && !signal.aborted
        ? new Error(`it did not answer within ${times.connectMs / 1000} s`)
        : error;
    } finally {
      clearTimeout(late);
      own.unlink();
    }
  }

  /** Tools that are not as the protocol wants them are left out and named. `isCut`: there are more pages. */
  async listTools(signal: AbortSignal): Promise<{
    readonly tools: readonly Tool[];
    readonly odd: readonly string[];
    readonly isCut: boolean;
  }> {
    if (this.client.getServerCapabilities()?.tools === undefined) return { tools: [], odd: [], isCut: false };
    const given: unknown[] = [];
    let cursor: string | undefined;
    let size = 0;
    for (let page = 0; page < MOST_PAGES && size < LONGEST_MESSAGE; page += 1) {
      const result = await this.listPage(cursor, signal);
      given.push(...result.tools);
      size += JSON.stringify(result.tools).length;
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    const tools: Tool[] = [];
    const odd: string[] = [];
    for (const one of given) {
      const parsed = ToolSchema.safeParse(one);
      if (!parsed.success) odd.push(nameOf(one));
      else if (parsed.data.execution?.taskSupport === 'required') odd.push(parsed.data.name);
      else tools.push(parsed.data);
    }
    return { tools, odd, isCut: cursor !== undefined };
  }

  /** With a signal of its own: the SDK keeps listening to it. */
  private async listPage(cursor: string | undefined, signal: AbortSignal): Promise<z.infer<typeof toolPage>> {
    const params = cursor === undefined ? {} : { cursor };
    const own = linkedAbort(signal);
    try {
      const options = { timeout: this.times.connectMs, signal: own.signal };
      return await this.client.request({ method: 'tools/list', params }, toolPage, options);
    } finally {
      own.unlink();
    }
  }

  /** `signal` must be the call's own: the SDK keeps listening to it. */
  callTool(
    name: string,
    given: Readonly<Record<string, unknown>>,
    options: CallOptions,
  ): Promise<ToolResult> {
    const _meta = { 'parley/idempotency-key': options.idempotencyKey };
    return this.client.request(
      { method: 'tools/call', params: { name, arguments: { ...given }, _meta } },
      toolResult,
      {
        signal: options.signal,
        timeout: this.times.callMs,
        maxTotalTimeout: this.times.callInAllMs,
        resetTimeoutOnProgress: true,
        onprogress: () => undefined,
      },
    );
  }

  /** Why the connection was closed on our side; null: it was not. */
  get fault(): MessageTooLarge | null {
    return this.tooLarge;
  }

  get isOver(): boolean {
    return this.hasEnded;
  }

  lastWords(): string {
    return this.link.lastWords?.() ?? '';
  }

  /** The transport, not the client: it may have been let go by the client while it still ends. */
  async close(): Promise<void> {
    await this.link.transport.close();
    await this.probing;
  }

  private probe(): void {
    if (this.hasEnded) return;
    this.probing ??= this.client
      .ping({ timeout: this.times.probeMs })
      .then(() => undefined)
      .catch(() => this.link.transport.close())
      .finally(() => {
        this.probing = null;
      });
  }
}

function nameOf(tool: unknown): string {
  const name = typeof tool === 'object' && tool !== null && 'name' in tool ? tool.name : undefined;
  return typeof name === 'string' ? name : '(a tool without a name)';
}
