import {
  type Model,
  type ModelOutcome,
  type ModelRequest,
  SESSION_HEADER,
  type WireMessage,
} from '../../agents/model-port.ts';
import { type Clock, systemClock } from '../../kernel/index.ts';
import type { OpenLine, RemoteCall, RemoteLine, RemoteOutcome, RemoteResults } from './port.ts';
import { type Heard, RemoteSession } from './session.ts';

/**
 * A model that is an agent in another process: a call is an offer of the turn, and its answer is the agent's.
 *
 * REMOTE-MODEL-1 One offer of a turn counts at a time; each has a higher epoch than all before it, also across restarts, and an
 *    offer that is given up is closed first: what its agent still says reaches nobody.
 * REMOTE-MODEL-2 The first final counts; with it the offer is closed.
 * REMOTE-MODEL-3 An agent that asked for tools keeps its turn: the next call of that turn answers it. Where nobody waits any more
 *    (after a restart, or a death), the turn is offered anew, with all that was done.
 * REMOTE-MODEL-4 Silence offers again, so many times at most; then it is a failure, as content, with what was said so far (L16).
 * REMOTE-MODEL-5 Nothing outlives the turn: a session ends with its turn, and its agent is told.
 */
export interface RemoteModelOptions {
  readonly openLine: OpenLine;
  /** How long an agent that took a turn may say nothing at all. Milliseconds. */
  readonly silenceMs: number;
  /** How often it is asked to say that it lives. Milliseconds. */
  readonly heartbeatMs: number;
  /** Where epochs begin (REMOTE-MODEL-1). */
  readonly now?: Clock;
}

export interface RemoteModel extends Model {
  turnOver(turnId: string): void;
  /** Ends every session; their agents are told. */
  close(): void;
}

const MOST_OFFERS = 3;
/** "Answers at once": no longer than this, nor than it may be silent. */
const ACCEPT_MS = 5_000;

type Failed = Extract<ModelOutcome, { kind: 'failed' }>;
type Offered =
  | { readonly kind: 'session'; readonly session: RemoteSession }
  | Exclude<RemoteOutcome, { kind: 'accepted' }>;

export function createRemoteModel(options: RemoteModelOptions): RemoteModel {
  return new OfferedTurns(options);
}

class OfferedTurns implements RemoteModel {
  private readonly options: RemoteModelOptions;
  private readonly sessions = new Map<string, RemoteSession>();
  private readonly now: Clock;
  private lastEpoch = 0;

  constructor(options: RemoteModelOptions) {
    this.options = options;
    this.now = options.now ?? systemClock;
  }

  async call(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): Promise<ModelOutcome> {
    const kept = this.continued(request); // REMOTE-MODEL-3
    let partial = '';
    let tries = 0;
    let epoch = Math.max(this.lastEpoch + 1, this.now()); // REMOTE-MODEL-1
    let last: Offered | 'silent' = 'silent';
    for (let offers = 0; offers < MOST_OFFERS; offers += 1) {
      const offered: Offered =
        offers === 0 && kept
          ? { kind: 'session', session: kept }
          : await this.offer(request, epoch++, signal);
      tries += 1;
      if (signal.aborted) return this.aborted(request, partial);
      last = offered;
      if (offered.kind === 'session') {
        const outcome = await this.follow(request, offered.session, signal);
        if (outcome !== 'silent') return outcome;
        partial = offered.session.partial || partial;
        last = 'silent';
        this.drop(request.turnId); // REMOTE-MODEL-1
      } else if (offered.kind !== 'unanswered' && offered.kind !== 'refused') break;
    }
    return { ...failure(request.agent, last, partial, this.options.silenceMs), tries };
  }

  turnOver(turnId: string): void {
    this.drop(turnId); // REMOTE-MODEL-5
  }

  close(): void {
    for (const turnId of [...this.sessions.keys()]) this.drop(turnId);
  }

  /** The session whose agent waits for the results in this request, now answered. */
  private continued(request: ModelRequest): RemoteSession | null {
    const session = this.sessions.get(request.turnId);
    if (!session) return null;
    const results = resultsFor(request, session.pendingCalls ?? []);
    if (results && session.answer(results)) return session;
    this.drop(request.turnId);
    return null;
  }

  private async offer(request: ModelRequest, epoch: number, signal: AbortSignal): Promise<Offered> {
    this.lastEpoch = Math.max(this.lastEpoch, epoch);
    const { conversation, turnId, messages, tools, headers } = request;
    const { heartbeatMs, silenceMs } = this.options;
    const sessionId = headers[SESSION_HEADER];
    const line = this.options.openLine(request.agent);
    const session = new RemoteSession(line, epoch);
    const body = { conversation, turnId, epoch, messages, tools, heartbeatMs };
    const offering = line.offer(
      sessionId === undefined ? body : { ...body, sessionId },
      Math.min(ACCEPT_MS, silenceMs),
      (event) => session.hear(event),
    );
    const outcome = await untilAborted(offering, signal, line);
    if (outcome.kind === 'accepted') {
      this.sessions.set(turnId, session);
      return { kind: 'session', session };
    }
    line.close('abort'); // REMOTE-MODEL-1: it may have been taken all the same
    return outcome;
  }

  private async follow(
    request: ModelRequest,
    session: RemoteSession,
    signal: AbortSignal,
  ): Promise<ModelOutcome | 'silent'> {
    const heard = await session.next(signal, this.options.silenceMs);
    switch (heard.type) {
      case 'silent':
        return 'silent';
      case 'aborted':
        return this.aborted(request, session.partial);
      case 'tool_call':
        session.expectResults(heard);
        return toolCalls(heard);
      case 'final':
        this.end(request.turnId); // REMOTE-MODEL-2
        return final(heard);
      case 'failed':
      case 'invalid': {
        this.drop(request.turnId);
        return failed(heard, request.agent, session.partial);
      }
    }
  }

