import {
  ANY,
  decodeOffer,
  decodeResults,
  isAbort,
  type Subjects,
  type ToolResult,
  type ToolResults,
  type TurnOffer,
} from '../bus/index.ts';
import { type NatsConnection, newInbox } from '../bus/nats/index.ts';
import type { FilePart, ReportedCall, SentPrompt, Usage } from '../conversation/index.ts';
import {
  createIdSource,
  inOrder,
  messageOf,
  type NewId,
  onAbort,
  ParleyError,
  sleep,
} from '../kernel/index.ts';

/**
 * Runs an agent: a function receives each turn that the daemon offers, and returns its answer.
 *
 * CLIENT-AGENT-1 One instance of a slug takes a turn: the instances share a queue group.
 * CLIENT-AGENT-2 Every offer that was taken ends with a final or a failure, unless the daemon withdraws it.
 * CLIENT-AGENT-3 A new offer of a turn that still runs here replaces the older one, whose signal aborts.
 */

/** A turn that the daemon offered, as the agent's own code sees it. */
export interface AgentTurn extends Omit<TurnOffer, 'live' | 'reply' | 'control' | 'heartbeatMs'> {
  /** Aborts when the turn is over for this agent: a person stopped it, or the daemon does not answer any more. */
  readonly signal: AbortSignal;
  /** Sends a piece of the answer to followers. If the handler returns nothing, the pieces are the answer. */
  write(delta: string): void;
  /** As `write`, for reasoning. */
  think(delta: string): void;
  /** Shows followers the name of a call that the agent makes by itself (`reported`). */
  showCall(id: string, name: string): void;
  /**
   * Has the daemon run tools, with approvals and records; resolves with their results, in order. Rejects with `TURN_OVER`
   * when a tool (`handoff`) ends the turn, so say with the calls what the log would otherwise miss.
   */
  callTools(
    calls: readonly AgentToolCall[],
    content?: string,
    soFar?: AgentProgress,
  ): Promise<readonly ToolResult[]>;
  /** The daemon's span for this turn (W3C Trace Context), to continue its trace; absent: the daemon exports none. */
  readonly traceparent?: string;
  /** Messages that arrived while tools ran and that the agent was shown with their results, newest last. */
  readonly news: TurnOffer['messages'];
}

export interface AgentToolCall {
  readonly name: string;
  /** An object, or JSON text. */
  readonly arguments: Readonly<Record<string, unknown>> | string;
  readonly id?: string;
}

/** What was not reported before. */
export type AgentProgress = Pick<AgentAnswer, 'sessionId' | 'reported' | 'prompt'>;

export interface AgentAnswer {
  readonly content: string;
  /** Files that the client's `upload` returned. */
  readonly files?: readonly FilePart[];
  readonly reasoning?: string;
  /** Given with every later turn of this agent in this conversation. */
  readonly sessionId?: string;
  /** Calls that the agent made by itself, for the record: nothing runs or repeats them. */
  readonly reported?: readonly ReportedCall[];
  /** What the session was told before it, for `explain`: the blocks are a function of the request. */
  readonly prompt?: SentPrompt;
  readonly usage?: Usage;
  /** The model that answered, for the record. */
  readonly model?: string;
  /** Why that model ended the answer: `stop` (the default), `length`, `content_filter` … */
  readonly finishReason?: string;
}

/** Answers a turn. An error that it throws is the turn's failure, with its `code` and `soFar` (`AgentProgress`) if it has them. */
export type AgentHandler = (
  turn: AgentTurn,
) => Promise<string | AgentAnswer | undefined> | string | AgentAnswer | undefined;

export interface RunningAgent {
  /** This instance, as the daemon knows it. */
  readonly instance: string;
  /** Takes no more turns; resolves when the running ones have ended. May be called twice. */
  stop(): Promise<void>;
}

