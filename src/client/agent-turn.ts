import type { Subjects, ToolResult, TurnOffer } from '../bus/index.ts';
import type { NatsConnection } from '../bus/nats/index.ts';
import type { Usage } from '../conversation/index.ts';

/** The types of an agent's program: its turn and its answer. */

/** A turn that the daemon offered, as the agent's own code sees it. */
export interface AgentTurn extends Omit<TurnOffer, 'live' | 'reply' | 'control' | 'heartbeatMs'> {
  /** Aborts when the turn is over for this agent: a person stopped it, or the daemon does not answer any more. */
  readonly signal: AbortSignal;
  /** Sends a piece of the answer to followers. If the handler returns nothing, the pieces are the answer. */
  write(delta: string): void;
  /** As `write`, for reasoning. */
  think(delta: string): void;
  /**
   * Has the daemon run tools, with approvals and records; resolves with their results, in order. Rejects with `TURN_OVER`
   * when a tool (`handoff`) ends the turn.
   */
  callTools(calls: readonly AgentToolCall[], content?: string): Promise<readonly ToolResult[]>;
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

export interface AgentAnswer {
  readonly content: string;
  readonly reasoning?: string;
  /** Given with every later turn of this agent in this conversation. */
  readonly sessionId?: string;
  readonly usage?: Usage;
  /** The model that answered, for the record. */
  readonly model?: string;
  /** Why that model ended the answer: `stop` (the default), `length`, `content_filter` … */
  readonly finishReason?: string;
}

/** Answers a turn. An error that it throws is the turn's failure, with its `code` if it has one. */
export type AgentHandler = (
  turn: AgentTurn,
) => Promise<string | AgentAnswer | undefined> | string | AgentAnswer | undefined;

export interface RunningAgent {
  /** This instance, as the daemon knows it. */
  readonly instance: string;
  /** Takes no more turns; resolves when the running ones have ended. May be called twice. */
  stop(): Promise<void>;
}

/** What an agent needs of a client. */
export interface AgentConnection {
  readonly connection: NatsConnection;
  readonly subjects: Subjects;
  /** Called when the connection was lost and is back. */
  readonly reconnections: Set<() => void>;
  /** Aborts what runs when the client closes. */
  readonly closing: AbortSignal;
}