  private aborted(request: ModelRequest, partial: string): ModelOutcome {
    this.drop(request.turnId);
    return { kind: 'aborted', partial: { content: partial, reasoning: '' } };
  }

  private drop(turnId: string): void {
    this.end(turnId, 'abort');
  }

  private end(turnId: string, how: 'done' | 'abort' = 'done'): void {
    this.sessions.get(turnId)?.close(how);
    this.sessions.delete(turnId);
  }
}

/** The offer's outcome; an abort does not wait for it, and takes the offer back. */
async function untilAborted(
  offering: Promise<RemoteOutcome>,
  signal: AbortSignal,
  line: RemoteLine,
): Promise<RemoteOutcome> {
  let takeBack = () => {};
  const aborted = new Promise<RemoteOutcome>((resolve) => {
    takeBack = () => {
      line.close('abort');
      resolve({ kind: 'unanswered' });
    };
    if (signal.aborted) takeBack();
    else signal.addEventListener('abort', takeBack, { once: true });
  });
  try {
    return await Promise.race([offering, aborted]);
  } finally {
    signal.removeEventListener('abort', takeBack);
  }
}

function toolCalls({ message }: Extract<Heard, { type: 'tool_call' }>): ModelOutcome {
  const calls = message.calls.map(({ id, name, arguments: given }, position) => ({
    id: id ?? `call_${position}`,
    name,
    arguments: given,
  }));
  return {
    kind: 'answered',
    answer: {
      content: message.content || null,
      toolCalls: calls,
      usage: message.usage,
      finishReason: 'tool_calls',
    },
  };
}

function final({ message }: Extract<Heard, { type: 'final' }>): ModelOutcome {
  const { content, reasoning, sessionId, model, usage, finishReason = 'stop' } = message;
  return {
    kind: 'answered',
    answer: {
      content: content ?? '',
      reasoning,
      sessionId,
      model,
      usage,
      toolCalls: [],
      finishReason,
    },
  };
}

function failed(
  heard: Extract<Heard, { type: 'failed' | 'invalid' }>,
  agent: string,
  partial: string,
): Failed {
  const base = { kind: 'failed', partial: { content: partial, reasoning: '' }, retryable: false } as const;
  if (heard.type === 'failed') {
    return { ...base, code: heard.code, message: heard.message || `The agent ${agent} reported a failure.` };
  }
  const advice = 'Mend the program that is this agent.';
  return {
    ...base,
    code: 'INVALID_RESPONSE',
    message: `The agent ${agent} sent what is not understood: ${heard.reason}. ${advice}`,
  };
}

function failure(agent: string, last: Offered | 'silent', partial: string, silenceMs: number): Failed {
  const fail = (code: string, message: string, retryable: boolean): Failed => ({
    kind: 'failed',
    code,
    message,
    partial: { content: partial, reasoning: '' },
    retryable: retryable && partial === '',
  });
  const kind = last === 'silent' ? last : last.kind;
  switch (kind) {
    case 'nobody':
      return fail('AGENT_NOT_CONNECTED', `No process is there that is ${agent}: start it.`, true);
    case 'disconnected':
      return fail('NETWORK_ERROR', 'There is no connection to the NATS server now.', true);
    case 'too-large': {
      const { bytes, limit } = last as Extract<Offered, { kind: 'too-large' }>;
      const advice = 'Raise max_payload of the server, or lower contextTokens of its model.';
      return fail(
        'AGENT_OFFER_TOO_LARGE',
        `The request to ${agent} has ${bytes} bytes and the server carries ${limit}. ${advice}`,
        false,
      );
    }
    case 'refused': {
      const { reason } = last as Extract<Offered, { kind: 'refused' }>;
      return fail(
        'AGENT_REFUSED',
        `The agent ${agent} did not take the turn${reason && `: ${reason}`}.`,
        true,
      );
    }
    default: {
      const what = `The agent ${agent} was silent for ${silenceMs} ms, each of ${MOST_OFFERS} times that it was offered the turn.`;
      return fail('AGENT_SILENT', `${what} Is its process stuck?`, false);
    }
  }
}

/**
 * The results that a waiting agent is owed, found in the next request of its turn: what stands behind the last answer
 * that made calls. Null if the request does not continue from these calls.
 */
export function resultsFor(request: ModelRequest, calls: readonly RemoteCall[]): RemoteResults | null {
  const at = request.messages.findLastIndex((message) => message.role === 'assistant');
  const made = request.messages[at]?.tool_calls;
  if (made?.length !== calls.length) return null;
  if (made.some((call, position) => call.function.name !== calls[position]?.name)) return null;
  const behind = request.messages.slice(at + 1);
  const contents = new Map(behind.filter(isResult).map((message) => [message.tool_call_id, message.content]));
  const results: RemoteResults['results'][number][] = [];
  for (const [position, { id }] of calls.entries()) {
    const content = contents.get(made[position]?.id);
    if (content === undefined) return null;
    results.push({ ...(id === undefined ? {} : { id }), content: content ?? '' });
  }
  const messages = behind.filter((message) => !isResult(message));
  return messages.length > 0 ? { results, messages } : { results };
}

function isResult(message: WireMessage): boolean {
  return message.role === 'tool';
}