/** What agents and followers need of a client. */
export interface Connected {
  readonly connection: NatsConnection;
  readonly subjects: Subjects;
  /** Called when the connection was lost and is back. */
  readonly reconnections: Set<() => void>;
  /** Aborts what runs when the client closes. */
  readonly closing: AbortSignal;
}

export async function runAgent(at: Connected, slug: string, handler: AgentHandler): Promise<RunningAgent> {
  if (slug === ANY) {
    throw new ParleyError('INVALID_NAME', 'an agent cannot be every agent', { hint: 'name one slug' });
  }
  const newId = createIdSource();
  const instance = newId();
  const turns = new Map<string, OfferedTurn>();
  const running = new Set<Promise<void>>();

  const take = (offer: TurnOffer, traceparent: string | undefined): void => {
    turns.get(offer.turnId)?.abort('the turn was offered again');
    const turn = new OfferedTurn(at, offer, newId, traceparent);
    turns.set(offer.turnId, turn);
    const work: Promise<void> = turn.run(handler).finally(() => {
      running.delete(work);
      if (turns.get(offer.turnId) === turn) turns.delete(offer.turnId);
    });
    running.add(work);
  };
  const subscription = at.connection.subscribe(at.subjects.turn(slug), {
    queue: slug,
    callback: (error, message) => {
      if (error) return;
      const decoded = decodeOffer(message.data);
      // Before the answer: the daemon may withdraw the offer as soon as it has that.
      if (decoded.ok) take(decoded.offer, message.headers?.get('traceparent') || undefined);
      const answer = decoded.ok ? { accepted: true, instance } : { accepted: false, reason: decoded.reason };
      message.respond(JSON.stringify(answer));
    },
  });
  const abortAll = () => {
    for (const turn of turns.values()) turn.abort('the client was closed');
  };
  const detach = onAbort([at.closing], abortAll);
  await flush(at.connection, 'cannot listen for turns');
  return {
    instance,
    async stop() {
      if (!at.connection.isClosed()) await subscription.drain();
      await Promise.all(running);
      detach();
    },
  };
}

/** Resolves when the server knows the subscriptions. */
export async function flush(connection: NatsConnection, failed: string): Promise<void> {
  try {
    await connection.flush();
  } catch (cause) {
    throw new ParleyError('NATS_DISCONNECTED', `${failed}: ${messageOf(cause)}`, {
      hint: 'check the connection to the NATS server',
      cause,
    });
  }
}

/** OFFERED-TURN-1: in a row; a single one may be the daemon's own lost connection. */
const MAX_MISSED_BEATS = 3;
const OUTCOME_ATTEMPTS = 5;
const OUTCOME_PAUSE_MS = 200;
const NO_RESPONDERS = '503';
const NO_DAEMON = 503;
/** Between two attempts to send a tool call while no daemon receives it. */
const RETRY_MS = 250;

/**
 * One turn of an agent, from its acceptance to its end.
 *
 * OFFERED-TURN-1 It sends a heartbeat at the daemon's interval. When no daemon receives several in a row, the turn is over: a
 *    restarted daemon offers it again.
 * OFFERED-TURN-2 The final message is repeated until the daemon acknowledges it.
 * OFFERED-TURN-3 A tool call is sent again after a lost connection, the agent's or the daemon's, with the same id: the daemon
 *    recognizes it and runs nothing twice.
 * OFFERED-TURN-4 All subscriptions, timers and listeners end with the turn.
 */
class OfferedTurn {
  readonly #at: Connected;
  readonly #offer: TurnOffer;
  readonly #newId: NewId;
  readonly #traceparent: string | undefined;
  readonly #over = new AbortController();
  readonly #releases: (() => void)[] = [];
  readonly #news: TurnOffer['messages'][number][] = [];
  #written = '';
  #chunks: { call: string; n: number };
  #missedBeats = 0;
  /** One tool call at a time. */
  readonly #inOrder = inOrder();

