import {
  type Model,
  type ModelAnswer,
  type ModelOutcome,
  type ModelRequest,
  SESSION_HEADER,
  type WireMessage,
} from '../../agents/model-port.ts';
import { type AnswerSoFar, contentOf, filesOf, keptReports, type Usage } from '../../conversation/index.ts';
import { abortable, type Clock, sleep, systemClock } from '../../kernel/index.ts';
import {
  type OpenRemoteChannel,
  type RemoteCall,
  type RemoteOutcome,
  type RemoteResults,
  RemoteSession,
  type SessionEvent,
} from './session.ts';

/**
 * A model that is an agent in another process: a call offers the turn, and the agent's answer is the answer.
 *
 * REMOTE-MODEL-1 One offer of a turn is valid at a time. Epochs increase, also across restarts. An abandoned offer is closed
 *    before the next, so that later messages for it are ignored.
 * REMOTE-MODEL-2 The first `final` counts and closes the offer.
 * REMOTE-MODEL-3 An agent that asked for tools keeps its turn: the next call of that turn answers it. If no agent waits (after
 *    a restart or a crash), the turn is offered again with all results.
 * REMOTE-MODEL-4 After silence the turn is offered again, `MAX_OFFERS` times at most. Then the call fails as content, with the
 *    partial answer (L16).
 * REMOTE-MODEL-5 A session ends with its turn, and its agent is notified.
 * REMOTE-MODEL-6 A turn of an agent with `absentMs` is offered again until its program connects, at most for that time. It
 *    begins when the log requested the call, so that a restart of the daemon does not extend it, except that a program that
 *    restarts too has `RECONNECT_MS`.
 * REMOTE-MODEL-7 Reported usage is at most one token for each byte that was sent and received, has no cost of its own, and counts
 *    against the limits of that agent alone. That of a program which the daemon runs is taken as it is, with its cost.
 */
export interface RemoteModelOptions {
  readonly openChannel: OpenRemoteChannel;
  /** Timeout without any event from an agent that accepted a turn. Milliseconds. */
  readonly silenceMs: number;
  /** Interval of the heartbeats that the agent sends. Milliseconds. */
  readonly heartbeatMs: number;
  /** REMOTE-MODEL-6. Null: the turn fails at once. Absent: no agent is waited for. */
  readonly absentMs?: (agent: string) => number | null;
  /** The lowest epoch (REMOTE-MODEL-1). */
  readonly now?: Clock;
}

export interface RemoteModel extends Model {
  turnOver(turnId: string): void;
  isAbsent(turnId: string): boolean;
  /** Ends every session and notifies its agent. */
  close(): void;
}

/** Time for an agent to accept an offer; at most `silenceMs`. */
const ACCEPT_MS = 5_000;
/** Between two offers to an agent that is not connected. */
const ABSENT_RETRY_MS = 1_000;
/** REMOTE-MODEL-6 */
const RECONNECT_MS = 10_000;

type Offered =
  | { readonly kind: 'session'; readonly session: RemoteSession }
  | Exclude<RemoteOutcome, { kind: 'accepted' }>;

export function createRemoteModel(options: RemoteModelOptions): RemoteModel {
  return new OfferedTurns(options);
}

class OfferedTurns implements RemoteModel {
  readonly #options: RemoteModelOptions;
  readonly #sessions = new Map<string, RemoteSession>();
  readonly #absent = new Set<string>();
  readonly #now: Clock;
  #lastEpoch = 0;

  constructor(options: RemoteModelOptions) {
    this.#options = options;
    this.#now = options.now ?? systemClock;
  }

