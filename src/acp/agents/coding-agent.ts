import {
  type ContentBlock,
  methods,
  type NewSessionRequest,
  type PromptResponse,
  RequestError,
  type RequestPermissionRequest,
  type SessionUpdate,
  type StopReason,
} from '@agentclientprotocol/sdk';
import {
  escapeMarkers,
  type FilePart,
  fileLine,
  permissionIn,
  type ReportedCall,
  reportedUsageSchema,
  type SentPrompt,
  type Usage,
} from '../../conversation/index.ts';
import {
  abortable,
  InOrder,
  type LinkedAbort,
  linkedAbort,
  ParleyError,
  PausableTimers,
  within,
} from '../../kernel/index.ts';
import { heardBlocks, textBlock } from '../blocks.ts';
import { type AgentCommand, AgentConnection, START_MS } from './connection.ts';
import { permission, permitCall } from './permission.ts';
import {
  type AcpAnswer,
  type AcpProgress,
  type FileStore,
  type OfferedTurn,
  promptFor,
  type ToolRequest,
  type TurnMessage,
  takenBy,
} from './turn.ts';
import { type CallResult, TurnTools } from './turn-tools.ts';
import { Updates } from './updates.ts';

/**
 * One coding agent: a handler of the turns that are offered to it.
 *
 * CODING-AGENT-1 One process for all conversations, started with the first turn and again after it ended; one session for each conversation.
 * CODING-AGENT-2 A session is continued by this process, else loaded or resumed where the agent can; else a new one is told the whole view.
 *                One that has not listed a tool of the turn is closed and loaded again: agents list tools only when a session begins.
 *                So is one that the agent does not know, or whose prompts were answered with an error twice in a row: it may be lost.
 * CODING-AGENT-3 A turn that ends is cancelled in the session. A process that does not stop within `cancelMs`, or is still beginning
 *                the session then, is ended, with the turns that it has in other conversations.
 * CODING-AGENT-4 A turn without any update for `idleSeconds` fails and is cancelled. Waiting for a person does not count.
 * CODING-AGENT-5 A message that arrives during a turn is the next prompt of that turn. So is, before, what a person said with a permission,
 *                for which the protocol has no field, and the result of a call that the program gave up. The same call again waits for it.
 * CODING-AGENT-6 A turn waits for the end of the one before in its conversation: a daemon that restarted offers it again while the
 *                session still has the first prompt. The calls of that prompt are reported with the turn, for an hour. It waits for the
 *                turn of another conversation in which a message named its session, too.
 */

export interface CodingAgentSettings extends AgentCommand {
  readonly idleSeconds: number;
  readonly files: FileStore;
  /** For a process to stop a turn that was cancelled (CODING-AGENT-3). Absent: 5 s. */
  readonly cancelMs?: number;
  /** How often a call of a tool that waits says so. Absent: every 20 s. */
  readonly beatMs?: number;
  /** How long the calls of a turn that was taken back are kept (CODING-AGENT-6). Absent: an hour. */
  readonly withdrawnMs?: number;
}

const CANCEL_MS = 5_000;
/** The code of the protocol. */
const SESSION_NOT_FOUND = -32_002;
const WITHDRAWN_MS = 3_600_000;

/** A turn that runs in a session. */
interface Running {
  readonly turn: OfferedTurn;
  readonly updates: Updates;
  readonly silence: Silence;
  /** Files of results, which the calls returned. */
  readonly given: Set<TurnMessage>;
  /** For the next prompt (CODING-AGENT-5). */
  readonly remarks: string[];
  readonly made: Map<string, MadeCall>;
  isPrompting: boolean;
  session?: string;
  /** What it was told, until an answer or a call has it. */
  prompt?: SentPrompt | undefined;
}

/** A call of a tool, by its name and arguments. */
interface MadeCall {
  readonly result: Promise<CallResult>;
  /** The program does not wait for it. */
  isGivenUp(): boolean;
}

/** The files of a result follow it as a message of their own (V19). */
const isOfResult = ({ role, content, files = [] }: TurnMessage) =>
  role === 'user' && files.length > 0 && content === files.map(fileLine).join('\n');

