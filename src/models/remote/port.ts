import type { Usage } from '../../conversation/index.ts';

/** The transport over which turns are offered to agents in other processes. The daemon implements it on the bus. */

export interface RemoteCall {
  readonly id?: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

export type RemoteMessage =
  | { readonly type: 'heartbeat' }
  | {
      readonly type: 'tool_call';
      /** A repeated id is the same call. */
      readonly id?: string | undefined;
      readonly calls: readonly RemoteCall[];
      readonly content?: string | null;
      readonly usage?: Usage;
    }
  | {
      readonly type: 'final';
      readonly content?: string | null;
      readonly reasoning?: string;
      readonly sessionId?: string;
      readonly model?: string;
      readonly finishReason?: string;
      readonly usage?: Usage;
    }
  | { readonly type: 'failed'; readonly code: string; readonly message: string };

export type RemoteEvent =
  | { readonly type: 'alive' }
  | { readonly type: 'text'; readonly call: string; readonly delta: string }
  | { readonly type: 'message'; readonly message: RemoteMessage; readonly from: string | null }
  | { readonly type: 'invalid'; readonly reason: string };

export interface RemoteResults {
  readonly results: readonly { readonly id?: string; readonly content: string }[];
  readonly messages?: readonly { readonly role: string; readonly content: string | null }[];
}

export type RemoteOutcome =
  | { readonly kind: 'accepted'; readonly instance: string }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'no-responder' }
  | { readonly kind: 'unanswered' }
  | { readonly kind: 'too-large'; readonly bytes: number; readonly limit: number }
  | { readonly kind: 'disconnected' };

export interface RemoteOffer {
  readonly conversation: string;
  readonly turnId: string;
  readonly epoch: number;
  readonly messages: readonly { readonly role: string; readonly content: string | null }[];
  readonly tools: readonly {
    readonly type: 'function';
    readonly function: {
      readonly name: string;
      readonly description: string;
      readonly parameters: Readonly<Record<string, unknown>>;
    };
  }[];
  readonly heartbeatMs: number;
  readonly sessionId?: string;
}

/** The channel of one offer. No method rejects. */
export interface RemoteChannel {
  /** Calls `onEvent` until `close`, never with events of other turns or older offers. */
  offer(
    body: RemoteOffer,
    timeoutMs: number,
    onEvent: (event: RemoteEvent) => void,
    traceparent?: string,
  ): Promise<RemoteOutcome>;
  /** Answers the tool call received from `from`. False: too large, nothing was sent. */
  answer(from: string | null, results: RemoteResults): boolean;
  /** Idempotent. `abort`: notifies the agent that it has lost the turn. */
  close(how: 'done' | 'abort'): void;
}

export type OpenRemoteChannel = (agent: string) => RemoteChannel;
