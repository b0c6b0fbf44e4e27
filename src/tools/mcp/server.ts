import type { Tool } from '@modelcontextprotocol/client';
import type { ToolOutcome, ToolRun, ToolServer } from '../../agents/tool-port.ts';
import {
  type Clock,
  type HideValues,
  hasLoneSurrogate,
  isRecord,
  type JsonRecord,
  linkedAbort,
  sleep,
} from '../../kernel/index.ts';
import { CheckBudget, draftFault, shapeFault, valueCheck } from '../../kernel/json-schema.ts';
import { completed, failed } from '../toolbox.ts';
import {
  type CallOptions,
  Connection,
  type Link,
  type McpLog,
  type McpTimes,
  MOST_PAGES,
} from './connection.ts';
import { callFailure, isClosed, type Reason, unavailable, wantsLogin } from './failure.ts';
import { renderResult } from './render-result.ts';

/**
 * Keeps one configured server running, from its first use to `close`.
 *
 * TOOLS-MCP-SERVER-1 One connection at a time, opened and closed in one loop. A connection and its processes have ended before
 *    the next one starts.
 * TOOLS-MCP-SERVER-2 After a connection ends, the next one starts with exponential backoff over consecutive failures. A stable
 *    connection resets the count.
 * TOOLS-MCP-SERVER-3 After the first failure its tools stay known and calls wait for the restart. After the second failure they
 *    are gone until the server is ready.
 * TOOLS-MCP-SERVER-4 A call ends with its answer, its connection, its timeout or its signal. It is never sent twice.
 * TOOLS-MCP-SERVER-5 A start that fails may fail because the server does not know the newest revision: a program exits, a gateway
 *    answers 500 or nothing. The next start uses the old handshake, and the one after it the new one again.
 */

interface ServerOptions {
  readonly name: string;
  /** Default: false. */
  readonly trustsReadOnlyHint?: boolean;
  /** Throws if the server cannot be started. */
  readonly link: () => Link;
  readonly times: McpTimes;
  readonly reason: Reason;
  readonly log: McpLog;
  /** Resolves when a start that failed may succeed, such as after a login; absent: only time tells. */
  readonly changed?: (signal: AbortSignal) => Promise<void>;
  /** Hides secrets in results; absent: nothing. */
  readonly hide?: HideValues;
  /** The monotonic clock. */
  readonly elapsed: Clock;
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  /** Called before the tools become callable. */
  readonly onListed?: (tools: readonly Tool[]) => void;
  /** Called when the tools may have changed. */
  readonly onChange: () => void;
}

type State =
  | { readonly kind: 'connecting'; readonly tools: readonly Tool[] }
  | {
      readonly kind: 'ready';
      readonly tools: readonly Tool[];
      /** Tools that cannot be offered, each with the reason. */
      readonly leftOut: readonly string[];
      readonly connection: Connection;
    }
  | { readonly kind: 'failed'; readonly error: string };

type Listed = Pick<Extract<State, { kind: 'ready' }>, 'tools' | 'leftOut'>;

interface LifeEnd {
  readonly error: string;
  /** Null: never ready. */
  readonly readyMs: number | null;
  readonly tools: readonly Tool[];
}

export interface ServerStatus extends Omit<ToolServer, 'tools' | 'unaccepted'> {
  readonly tools: number;
}

interface ServerCall
  extends Pick<ToolRun, 'arguments' | 'idempotencyKey' | 'traceparent' | 'onProgress' | 'ask'> {
  /** As the server calls it. */
  readonly tool: string;
}

