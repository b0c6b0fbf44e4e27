import {
  Client,
  type ElicitRequest,
  type ElicitResult,
  isSpecType,
  type Progress,
  SdkError,
  SdkErrorCode,
  type Tool,
  type Transport,
} from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { ServerAsks } from '../../conversation/index.ts';
import {
  cut,
  type HideValues,
  hideInside,
  inOneLine,
  type Log,
  linkedAbort,
  MAX_TIMER_MS,
  PausableTimers,
  sleep,
  VERSION,
} from '../../kernel/index.ts';
import { LONGEST_CALL_MS } from '../toolbox.ts';
import { LONGEST_MESSAGE, MessageTooLarge } from './failure.ts';
import { type ToolResult, toolResult } from './render-result.ts';

/**
 * One connection to a server, from its start to its end.
 *
 * MCP-CONNECTION-1 Requests bypass the SDK's `listTools` and `callTool`: those refuse a whole list for one invalid tool, and
 *    discard the result of a tool that has run if it does not match the tool's output schema.
 * MCP-CONNECTION-2 When the connection ends for any reason, `onClosed` is called and every pending call rejects.
 * MCP-CONNECTION-3 A question of the server (elicitation) is put to a person, for the one call that runs; the time of the call
 *    stops meanwhile. If several run, none says whose it is: that one, and those past `MOST_QUESTIONS`, are declined, and the
 *    results contain them.
 * MCP-CONNECTION-4 Revision 2026-07-28 is tried first, unless `isOld`: then 2025-11-25 or an older one, as the server has it.
 */

/** Limit for servers that return cursors endlessly. */
export const MOST_PAGES = 100;

const toolPage = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

/** Limits for what a server asks during one call. */
const MOST_QUESTIONS = 20;
const MOST_DECLINED = 5;
const LONGEST_QUESTION = 600;
/** Characters of a question and its fields, as JSON. */
const LARGEST_FORM = 16_384;
const LONGEST_PROGRESS = 300;

export interface Link {
  readonly transport: Transport;
  /** After a transport error, ping the server to find out whether it still answers. */
  readonly probe: boolean;
  /** The end of the server's error output. */
  readonly lastWords?: () => string;
  /** Hides secret values in the tools that the server lists; absent: shows them as they are. */
  readonly hide?: HideValues;
}

export interface ConnectionEvents {
  onToolsChanged(): void;
  /** Called before the pending calls reject. */
  onClosed(): void;
}

type Ask = (
  asks: Omit<ServerAsks, 'server'>,
  signal: AbortSignal,
) => Promise<Readonly<Record<string, unknown>> | null | undefined>;

/** A call that runs. */
interface Running extends Pick<CallOptions, 'declined' | 'ask'> {
  readonly clock: PausableTimers;
  readonly ended: AbortSignal;
  /** Its questions so far. */
  asked: number;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
  /** The span of the call (W3C Trace Context). */
  readonly traceparent: string | undefined;
  /** Gets the questions that were declined, and why (MCP-CONNECTION-3). */
  readonly declined: string[];
  /** Absent: nobody can be asked. */
  readonly ask?: Ask | undefined;
  readonly onProgress?: ((text: string) => void) | undefined;
}

export class Connection {
  readonly #client: Client;
  readonly #link: Link;
  readonly #times: McpTimes;
  #probing: Promise<void> | null = null;
  readonly #running = new Set<Running>();
  #tooLarge: MessageTooLarge | null = null;
  #pingError: unknown = null;
  readonly #over = new AbortController();