  async call(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): Promise<ModelOutcome> {
    const continued = this.#continued(request);
    const lowest = this.#now();
    let partial = '';
    let tries = 0;
    let last: Missed = { kind: 'silent' };
    for (let offers = 0; offers < MAX_OFFERS; offers += 1) {
      const askedAt = offers === 0 ? request.askedAt : undefined;
      const offered: Offered =
        offers === 0 && continued
          ? { kind: 'session', session: continued }
          : await this.#offerWhenConnected(request, lowest, signal, askedAt);
      tries += 1;
      if (signal.aborted) return this.#aborted(request, partial);
      last = offered;
      if (offered.kind === 'session') {
        const outcome = await this.#follow(request, offered.session, signal);
        if (outcome !== 'silent') return outcome;
        partial = offered.session.partial || partial;
        last = { kind: 'silent' };
        this.turnOver(request.turnId);
      } else if (offered.kind !== 'unanswered' && offered.kind !== 'refused') break;
    }
    const [code, message, isRetryable] = missed(request.agent, last, this.#options.silenceMs);
    const wasAwaited = last.kind === 'no-responder' && this.#waitMs(request) > 0;
    const retryable = isRetryable && partial === '' && !wasAwaited;
    return { kind: 'failed', code, message, partial: { content: partial, reasoning: '' }, retryable, tries };
  }

  isAbsent(turnId: string): boolean {
    return this.#absent.has(turnId);
  }

  turnOver(turnId: string): void {
    this.#end(turnId, 'abort');
  }

  close(): void {
    for (const turnId of [...this.#sessions.keys()]) this.turnOver(turnId);
  }

  /** The session whose agent waits for the results in this request. Sends it the results. */
  #continued(request: ModelRequest): RemoteSession | null {
    const session = this.#sessions.get(request.turnId);
    if (!session) return null;
    const results = resultsFor(request, session.pendingCalls ?? []);
    if (results && session.answer(results)) return session;
    this.turnOver(request.turnId);
    return null;
  }

  #waitMs({ agent }: ModelRequest): number {
    return this.#options.absentMs?.(agent) ?? 0;
  }

  /** REMOTE-MODEL-6 */
  async #offerWhenConnected(
    request: ModelRequest,
    lowest: number,
    signal: AbortSignal,
    absentSince = lowest,
  ): Promise<Offered> {
    const waitMs = this.#waitMs(request);
    const waitedMs = Math.max(0, lowest - absentSince);
    const deadline = performance.now() + Math.max(waitMs - waitedMs, Math.min(waitMs, RECONNECT_MS));
    try {
      for (;;) {
        const offered = await this.#offer(request, lowest, signal);
        const leftMs = deadline - performance.now();
        if (offered.kind !== 'no-responder' || leftMs <= 0) return offered;
        this.#absent.add(request.turnId);
        await sleep(Math.min(ABSENT_RETRY_MS, leftMs), signal);
        if (signal.aborted) return offered;
      }
    } finally {
      this.#absent.delete(request.turnId);
    }
  }

  async #offer(request: ModelRequest, lowest: number, signal: AbortSignal): Promise<Offered> {
    const epoch = Math.max(this.#lastEpoch + 1, lowest);
    this.#lastEpoch = epoch;
    const { conversation, turnId, messages, tools, headers, missed } = request;
    const { heartbeatMs, silenceMs } = this.#options;
    const { [SESSION_HEADER]: sessionId, traceparent } = headers;
    const channel = this.#options.openChannel(request.agent);
    const session = new RemoteSession(channel, epoch);
    const body = { conversation, turnId, epoch, messages, tools, heartbeatMs };
    const offering = channel.offer(
      typeof sessionId === 'string' ? { ...body, sessionId, ...(missed && { missed }) } : body,
      Math.min(ACCEPT_MS, silenceMs),
      (event) => session.receive(event),
      ...(typeof traceparent === 'string' ? [traceparent] : []),
    );
    const outcome = await abortable(offering, signal).catch((): RemoteOutcome => ({ kind: 'unanswered' }));
    if (outcome.kind === 'accepted') {
      this.#sessions.set(turnId, session);
      return { kind: 'session', session };
    }
    channel.close('abort'); // REMOTE-MODEL-1: the agent may have accepted it
    return outcome;
  }

  async #follow(
    request: ModelRequest,
    session: RemoteSession,
    signal: AbortSignal,
  ): Promise<ModelOutcome | 'silent'> {
    const event = await session.next(signal, this.#options.silenceMs);
    switch (event.type) {
      case 'silent':
        return 'silent';
      case 'aborted':
        return this.#aborted(request, session.partial, session.soFar);
      case 'tool_call':
        session.expectResults(event);
        return toolCalls(event, request);
      case 'final':
        this.#end(request.turnId, 'done');
        return final(event, session.isOurs ? null : request);
      case 'failed':
      case 'invalid': {
        this.turnOver(request.turnId);
        return failed(event, request.agent, session.partial);
      }
    }
  }

  #aborted(request: ModelRequest, partial: string, soFar: AnswerSoFar = {}): ModelOutcome {
    this.turnOver(request.turnId);
    return { kind: 'aborted', partial: { content: partial, reasoning: '' }, ...soFar };
  }

  #end(turnId: string, how: 'done' | 'abort'): void {
    this.#sessions.get(turnId)?.close(how);
    this.#sessions.delete(turnId);
  }
}

/**
 * The results for a waiting agent: the messages after the last answer with calls in the next request of its turn.
 * Null if the request does not continue from these calls.
 */
function resultsFor(request: ModelRequest, calls: readonly RemoteCall[]): RemoteResults | null {
  const at = request.messages.findLastIndex((message) => message.role === 'assistant');
  const made = request.messages[at]?.tool_calls;
  if (made?.length !== calls.length) return null;
  if (made.some((call, position) => call.function.name !== calls[position]?.name)) return null;
  const following = request.messages.slice(at + 1);
  const contents = new Map(
    following.filter(isResult).map((message) => [message.tool_call_id, message.content]),
  );
  const results: RemoteResults['results'][number][] = [];
  for (const [position, { id }] of calls.entries()) {
    const content = contents.get(made[position]?.id);
    if (content === undefined) return null;
    results.push({ ...(id === undefined ? {} : { id }), content: content ?? '' });
  }
  const messages = following.filter((message) => !isResult(message));
  return messages.length > 0 ? { results, messages } : { results };
}