function takePrompt(running: Running): Pick<AcpAnswer, 'prompt'> {
  const { prompt } = running;
  running.prompt = undefined;
  return prompt ? { prompt } : {};
}

/** What the log has of a turn that a call may end, or that fails. */
function soFarOf(running: Running, reported: readonly ReportedCall[]): AcpProgress {
  const { session: sessionId } = running;
  return {
    ...(sessionId !== undefined && { sessionId }),
    ...(reported.length > 0 && { reported }),
    ...takePrompt(running),
  };
}

interface Session {
  readonly id: string;
  /** It was told nothing yet. */
  readonly isNew: boolean;
}

export class CodingAgent {
  readonly #settings: CodingAgentSettings;
  readonly #tools: TurnTools;
  #opening: Promise<AgentConnection> | null = null;
  /** By conversation: the sessions of this process. */
  readonly #sessions = new Map<string, string>();
  /** Conversations whose newest prompt was answered with an error. */
  readonly #failed = new Set<string>();
  /** By session: its cost (ACP-USAGE-2). */
  readonly #usd = new Map<string, number>();
  /** By conversation. */
  readonly #handling = new InOrder();
  readonly #bySession = new InOrder();
  /** By conversation: the calls of a turn that was taken back. */
  readonly #withdrawn = new Map<string, { readonly turnId: string; readonly updates: Updates }>();
  /** By session. */
  readonly #running = new Map<string, Running>();

  constructor(settings: CodingAgentSettings) {
    this.#settings = settings;
    this.#tools = new TurnTools(settings.beatMs);
  }

