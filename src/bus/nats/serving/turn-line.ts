import { ErrorCode, headers, type Msg, type NatsConnection, NatsError, nuid, type Subscription } from 'nats';
import type { LiveChunk } from '../../../conversation/index.ts';
import { jsonBytes } from '../../../kernel/index.ts';
import type { OfferEvent, OfferOutcome, OnLive, TurnLine } from '../../port.ts';
import { decodeAcceptance, decodeAgentMessage, decodeChunk, type OfferBody } from '../../remote-turns.ts';
import { mayAnswerTo, REPLY_HINT, type Subjects } from '../../subjects.ts';
import type { ConnectionWatch } from '../connection/connection.ts';

/**
 * Offers one turn to an agent in another process.
 *
 * TURN-LINE-1 Every offer has its own `reply`, `live` and `control` subjects below the agent's subject: messages of an abandoned
 *    instance reach no subscriber, and NATS permissions can restrict an agent to its subjects.
 * TURN-LINE-2 Every request of the agent is answered with `{"received":true}`, except a tool call, which is answered with its
 *    results. So an agent can confirm delivery, and learns at once when no daemon listens.
 * TURN-LINE-3 The daemon forwards the chunks of this turn to followers while the offer is open. An agent may not publish on
 *    `parley.live`.
 * TURN-LINE-4 The chunks of one call that hold more than `MAX_STREAMED` fail the turn: followers and the daemon keep the text of a
 *    running call in memory.
 */

export interface TurnLineOptions {
  readonly connection: NatsConnection;
  readonly subjects: Subjects;
  readonly watch: ConnectionWatch;
  readonly maxPayload: () => number;
  readonly agent: string;
  readonly onLive?: OnLive | undefined;
  readonly closing: AbortSignal;
}

/** TURN-LINE-4. Bytes. */
const MAX_STREAMED = 16 * 1024 * 1024;
const TOO_LONG = `more than ${MAX_STREAMED} bytes of live text arrived for one answer`;

const RECEIVED = jsonBytes({ received: true });

type Listener = (event: OfferEvent) => void;

/** Not an offer, so it starts no turn: an agent refuses it, and an older agent may not answer. */
const PING = jsonBytes({ type: 'ping' });
const PING_MS = 250;

/** False only if the server reports no subscriber: a busy agent may not answer in time. */
export async function isAgentConnected(connection: NatsConnection, subject: string): Promise<boolean> {
  try {
    await connection.request(subject, PING, { timeout: PING_MS });
    return true;
  } catch (error) {
    return outcomeOf(error).kind !== 'no-responder';
  }
}

export class NatsTurnLine implements TurnLine {
  readonly #options: TurnLineOptions;
  readonly #reply: string;
  readonly #live: string;
  readonly #control: string;
  readonly #subscriptions: Subscription[] = [];
  #offered: OfferBody | null = null;
  #streamed = { call: '', bytes: 0 };
  #closed = false;

  constructor(options: TurnLineOptions) {
    this.#options = options;
    const id = nuid.next();
    this.#reply = options.subjects.turnReply(options.agent, id);
    this.#live = options.subjects.turnReply(options.agent, nuid.next());
    this.#control = options.subjects.turnControl(options.agent, id);
  }

