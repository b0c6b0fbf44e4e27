import type { Subjects, ToolResult, TurnOffer } from '../bus/index.ts';
import type { NatsConnection } from '../bus/nats/index.ts';
import type { Usage } from '../conversation/index.ts';

/** What a program that is an agent has to do with: the turn it is given, and the answer it gives. */

/** A turn that the daemon offered, as the agent's own code sees it. */
export interface AgentTurn extends Omit<TurnOffer, 'live' | 'reply' | 'control' | 'heartbeatMs'> {
  /** Aborts when the turn is over for this agent: a person stopped it, or the daemon is gone. */
  readonly signal: AbortSignal;
  /** Shows a piece of the answer to those who follow. If nothing is returned, the pieces are the answer. */
  write(delta: string): void;
  /** As `write`, for reasoning. */
  think(delta: string): void;
  /**
   * Has the daemon run tools, with all that belongs to it (approvals, records), and brings their results, in order.
   * A tool that ends the turn (`handoff`) brings none: it rejects with `TURN_OVER`.
   */
  callTools(calls: readonly AgentToolCall[], content?: string): Promise<readonly ToolResult[]>;
  /** What others said while tools ran and was shown to this agent with their results, newest last. */
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

/** Answers a turn. What it throws is the turn's failure, with its `code` if it has one. */
export type AgentHandler = (
  turn: AgentTurn,
) => Promise<string | AgentAnswer | undefined> | string | AgentAnswer | undefined;

export interface RunningAgent {
  /** This instance, as the daemon knows it. */
  readonly instance: string;
  /** Takes no more turns; resolves when those that run are done. Again is fine. */
  stop(): Promise<void>;
}

/** What being an agent needs of a client. */
export interface AgentConnection {
  readonly connection: NatsConnection;
  readonly subjects: Subjects;
  /** Called when the connection was lost and is back. */
  readonly reconnections: Set<() => void>;
  /** Aborts what runs when the client closes. */
  readonly closing: AbortSignal;
}