  private constructor(link: Link, times: McpTimes, events: ConnectionEvents) {
    this.#link = link;
    this.#times = times;
    this.#client = new Client(
      { name: 'parley', version: VERSION },
      {
        capabilities: { elicitation: { form: {}, url: {} } },
        listChanged: {
          tools: { autoRefresh: false, debounceMs: 0, onChanged: () => events.onToolsChanged() },
        },
        versionNegotiation: {
          mode: 'auto',
          probe: { timeoutMs: Math.min(times.connectMs / 2, times.discoverMs) },
        },
      },
    );
    this.#client.setRequestHandler('elicitation/create', ({ params }, { mcpReq }) =>
      this.#elicit(params, mcpReq.signal),
    );
    this.#client.setNotificationHandler('notifications/tools/list_changed', () => events.onToolsChanged());
    this.#client.onclose = () => {
      this.#over.abort();
      events.onClosed();
    };
    this.#client.onerror = (error) => {
      if (error instanceof MessageTooLarge) this.#tooLarge = error;
      else if (link.probe) this.#probe();
    };
  }

  /** Rejects if the connection fails; the transport is then closed. */
  static async open(
    link: Link,
    options: { times: McpTimes; events: ConnectionEvents; signal: AbortSignal; isOld: boolean },
  ): Promise<Connection> {
    const { times, events, signal, isOld } = options;
    const connection = new Connection(link, times, events);
    const own = linkedAbort(signal);
    // The SDK's timeout does not cover everything that it waits for; closing the transport does.
    own.signal.addEventListener('abort', () => void link.transport.close(), { once: true });
    const late = setTimeout(() => own.abort(), times.connectMs);
    try {
      await connection.#client.connect(link.transport, {
        timeout: times.connectMs,
        ...(isOld && { prior: { kind: 'legacy' } }),
      });
      own.signal.throwIfAborted();
      void connection.#keepListening(events);
      return connection;
    } catch (error) {
      await link.transport.close();
      if (signal.aborted) throw error;
      const isLate = error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
      const { timeout = times.connectMs } = isLate ? ((error.data ?? {}) as { timeout?: number }) : {};
      throw own.signal.aborted || isLate ? new Error(`it did not answer within ${timeout / 1000} s`) : error;
    } finally {
      clearTimeout(late);
      own.unlink();
    }
  }

  /** Revision 2026-07-28: a stream of changes that ends is requested again, and what changed meanwhile is listed. */
  async #keepListening({ onToolsChanged }: ConnectionEvents): Promise<void> {
    const { restartMs, restartMaxMs, connectMs: timeout } = this.#times;
    let stream = this.#client.autoOpenedSubscription;
    if (!stream) return;
    for (let waitMs = restartMs; ; waitMs = Math.min(waitMs * 2, restartMaxMs)) {
      if (stream && (await stream.closed) === 'local') return;
      await sleep(waitMs, this.#over.signal);
      if (this.isOver) return;
      stream = await this.#client.listen({ toolsListChanged: true }, { timeout }).catch(() => undefined);
      if (stream) onToolsChanged();
    }
  }

  /** `fault`: why a tool cannot be offered. Such tools are left out, and named with the reason. `isCut`: there are more pages. */
  async listTools(
    signal: AbortSignal,
    fault: (tool: Tool) => string | null,
  ): Promise<{
    readonly tools: readonly Tool[];
    readonly leftOut: readonly string[];
    readonly isCut: boolean;
  }> {
    if (this.#client.getServerCapabilities()?.tools === undefined)
      return { tools: [], leftOut: [], isCut: false };
    const given: unknown[] = [];
    let cursor: string | undefined;
    let size = 0;
    for (let page = 0; page < MOST_PAGES && size < LONGEST_MESSAGE; page += 1) {
      const result = await this.#listPage(cursor, signal);
      const { hide } = this.#link;
      given.push(...result.tools.map((tool) => (hide ? hideInside(hide, tool) : tool)));
      size += JSON.stringify(result.tools).length;
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    const tools: Tool[] = [];
    const leftOut: string[] = [];
    for (const one of given) {
      const data = isSpecType.Tool(one) ? one : undefined;
      const why =
        data === undefined
          ? 'it is no tool of the protocol'
          : data.execution?.taskSupport === 'required'
            ? 'it only runs as a task'
            : fault(data);
      if (why === null && data !== undefined) tools.push(data);
      else leftOut.push(`${nameOf(one)}: ${why}`);
    }
    return { tools, leftOut, isCut: cursor !== undefined };
  }

  /** Uses its own signal: the SDK never removes its listener. */
  async #listPage(cursor: string | undefined, signal: AbortSignal): Promise<z.infer<typeof toolPage>> {
    const params = cursor === undefined ? {} : { cursor };
    const own = linkedAbort(signal);
    try {
      const options = { timeout: this.#times.connectMs, signal: own.signal };
      return await this.#client.request({ method: 'tools/list', params }, toolPage, options);
    } finally {
      own.unlink();
    }
  }

  /** `signal` must be the call's own: the SDK never removes its listener. */
  async callTool(
    name: string,
    given: Readonly<Record<string, unknown>>,
    { idempotencyKey, traceparent, signal, declined, ask, onProgress }: CallOptions,
  ): Promise<ToolResult> {
    const ended = linkedAbort(signal);
    const clock = callClock(this.#times, (late) => ended.abort(late));
    const running = { declined, ask, clock, ended: ended.signal, asked: 0 };
    this.#running.add(running);
    const _meta = { 'parley/idempotency-key': idempotencyKey, ...(traceparent && { traceparent }) };
    try {
      return await this.#client.request(
        { method: 'tools/call', params: { name, arguments: { ...given }, _meta } },
        toolResult,
        {
          signal: ended.signal,
          timeout: MAX_TIMER_MS,
          onprogress: (progress) => {
            clock.refreshFirst();
            onProgress?.(progressText(progress));
          },
        },
      );
    } finally {
      this.#running.delete(running);
      clock.stop();
      ended.abort();
      ended.unlink();
    }
  }

  /** MCP-CONNECTION-3 */
  async #elicit(params: ElicitRequest['params'], signal: AbortSignal): Promise<ElicitResult> {
    const [only, ...others] = this.#running;
    const asks = only ? askedIn(params, this.#link.hide) : null;
    if (only) only.asked += 1;
    if (!only?.ask || others.length > 0 || asks === null || only.asked > MOST_QUESTIONS) {
      const why =
        others.length > 0
          ? 'several calls of it ran'
          : asks === null
            ? 'it cannot be shown'
            : only?.ask
              ? 'it asked too often'
              : 'a call cannot wait here';
      for (const { declined } of this.#running)
        if (declined.length < MOST_DECLINED) declined.push(`${questionIn(params)}. It was declined: ${why}`);
      return { action: 'decline' };
    }
    const { ask, clock, ended } = only;
    const content = await clock.paused(() => ask(asks, AbortSignal.any([signal, ended])));
    if (content === undefined) return { action: 'cancel' };
    if (content === null) return { action: 'decline' };
    return asks.url === undefined
      ? { action: 'accept', content: { ...content } as ElicitResult['content'] }
      : { action: 'accept' };
  }

  /** What the server answered to the ping after which this side closed the connection; null: it did not. */
  get pingError(): unknown {
    return this.#pingError;
  }

  /** Why this side closed the connection; null: it did not. */
  get fault(): MessageTooLarge | null {
    return this.#tooLarge;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  lastWords(): string {
    return this.#link.lastWords?.() ?? '';
  }

  /** Closes the transport, not the client: the client may release it before it has ended. */
  async close(): Promise<void> {
    await this.#link.transport.close();
    await this.#probing;
  }

  #probe(): void {
    if (this.isOver) return;
    this.#probing ??= this.#client
      .request(
        { method: this.#client.getProtocolEra() === 'modern' ? 'server/discover' : 'ping' },
        { timeout: this.#times.probeMs },
      )
      .then(() => undefined)
      .catch((error: unknown) => {
        this.#pingError = error;
        return this.#link.transport.close();
      })
      .finally(() => {
        this.#probing = null;
      });
  }
}

/** `3 of 10: reading` */
function progressText({ progress, total, message }: Progress): string {
  const share = total === undefined ? `${progress}` : `${progress} of ${total}`;
  return inOneLine(cut(message ? `${share}: ${message}` : share, LONGEST_PROGRESS));
}

/** Null: a person cannot be shown it as a whole. */
function askedIn(params: ElicitRequest['params'], hide?: HideValues): Omit<ServerAsks, 'server'> | null {
  const url = 'url' in params ? params.url : undefined;
  const schema = 'requestedSchema' in params ? params.requestedSchema : { type: 'object' };
  const asks = { message: params.message, schema, ...(url !== undefined && { url }) };
  const isShown = url === undefined || /^https?:\/\//.test(url);
  if (!isShown || JSON.stringify(asks).length > LARGEST_FORM) return null;
  return hide ? (hideInside(hide, asks) as typeof asks) : asks;
}

/** The time of a call: without a word of the server, and in all. Both stop while a person is asked, and begin again then. */
function callClock({ callMs, callInAllMs }: McpTimes, onLate: (error: SdkError) => void): PausableTimers {
  const late = (why: string) => () => onLate(new SdkError(SdkErrorCode.RequestTimeout, why));
  return new PausableTimers(() => [
    setTimeout(late(`no word in ${callMs / 1000} s`), callMs),
    setTimeout(late(`no result in ${callInAllMs / 1000} s`), callInAllMs),
  ]);
}

/** With the names of the fields that it has. */
function questionIn(params: ElicitRequest['params']): string {
  const fields = 'requestedSchema' in params ? Object.keys(params.requestedSchema.properties) : [];
  const about = fields.length === 0 ? '' : ` (${fields.join(', ')})`;
  return inOneLine(cut(`${params.message}${about}`, LONGEST_QUESTION));
}

function nameOf(tool: unknown): string {
  const name = typeof tool === 'object' && tool !== null && 'name' in tool ? tool.name : undefined;
  return typeof name === 'string' ? inOneLine(cut(name, 64)) : '(a tool without a name)';
}

export interface SecretValue {
  reveal(): string;
}

/** The configuration of a server in `parley.yaml`. A secret is revealed only to its own server. */
export type McpServerSettings = {
  /** Trust the server's `readOnlyHint`. Default: false. */
  readonly trustReadOnlyHint?: boolean;
} & (
  | {
      readonly transport: 'command';
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, SecretValue>>;
    }
  | {
      readonly transport: 'http';
      readonly url: string;
      readonly headers: Readonly<Record<string, SecretValue>>;
      readonly oauth?: OAuthSettings;
    }
);

interface OAuthSettings {
  readonly clientId?: string;
  readonly clientSecret?: SecretValue;
  readonly scope?: string;
  readonly authorizationServer?: string;
}

export type McpLog = Pick<Log, 'info' | 'warn'>;

/** Timeouts and intervals in milliseconds. */
export interface McpTimes {
  /** For a server to start and list its tools: `npx` may have to fetch it first. */
  readonly connectMs: number;
  /** For a server to say which revisions it knows: an old one may say nothing. */
  readonly discoverMs: number;
  /** For a call without a message from the server; progress restarts it. */
  readonly callMs: number;
  /** For a call in all. */
  readonly callInAllMs: number;
  /** For a server to answer whether it is still there. */
  readonly probeMs: number;
  /** For an answer that is still being read when its stream has ended. */
  readonly answerGraceMs: number;
  /** For a server to end by itself, and again after SIGTERM. */
  readonly endMs: number;
  /** Before a server is started again: doubles with each failure in a row, up to `restartMaxMs`. */
  readonly restartMs: number;
  readonly restartMaxMs: number;
  /** After this uptime the count of consecutive failures is reset. */
  readonly stableMs: number;
}

export const DEFAULT_TIMES: McpTimes = {
  connectMs: 60_000,
  discoverMs: 10_000,
  callMs: 300_000,
  callInAllMs: LONGEST_CALL_MS,
  probeMs: 5000,
  answerGraceMs: 1000,
  endMs: 2000,
  restartMs: 500,
  restartMaxMs: 60_000,
  stableMs: 30_000,
};