  /** Rejects with what a person can do (`ACP_…`). */
  handle(turn: OfferedTurn): Promise<AcpAnswer> {
    const { conversation, sessionId } = turn;
    const handle = () => this.#handle(turn);
    const inSession = () => (sessionId === undefined ? handle() : this.#bySession.run(sessionId, handle));
    return this.#handling.run(conversation, inSession).catch(withNextStep); // CODING-AGENT-6
  }

  async #handle(turn: OfferedTurn): Promise<AcpAnswer> {
    turn.signal.throwIfAborted();
    const connection = await this.#connection();
    turn.signal.throwIfAborted();
    const running: Running = {
      turn,
      updates: new Updates(turn, this.#callsBefore(turn)),
      given: new Set(),
      remarks: [],
      made: new Map(),
      isPrompting: false,
      silence: new Silence(this.#settings.idleSeconds, turn.signal),
    };
    turn.reports?.(() => soFarOf(running, running.updates.calls));
    this.#tools.begin(turn.conversation, turn.tools, (...call) => this.#callTool(running, ...call));
    try {
      const beginning = this.#sessionFor(turn, connection);
      const end = () => this.#endUnless(beginning, connection);
      const session = await this.#until(beginning, running.silence.signal, end);
      const answer = await this.#prompt(running, session, connection);
      this.#failed.delete(turn.conversation);
      return answer;
    } catch (error) {
      if (turn.signal.aborted) this.#withdraw(running);
      turn.signal.throwIfAborted();
      if (error instanceof RequestError && connection.reopens) this.#noteError(turn.conversation, error);
      throw Object.assign(connection.failure(error), { soFar: soFarOf(running, running.updates.calls) });
    } finally {
      running.silence.end();
      this.#tools.end(turn.conversation);
    }
  }

  /** CODING-AGENT-2 */
  #noteError(conversation: string, { code }: RequestError): void {
    if (code !== SESSION_NOT_FOUND && !this.#failed.has(conversation))
      return void this.#failed.add(conversation);
    this.#failed.delete(conversation);
    this.#sessions.delete(conversation);
  }

  /** CODING-AGENT-6 */
  #callsBefore({ conversation, turnId }: OfferedTurn): Updates | undefined {
    const before = this.#withdrawn.get(conversation);
    this.#withdrawn.delete(conversation);
    return before?.turnId === turnId ? before.updates : undefined;
  }

  /** It may be offered again, or was stopped for good. */
  #withdraw({ turn: { conversation, turnId }, updates }: Running): void {
    const withdrawn = { turnId, updates };
    this.#withdrawn.set(conversation, withdrawn);
    const drop = () =>
      this.#withdrawn.get(conversation) === withdrawn && this.#withdrawn.delete(conversation);
    setTimeout(drop, this.#settings.withdrawnMs ?? WITHDRAWN_MS).unref();
  }

  /** Closes when no turn runs. */
  async closeWhenIdle(): Promise<void> {
    await this.#handling.idle();
    await this.close();
  }

  async close(): Promise<void> {
    const connection = await this.#opening?.catch(() => null);
    await connection?.close();
    await this.#tools.close();
  }

  /** CODING-AGENT-1 */
  #connection(): Promise<AgentConnection> {
    if (this.#opening) return this.#opening;
    const events = {
      update: (session: string, update: SessionUpdate) => this.#take(session, update),
      permission: (request: RequestPermissionRequest) => this.#permit(request),
    };
    const startMs = Math.min(START_MS, this.#settings.idleSeconds * 1_000);
    const opening = AgentConnection.open(this.#settings, events, startMs);
    this.#opening = opening;
    const forget = () => {
      if (this.#opening !== opening) return;
      this.#opening = null;
      this.#sessions.clear();
      this.#usd.clear();
    };
    opening.then(({ ended }) => ended.addEventListener('abort', forget, { once: true }), forget);
    return opening;
  }

  /** CODING-AGENT-2 */
  async #sessionFor(turn: OfferedTurn, { agent, about, reopens: again }: AgentConnection): Promise<Session> {
    const { conversation, sessionId } = turn;
    const isOpen = sessionId !== undefined && this.#sessions.get(conversation) === sessionId;
    if (isOpen && !this.#tools.isOutdated(conversation)) return { id: sessionId, isNew: false };
    const { agentCapabilities: can } = about;
    if (isOpen && can?.sessionCapabilities?.close)
      await agent.request(methods.agent.session.close, { sessionId }).catch(() => undefined); // it may list them all the same
    const where: NewSessionRequest = {
      cwd: this.#settings.directory,
      mcpServers: await this.#tools.serversFor(conversation, can?.mcpCapabilities),
    };
    if (sessionId !== undefined && again) {
      const loading = agent.request(methods.agent.session[again], { sessionId, ...where });
      const isThere = await loading.then(
        () => true,
        () => false, // the agent lost it
      );
      if (isThere) return this.#keep(conversation, sessionId, false);
    }
    const made = await agent.request(methods.agent.session.new, where);
    this.#usd.set(made.sessionId, 0);
    return this.#keep(conversation, made.sessionId, true);
  }

  #keep(conversation: string, id: string, isNew: boolean): Session {
    this.#sessions.set(conversation, id);
    return { id, isNew };
  }

  async #prompt(running: Running, { id, isNew }: Session, connection: AgentConnection): Promise<AcpAnswer> {
    const { turn, updates, silence } = running;
    running.session = id;
    this.#running.set(id, running);
    const costBefore = this.#usd.get(id);
    const read = (file: FilePart) => this.#settings.files.read(turn.conversation, file.sha256);
    try {
      let usage: Usage | undefined;
      let stopReason: StopReason = 'end_turn';
      const isNews = (message: TurnMessage) => !running.given.has(message);
      const takes = takenBy(connection.about.agentCapabilities?.promptCapabilities);
      let told = -1;
      const nextPrompt = async (): Promise<ContentBlock[]> => {
        const remarks = running.remarks.splice(0).map(textBlock);
        if (remarks.length > 0) return remarks;
        const news = turn.news.slice(Math.max(0, told));
        const request = told < 0 ? turn : { messages: news, tools: turn.tools };
        const { blocks, sent } = await promptFor(request, told < 0 && isNew, takes, read);
        running.prompt = told < 0 ? sent : { ...sent, news: news.length };
        told = turn.news.length; // CODING-AGENT-5
        return blocks;
      };
      while (told < 0 || running.remarks.length > 0 || turn.news.slice(told).some(isNews)) {
        const blocks = await nextPrompt();
        updates.endMessage();
        silence.signal.throwIfAborted();
        const prompting = connection.agent.request(methods.agent.session.prompt, {
          sessionId: id,
          prompt: blocks,
        });
        running.isPrompting = true;
        const cancel = () => this.#cancel(id, prompting, connection);
        const answer = await this.#until(prompting, silence.signal, cancel);
        running.isPrompting = false;
        stopReason = answer.stopReason;
        usage = addUsage(usage, answer);
        const left = Promise.allSettled([...running.made.values()].map(({ result }) => result));
        await this.#until(left, silence.signal, async () => undefined);
      }
      const keeping = updates.reported((...file) => this.#settings.files.keep(turn.conversation, ...file));
      const { text: content, files, thoughts, calls } = await abortable(keeping, turn.signal);
      return {
        content,
        sessionId: id,
        finishReason: FINISH[stopReason],
        ...(files.length > 0 && { files }),
        ...(thoughts !== '' && { reasoning: thoughts }),
        ...(calls.length > 0 && { reported: calls }),
        ...takePrompt(running),
        ...(usage && { usage: { ...usage, ...usdBetween(costBefore, this.#usd.get(id)) } }),
      };
    } finally {
      this.#running.delete(id);
    }
  }

  /** The outcome of the work, unless the turn is stopped first: then it is cancelled, and what it still answers does not count. */
  async #until<T>(work: Promise<T>, stopped: AbortSignal, cancel: () => Promise<void>): Promise<T> {
    const outcome = await abortable(work, stopped).catch((error: unknown) => {
      if (!stopped.aborted) throw error;
      return null;
    });
    if (!stopped.aborted && outcome !== null) return outcome;
    await cancel();
    throw stopped.reason;
  }

  /** CODING-AGENT-3 */
  async #cancel(sessionId: string, prompting: Promise<unknown>, connection: AgentConnection): Promise<void> {
    void connection.agent.notify(methods.agent.session.cancel, { sessionId }).catch(() => undefined); // it may not read
    await this.#endUnless(prompting, connection);
  }

  /** CODING-AGENT-3 */
  async #endUnless(work: Promise<unknown>, connection: AgentConnection): Promise<void> {
    const ended = work.then(
      () => true,
      () => true,
    );
    const { cancelMs = CANCEL_MS } = this.#settings;
    const unstopped = `it did not stop a turn of another conversation within ${cancelMs / 1_000} s of its cancellation`;
    if ((await within(cancelMs, ended)) === null) await connection.close(unstopped);
  }

  /** Updates of a session that runs no turn are a replayed history, or come after a cancel. */
  #take(session: string, update: SessionUpdate): void {
    if (update.sessionUpdate === 'usage_update' && update.cost?.currency === 'USD')
      this.#usd.set(session, update.cost.amount);
    const running = this.#running.get(session);
    if (running === undefined) return;
    if (running.turn.signal.aborted && !update.sessionUpdate.startsWith('tool_call')) return;
    running.silence.clock.refreshFirst();
    running.updates.take(update);
  }

  async #permit(request: RequestPermissionRequest) {
    const running = this.#running.get(request.sessionId);
    if (!running) return permission(request.options, false);
    running.updates.take({ sessionUpdate: 'tool_call_update', ...request.toolCall }); // ACP-UPDATES-5
    try {
      const call = permitCall(request, this.#settings.directory);
      const { isGiven, words } = permissionIn((await this.#call(running, call)).text);
      if (words !== '') running.remarks.push(`[${call.arguments.title}: ${escapeMarkers(words)}]`);
      return permission(request.options, isGiven);
    } catch {
      return { outcome: { outcome: 'cancelled' } } as const; // the turn is over
    }
  }

  async #callTool(
    running: Running,
    call: ToolRequest,
    isAbandoned: MadeCall['isGivenUp'],
  ): Promise<CallResult> {
    const { made, remarks } = running;
    const key = JSON.stringify([call.name, call.arguments]);
    const before = made.get(key);
    const own: MadeCall = {
      result: before?.isGivenUp() ? before.result : this.#call(running, call),
      isGivenUp: () => isAbandoned() || !running.isPrompting,
    };
    made.set(key, own);
    try {
      const result = await own.result;
      if (made.get(key) === own && own.isGivenUp())
        remarks.push(
          `[Result of your call ${call.name}, for which you did not wait]: ${escapeMarkers(result.text)}`,
        );
      return result;
    } finally {
      if (made.get(key) === own) made.delete(key);
    }
  }

  /** What was said and done before the call belongs to it. */
  #call(running: Running, call: ToolRequest): Promise<CallResult> {
    const { turn, updates, silence } = running;
    return silence.clock.paused(async () => {
      const soFar = soFarOf(running, updates.takeEnded());
      const arrived = turn.news.length;
      const [result] = await turn.callTools([call], updates.takeText() || undefined, soFar);
      const given = turn.news.slice(arrived).filter(isOfResult);
      for (const message of given) running.given.add(message);
      const files = given.flatMap(({ files: parts = [] }) => parts);
      const read = (file: FilePart) => this.#settings.files.read(turn.conversation, file.sha256);
      return { text: result?.content ?? '', blocks: await heardBlocks(files, read) };
    });
  }
}

/** The message alone reaches the thread, so it also says what to do. */
function withNextStep(error: unknown): never {
  if (!(error instanceof ParleyError) || error.hint === undefined) throw error;
  const told = new ParleyError(error.code, `${error.message.replace(/\.$/, '')}. Next step: ${error.hint}`, {
    cause: error,
  });
  throw Object.assign(told, 'soFar' in error && { soFar: error.soFar });
}

const FINISH: Readonly<Record<StopReason, string>> = {
  end_turn: 'stop',
  max_tokens: 'length',
  max_turn_requests: 'length',
  refusal: 'content_filter',
  cancelled: 'stop',
};

/** CODING-AGENT-4 */
class Silence {
  readonly #over: LinkedAbort;
  /** Refreshed by each sign of the agent; paused while it waits for a person or a tool. */
  readonly clock: PausableTimers;

  constructor(seconds: number, turn: AbortSignal) {
    this.#over = linkedAbort(turn);
    const silent = () =>
      new ParleyError(
        'ACP_SILENT',
        `the agent reported nothing for ${seconds} s, so its prompt was cancelled`,
        { hint: 'raise idleSeconds if it works that long without a sign; post again to continue' },
      );
    const expire = () => this.#over.abort(silent());
    this.clock = new PausableTimers(() => [setTimeout(expire, seconds * 1_000)]);
  }

  /** Aborts when the turn is stopped, or after silence. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  end(): void {
    this.clock.stop();
    this.#over.unlink();
  }
}

/**
 * What an agent reports of its own model calls.
 *
 * ACP-USAGE-1 Tokens are those of the answers to the prompts of a turn. The protocol has no stable field for them, so another form counts as none. Its
 *             numbers are disjoint: input without the cache, output without thoughts.
 * ACP-USAGE-2 A cost is the growth of the session's cost during the turn, in US dollars. Without a known start there is none.
 */
function addUsage(sum: Usage | undefined, answer: PromptResponse): Usage | undefined {
  const { usage } = answer as { readonly usage?: Readonly<Record<string, unknown>> | null };
  const read = reportedUsageSchema.safeParse({
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    cachedInputTokens: usage?.cachedReadTokens ?? 0,
    cacheWriteTokens: usage?.cachedWriteTokens ?? 0,
    reasoningTokens: usage?.thoughtTokens ?? 0,
  });
  if (!read.success) return sum;
  const { inputTokens: fresh, outputTokens: said } = read.data;
  const {
    cachedInputTokens: cached = 0,
    cacheWriteTokens: written = 0,
    reasoningTokens: thought = 0,
  } = read.data;
  const plus = (name: 'cachedInputTokens' | 'cacheWriteTokens' | 'reasoningTokens', tokens: number) => {
    const total = (sum?.[name] ?? 0) + tokens;
    return total > 0 ? { [name]: total } : {};
  };
  return {
    inputTokens: (sum?.inputTokens ?? 0) + fresh + cached + written,
    ...plus('cachedInputTokens', cached),
    ...plus('cacheWriteTokens', written),
    outputTokens: (sum?.outputTokens ?? 0) + said + thought,
    ...plus('reasoningTokens', thought),
  };
}

function usdBetween(before: number | undefined, after: number | undefined): { readonly usd?: number } {
  return before === undefined || after === undefined || after <= before ? {} : { usd: after - before };
}