  constructor(at: Connected, offer: TurnOffer, newId: NewId, traceparent: string | undefined) {
    this.#at = at;
    this.#offer = offer;
    this.#newId = newId;
    this.#traceparent = traceparent;
    this.#chunks = { call: newId(), n: 0 };
    this.#listen();
  }

  abort(reason: string): void {
    this.#over.abort(
      new ParleyError('TURN_OVER', reason, { hint: 'stop working on it: the daemon does not wait for it' }),
    );
  }

  /** Never rejects. */
  async run(handler: AgentHandler): Promise<void> {
    await Promise.resolve(); // the acceptance is sent before anything else is
    try {
      const last = await this.#outcomeOf(handler);
      if (!this.#over.signal.aborted) await this.#sendOutcome(last);
    } finally {
      for (const release of this.#releases) release();
      this.abort('the turn has ended');
    }
  }

  async #outcomeOf(handler: AgentHandler): Promise<object> {
    try {
      const answer = await handler(this.#turn());
      if (answer === undefined) return { type: 'final', content: this.#written };
      return { type: 'final', ...(typeof answer === 'string' ? { content: answer } : onlyAnswer(answer)) };
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'AGENT_FAILED';
      const { soFar = {} } = Object(error) as { readonly soFar?: AgentProgress };
      return { type: 'failed', code, message: messageOf(error), ...soFar };
    }
  }

  #turn(): AgentTurn {
    const {
      live: _live,
      reply: _reply,
      control: _control,
      heartbeatMs: _heartbeatMs,
      ...shown
    } = this.#offer;
    return {
      ...shown,
      ...(this.#traceparent !== undefined && { traceparent: this.#traceparent }),
      signal: this.#over.signal,
      news: this.#news,
      write: (delta) => this.#write('text', delta),
      think: (delta) => this.#write('reasoning', delta),
      showCall: (toolCallId, toolName) =>
        this.#show({ type: 'tool_call_delta', toolCallId, toolName, delta: '' }),
      callTools: (calls, content, soFar) => this.#inOrder(() => this.#callTools(calls, content, soFar)),
    };
  }

  #write(type: 'text' | 'reasoning', delta: string): void {
    if (this.#over.signal.aborted || delta === '') return;
    if (type === 'text') this.#written += delta;
    this.#show({ type, delta });
  }

  #show(piece: object): void {
    if (this.#over.signal.aborted) return;
    const { turnId, live } = this.#offer;
    this.#publish(live, { turnId, call: this.#chunks.call, n: this.#chunks.n++, ...piece });
  }

  async #callTools(
    calls: readonly AgentToolCall[],
    content?: string,
    soFar: AgentProgress = {},
  ): Promise<ToolResults['results']> {
    this.#over.signal.throwIfAborted();
    const said = content ?? (this.#written || undefined);
    const body = { type: 'tool_call', calls, content: said, ...soFar, id: this.#newId() };
    const tooLarge = this.#whyTooLarge('the tool call', body);
    if (tooLarge !== null)
      throw new ParleyError('TOO_LARGE', tooLarge, { hint: 'give less text at once, or the name of a file' });
    const { results, messages = [] } = await this.#ask(body);
    this.#chunks = { call: this.#newId(), n: 0 };
    this.#written = '';
    this.#news.push(...(messages as TurnOffer['messages']));
    return results;
  }

  /** The results, however long the tools take; rejects when the turn is over. */
  #ask(body: object): Promise<ToolResults> {
    const { connection, subjects, reconnections } = this.#at;
    const { signal } = this.#over;
    const inbox = newInbox(connection);
    let retry: NodeJS.Timeout | undefined;
    const send = () => {
      clearTimeout(retry);
      retry = undefined;
      this.#publish(this.#offer.reply, body, inbox);
    };
    return new Promise((resolve, reject) => {
      const end = (act: () => void) => {
        clearTimeout(retry);
        reconnections.delete(send);
        signal.removeEventListener('abort', onAbort);
        if (!connection.isClosed()) subscription.unsubscribe();
        act();
      };
      const onAbort = () => end(() => reject(signal.reason));
      const subscription = connection.subscribe(inbox, {
        callback: (error, message) => {
          if (error) return;
          if (message.headers?.code === NO_DAEMON) {
            retry ??= setTimeout(send, RETRY_MS); // OFFERED-TURN-3; if it stays away, the heartbeats end the turn (OFFERED-TURN-1)
            return;
          }
          const results = decodeResults(message.data);
          end(() => (results ? resolve(results) : reject(notUnderstood(subjects.prefix))));
        },
      });
      reconnections.add(send);
      signal.addEventListener('abort', onAbort, { once: true });
      send();
    });
  }

  #listen(): void {
    const { connection } = this.#at;
    const control = connection.subscribe(this.#offer.control, {
      callback: (error, message) => {
        if (!error && isAbort(message.data, this.#offer)) this.abort('the daemon has taken the turn back');
      },
    });
    const timer = setInterval(() => void this.#beat(), this.#offer.heartbeatMs);
    this.#releases.push(
      () => clearInterval(timer),
      () => !connection.isClosed() && control.unsubscribe(),
    );
  }

  async #beat(): Promise<void> {
    const outcome = await this.#request({ type: 'heartbeat' }, this.#offer.heartbeatMs);
    if (outcome === 'received') this.#missedBeats = 0;
    else if (outcome === 'no-responder') this.#missedBeats += 1;
    if (this.#missedBeats >= MAX_MISSED_BEATS) this.abort('no daemon receives the heartbeats of the turn');
  }

  async #sendOutcome(body: object): Promise<void> {
    const message = this.#whyTooLarge('the answer', body);
    const sent = message === null ? body : { type: 'failed', code: 'TOO_LARGE', message };
    for (let attempt = 0; attempt < OUTCOME_ATTEMPTS && !this.#over.signal.aborted; attempt += 1) {
      if ((await this.#request(sent, OUTCOME_PAUSE_MS * 10)) === 'received') return;
      await sleep(OUTCOME_PAUSE_MS, this.#over.signal);
    }
  }

  /** Null: the server carries it. */
  #whyTooLarge(what: string, body: object): string | null {
    const limit = this.#at.connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
    const size = Buffer.byteLength(JSON.stringify(this.#addressed(body)));
    return size > limit ? `${what} has ${size} bytes and the server carries ${limit}` : null;
  }

  async #request(body: object, timeout: number): Promise<'received' | 'no-responder' | 'lost'> {
    try {
      const payload = JSON.stringify(this.#addressed(body));
      await this.#at.connection.request(this.#offer.reply, payload, { timeout });
      return 'received';
    } catch (error) {
      return error instanceof Error && 'code' in error && error.code === NO_RESPONDERS
        ? 'no-responder'
        : 'lost';
    }
  }

  /** Best effort: chunks may be lost, and a tool call is repeated (OFFERED-TURN-3). */
  #publish(subject: string, body: object, reply?: string): void {
    const addressed = reply === undefined ? body : this.#addressed(body);
    try {
      this.#at.connection.publish(subject, JSON.stringify(addressed), { reply });
    } catch {
      // The connection is closed, or the piece is larger than the server carries.
    }
  }

  #addressed(body: object): object {
    const { turnId, epoch } = this.#offer;
    return { turnId, epoch, ...body };
  }
}

/** The known fields of an answer: a handler may return others. */
function onlyAnswer(answer: AgentAnswer): object {
  const {
    content,
    files: parts,
    reasoning,
    sessionId,
    reported,
    prompt,
    usage,
    model,
    finishReason,
  } = answer;
  return { content, parts, reasoning, sessionId, reported, prompt, usage, model, finishReason };
}

function notUnderstood(prefix: string): ParleyError {
  return new ParleyError('INVALID_ANSWER', 'the answer to a tool call is not understood', {
    hint: `does another service answer under the subject prefix ${prefix}?`,
  });
}