  async offer(
    ...[body, timeoutMs, onEvent, traceparent]: Parameters<TurnLine['offer']>
  ): Promise<OfferOutcome> {
    const { connection, subjects, agent, watch, closing } = this.#options;
    const followers = subjects.live(body.conversation, agent);
    const payload = jsonBytes({ ...body, live: this.#live, reply: this.#reply, control: this.#control });
    const limit = this.#options.maxPayload();
    if (payload.length > limit) return { kind: 'too-large', bytes: payload.length, limit };
    if (!(await watch.connected(timeoutMs, closing))) return { kind: 'disconnected' };
    if (this.#closed) return { kind: 'unanswered' };
    this.#offered = body;
    try {
      this.#listen(followers, body, onEvent);
      const trace = traceparent === undefined ? {} : { headers: headers() };
      if (traceparent !== undefined) trace.headers?.set('traceparent', traceparent);
      const answer = await connection.request(subjects.turn(agent), payload, {
        timeout: timeoutMs,
        ...trace,
      });
      const decoded = decodeAcceptance(answer.data);
      if (!decoded) return { kind: 'refused', reason: 'its answer is not valid' };
      if (decoded.accepted) return { kind: 'accepted', instance: decoded.instance };
      return { kind: 'refused', reason: decoded.reason };
    } catch (error) {
      return outcomeOf(error);
    }
  }

  answer(from: string | null, results: object): boolean {
    const payload = jsonBytes(from === null ? { type: 'tool_results', ...results } : results);
    if (payload.length > this.#options.maxPayload()) return false;
    this.#publish(from ?? this.#control, payload);
    return true;
  }

  close(how: 'done' | 'abort'): void {
    if (this.#closed) return;
    this.#closed = true;
    if (how === 'abort' && this.#offered) {
      const { turnId, epoch } = this.#offered;
      this.#publish(this.#control, jsonBytes({ type: 'abort', turnId, epoch }));
    }
    if (this.#options.connection.isClosed()) return;
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }

  #listen(followers: string, body: OfferBody, onEvent: Listener): void {
    const { connection } = this.#options;
    const emit = (event: OfferEvent | null) => {
      if (event && !this.#closed) onEvent(event);
    };
    this.#subscriptions.push(
      connection.subscribe(this.#reply, {
        callback: (error, message) => emit(error ? null : this.#eventOf(message, body)),
      }),
      connection.subscribe(this.#live, {
        callback: (error, message) => {
          const chunk = error || this.#closed ? null : decodeChunk(message.data, body.turnId);
          if (chunk && chunk !== 'unknown') {
            if (this.#isTooLong(chunk.call, message.data.length))
              return emit({ type: 'invalid', reason: TOO_LONG });
            this.#publish(followers, jsonBytes(chunk));
            this.#options.onLive?.(body.conversation, chunk);
          }
          emit(chunk && eventOf(chunk));
        },
      }),
    );
  }

  #isTooLong(call: string, bytes: number): boolean {
    const before = this.#streamed.call === call ? this.#streamed.bytes : 0;
    this.#streamed = { call, bytes: before + bytes };
    return this.#streamed.bytes > MAX_STREAMED;
  }

  #eventOf(message: Msg, body: OfferBody): OfferEvent | null {
    const decoded = decodeAgentMessage(message.data, body);
    const from = message.reply ? message.reply : null;
    if (from && !mayAnswerTo(from))
      return { type: 'invalid', reason: `its reply subject is ${from}; ${REPLY_HINT}` };
    const isToolCall = decoded.kind === 'message' && decoded.message.type === 'tool_call';
    if (from && !isToolCall) this.#publish(from, RECEIVED);
    switch (decoded.kind) {
      case 'stale':
        return null;
      case 'unknown':
        return { type: 'alive' };
      case 'invalid':
        return { type: 'invalid', reason: decoded.reason };
      case 'message':
        if (decoded.message.type === 'heartbeat') return { type: 'alive' };
        return { type: 'message', message: decoded.message, from };
    }
  }

  /** Best effort: an agent that misses a message repeats its request or runs into its timeout. */
  #publish(subject: string, payload: Uint8Array): void {
    try {
      this.#options.connection.publish(subject, payload);
    } catch {
      // The connection is closed or draining, or the agent named an invalid subject.
    }
  }
}

/** Text is recorded as it arrives, so that it is kept if the agent stops answering. */
function eventOf(chunk: LiveChunk | 'unknown'): OfferEvent {
  if (chunk === 'unknown' || chunk.type !== 'text') return { type: 'alive' };
  return { type: 'text', call: chunk.call, delta: chunk.delta };
}

function outcomeOf(error: unknown): OfferOutcome {
  const code = error instanceof NatsError ? error.code : '';
  if (code === ErrorCode.NoResponders) return { kind: 'no-responder' };
  if (code === ErrorCode.Timeout) return { kind: 'unanswered' };
  return { kind: 'disconnected' };
}