export class McpServer {
  readonly #options: ServerOptions;
  readonly checks: CheckBudget;
  readonly #stop = new AbortController();
  readonly #waiting = new Set<() => void>();
  #state: State = { kind: 'connecting', tools: [] };
  #lives: Promise<void> | null = null;
  /** TOOLS-MCP-SERVER-5 */
  #isOld = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.checks = new CheckBudget(options.elapsed);
  }

  get name(): string {
    return this.#options.name;
  }

  /** Whether a trusted server declares this tool as read-only. */
  isSafe({ annotations }: Tool): boolean {
    return this.#options.trustsReadOnlyHint === true && annotations?.readOnlyHint === true;
  }

  get tools(): readonly Tool[] {
    return this.#state.kind === 'failed' ? [] : this.#state.tools;
  }

  get isConnecting(): boolean {
    return this.#state.kind === 'connecting' && !this.#stop.signal.aborted;
  }

  status(): ServerStatus {
    const state = this.#state;
    const { tools } = this;
    const common = { server: this.name, state: state.kind, tools: tools.length };
    if (state.kind === 'failed') return { ...common, error: state.error };
    const leftOut = state.kind === 'ready' ? state.leftOut : [];
    return leftOut.length > 0 ? { ...common, leftOut } : common;
  }

  /** Idempotent; does not wait. */
  start(): void {
    if (!this.#stop.signal.aborted) this.#lives ??= this.#runLives();
  }

  /** Resolves when the server is ready or has failed, or when the signal aborts. */
  async settled(signal?: AbortSignal): Promise<void> {
    if (!this.isConnecting || signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#waiting.delete(done);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      signal?.addEventListener('abort', done, { once: true });
    });
  }

  /** TOOLS-MCP-SERVER-4. Never rejects. */
  async call(call: ServerCall, signal: AbortSignal): Promise<ToolOutcome> {
    await this.settled(signal);
    if (signal.aborted) return { kind: 'aborted' };
    const state = this.#state;
    if (state.kind !== 'ready') return unavailable(this.name, state.kind === 'failed' ? state.error : null);
    const own = linkedAbort(signal);
    const declined: string[] = [];
    const { hide = (text) => text } = this.#options;
    const noted = (text: string) => {
      const whole = [text, ...declined.map(declinedNote)].filter(Boolean).join('\n');
      return hide(whole);
    };
    try {
      const { idempotencyKey, traceparent } = call;
      const onProgress = (text: string) => call.onProgress?.(hide(text));
      const ask: CallOptions['ask'] =
        call.ask &&
        ((asks, ended) => call.ask?.({ server: this.name, ...asks }, ended) ?? Promise.resolve(undefined));
      const options = { signal: own.signal, idempotencyKey, traceparent, declined, ask, onProgress };
      const result = await state.connection.callTool(call.tool, call.arguments, options);
      const { text, files } = renderResult(result);
      if (!result.isError) return completed(noted(text), files);
      return failed('TOOL_FAILED', noted(text || 'the tool failed and did not say why'), files);
    } catch (error) {
      if (signal.aborted) return { kind: 'aborted' };
      const { fault, pingError } = state.connection;
      const cause = fault ?? error;
      const why = fault ?? (isClosed(error) ? (pingError ?? error) : error); // such as a login that was revoked
      const { code, message } = callFailure(this.name, cause, this.#options.reason(why));
      return failed(code, noted(message));
    } finally {
      own.unlink();
    }
  }

  /** Idempotent; resolves when the server has ended. */
  async close(): Promise<void> {
    this.#stop.abort();
    const state = this.#state;
    if (state.kind === 'ready') await state.connection.close();
    await this.#lives;
    this.#become({ kind: 'failed', error: 'closed' });
  }

  /** TOOLS-MCP-SERVER-2 */
  async #runLives(): Promise<void> {
    const { times, random } = this.#options;
    const { signal } = this.#stop;
    let failures = 0;
    while (!signal.aborted) {
      const end = await this.#runLife();
      if (signal.aborted) return;
      const wasStable = end.readyMs !== null && end.readyMs >= times.stableMs;
      failures = wasStable ? 1 : failures + 1;
      const bound = Math.min(times.restartMaxMs, times.restartMs * 2 ** (failures - 1));
      const waitMs = Math.ceil(bound / 2 + (random() * bound) / 2);
      this.#logEnd(end, waitMs);
      const isFirst = failures === 1 && end.readyMs !== null;
      this.#become(isFirst ? { kind: 'connecting', tools: end.tools } : { kind: 'failed', error: end.error }); // TOOLS-MCP-SERVER-3
      await this.#pause(waitMs);
    }
  }

  async #pause(waitMs: number): Promise<void> {
    const own = linkedAbort(this.#stop.signal);
    await Promise.race([
      sleep(waitMs, own.signal),
      ...(this.#options.changed ? [this.#options.changed(own.signal)] : []),
    ]);
    own.abort();
    own.unlink();
  }

  async #runLife(): Promise<LifeEnd> {
    const { name, log, reason, elapsed } = this.#options;
    const life = linkedAbort(this.#stop.signal);
    let connection: Connection | null = null;
    let readyAt: number | null = null;
    let list: Listed = { tools: [], leftOut: [] };
    let problem: unknown = new Error('the connection ended');
    try {
      const changed = new Latch();
      connection = await this.#open(changed, life.signal);
      for (; !connection.isOver; await changed.next()) {
        list = await this.#list(connection, readyAt === null ? null : list, life.signal);
        if (connection.isOver) break;
        const { tools } = list;
        if (readyAt === null) log.info({ server: name, tools: tools.length }, 'an MCP server is ready');
        readyAt ??= elapsed();
        this.#options.onListed?.(tools);
        this.#become({ kind: 'ready', ...list, connection });
      }
    } catch (error) {
      problem = error;
    } finally {
      problem = connection?.fault ?? connection?.pingError ?? problem;
      life.unlink();
    }
    await connection?.close();
    const words = connection?.lastWords() ?? '';
    const error = reason(words === '' ? problem : new Error(`${reason(problem)}; it said: ${words}`));
    return { error, readyMs: readyAt === null ? null : elapsed() - readyAt, tools: list.tools };
  }

  async #open(changed: Latch, signal: AbortSignal): Promise<Connection> {
    const events = {
      onToolsChanged: () => changed.set(),
      onClosed: () => {
        // Synchronously, so that new calls wait for the next connection.
        if (this.#state.kind === 'ready') this.#become({ kind: 'connecting', tools: this.#state.tools });
        changed.set();
      },
    };
    const link = this.#options.link();
    try {
      return await Connection.open(link, { times: this.#options.times, events, signal, isOld: this.#isOld });
    } catch (error) {
      this.#isOld = !this.#isOld && !wantsLogin(error);
      const words = link.lastWords?.() ?? '';
      throw words === '' ? error : new Error(`${this.#options.reason(error)}; it said: ${words}`);
    }
  }

  /** `known`: the list to keep if a new one cannot be read; null: none yet. */
  async #list(connection: Connection, known: Listed | null, signal: AbortSignal): Promise<Listed> {
    const { name, log, reason } = this.#options;
    try {
      const fault = (tool: Tool) => toolFault(tool, this.checks);
      const { tools, leftOut, isCut } = await connection.listTools(signal, fault);
      if (isCut)
        log.warn(
          { server: name, pages: MOST_PAGES, tools: tools.length },
          'the list of tools of an MCP server does not end: the rest is left out',
        );
      const news = leftOut.filter((one) => !known?.leftOut.includes(one));
      if (news.length > 0) log.warn({ server: name, tools: news }, 'tools of an MCP server cannot be used');
      return { tools, leftOut };
    } catch (error) {
      if (known === null) throw error;
      log.warn(
        { server: name, error: reason(error) },
        'the changed tools of an MCP server could not be listed',
      );
      return known;
    }
  }

  #logEnd({ error, readyMs }: LifeEnd, waitMs: number): void {
    const state = this.#state;
    if (state.kind === 'failed' && state.error === error && readyMs === null) return; // already logged
    const message = readyMs === null ? 'an MCP server cannot be used' : 'an MCP server is gone';
    this.#options.log.warn({ server: this.name, error, nextTryMs: waitMs }, message);
  }

  #become(state: State): void {
    this.#state = state;
    this.#options.onChange();
    if (this.isConnecting) return;
    for (const done of [...this.#waiting]) done();
  }
}

const declinedNote = (question: string) =>
  `[during this call the server asked: ${question}. Ask a person, then call again with the answer in the arguments if the tool takes it.]`;

/** A flag for one waiter: several `set` calls count as one. */
class Latch {
  #isSet = false;
  #wake: (() => void) | null = null;

  set(): void {
    this.#isSet = true;
    this.#wake?.();
  }

  async next(): Promise<void> {
    if (!this.#isSet) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    this.#isSet = false;
  }
}

/** Null: the arguments match the schema; else the error, for the model. */
export type ArgumentsCheck = (given: unknown) => string | null;

/** Where the server's schema cannot be compiled or its budget is spent, the server checks instead. */
export function argumentsCheck(schema: JsonRecord, budget: CheckBudget): ArgumentsCheck {
  const check = valueCheck(schema, budget, 'arguments');
  return (given) => (isRecord(given) ? (check(given) ?? null) : 'the arguments must be an object');
}

/**
 * Why a strict provider would refuse every request that offers this tool; null: it would not. One of them reads all tools of a
 * request as JSON Schema, and texts as UTF-8.
 */
function toolFault({ name, title, description, inputSchema }: Tool, budget: CheckBudget): string | null {
  if ([name, title ?? '', description ?? ''].some(hasLoneSurrogate))
    return 'it has half a character (a lone surrogate)';
  const fault = shapeFault(inputSchema) ?? budget.spend(() => draftFault(inputSchema)); // without time, it counts as right
  return fault?.replace(/^the schema/, 'its schema') ?? null;
}