function isResult(message: WireMessage): boolean {
  return message.role === 'tool';
}

type Failed = Extract<ModelOutcome, { kind: 'failed' }>;
/** How the last offer ended without an answer. */
type Missed = Offered | { readonly kind: 'silent' };

/** How often a turn is offered to an agent that is silent. */
const MAX_OFFERS = 3;

function toolCalls(
  { message }: Extract<SessionEvent, { type: 'tool_call' }>,
  request: Pick<ModelRequest, 'body'>,
): ModelOutcome {
  const { content, calls, sessionId } = message;
  const usage = bounded(message.usage, request, [
    content,
    ...calls.flatMap((call) => [call.name, call.arguments]),
  ]);
  const toolCalls = calls.map((call, position) => {
    return { id: call.id ?? `call_${position}`, name: call.name, arguments: call.arguments };
  });
  const answer = { content: content || null, toolCalls, usage, finishReason: 'tool_calls', sessionId };
  return { kind: 'answered', answer: { ...answer, ...reportsOf(message) } };
}

function final(
  { message }: Extract<SessionEvent, { type: 'final' }>,
  bound: Pick<ModelRequest, 'body'> | null,
): ModelOutcome {
  const { parts = [], reasoning, sessionId, model, finishReason = 'stop' } = message;
  const content = message.content || contentOf(parts);
  const files = filesOf({ parts });
  const own = message.usage && { ...message.usage, byAgent: true as const };
  const usage = bound ? bounded(message.usage, bound, [content, reasoning]) : own;
  return {
    kind: 'answered',
    answer: {
      content,
      files,
      reasoning,
      sessionId,
      model,
      usage,
      finishReason,
      ...reportsOf(message),
      toolCalls: [],
    },
  };
}

function reportsOf({ reported, prompt }: Pick<ModelAnswer, 'reported' | 'prompt'>) {
  return { ...(reported && { reported: keptReports(reported) }), ...(prompt && { prompt }) };
}

/** REMOTE-MODEL-7: no token is shorter than a byte. */
function bounded(
  usage: Usage | undefined,
  { body }: Pick<ModelRequest, 'body'>,
  received: readonly (string | null | undefined)[],
): Usage | undefined {
  if (!usage) return undefined;
  const sent = body.reduce((sum, bytes) => sum + bytes.length, 0);
  const inputTokens = Math.min(usage.inputTokens, sent);
  const outputTokens = Math.min(usage.outputTokens, Buffer.byteLength(received.join('')));
  const { cachedInputTokens: cached, cacheWriteTokens: written, reasoningTokens: reasoning } = usage;
  return {
    inputTokens,
    ...(cached !== undefined && { cachedInputTokens: Math.min(cached, inputTokens) }),
    ...(written !== undefined && {
      cacheWriteTokens: Math.min(written, inputTokens - Math.min(cached ?? 0, inputTokens)),
    }),
    outputTokens,
    ...(reasoning !== undefined && { reasoningTokens: Math.min(reasoning, outputTokens) }),
    byAgent: true,
  };
}

function failed(
  event: Extract<SessionEvent, { type: 'failed' | 'invalid' }>,
  agent: string,
  partial: string,
): Failed {
  const [code, message] =
    event.type === 'failed'
      ? [event.code, event.message || `The agent ${agent} reported a failure.`]
      : [
          'INVALID_RESPONSE',
          `The agent ${agent} sent an invalid message: ${event.reason}. Fix the program of this agent.`,
        ];
  const ended = { partial: { content: partial, reasoning: '' }, retryable: false };
  if (event.type === 'invalid') return { kind: 'failed', code, message, ...ended };
  const { sessionId } = event;
  return { kind: 'failed', code, message, ...ended, ...(sessionId && { sessionId }), ...reportsOf(event) };
}

function missed(agent: string, last: Missed, silenceMs: number): [string, string, isRetryable: boolean] {
  switch (last.kind) {
    case 'no-responder': {
      const message = `The agent ${agent} is not connected. Start the program that connects as this agent (docs/guides/remote-agents.md).`;
      return ['AGENT_NOT_CONNECTED', message, true];
    }
    case 'disconnected':
      return ['NETWORK_ERROR', 'There is no connection to the NATS server now.', true];
    case 'too-large': {
      const message = `The request to ${agent} has ${last.bytes} bytes and the server carries ${last.limit}.`;
      const advice = 'Raise max_payload of the server, or lower contextTokens of its model.';
      return ['AGENT_OFFER_TOO_LARGE', `${message} ${advice}`, false];
    }
    case 'refused': {
      const why = last.reason && `: ${last.reason}`;
      return ['AGENT_REFUSED', `The agent ${agent} did not take the turn${why}.`, true];
    }
    default: {
      const what = `The agent ${agent} was silent for ${silenceMs} ms, each of ${MAX_OFFERS} times that it was offered the turn.`;
      return ['AGENT_SILENT', `${what} Is its process stuck?`, false];
    }
  }
}
