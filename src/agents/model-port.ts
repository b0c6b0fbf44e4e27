import type { Usage } from '../conversation/index.ts';

/**
 * What a turn needs of a model. The adapter answers with a value for every expected failure, decides once
 * whether trying again makes sense, and never throws but for a bug.
 */

export interface WireToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** One message of a request, in the chat-completions form. */
export interface WireMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  readonly content: string | null;
  /** What it thought before it answered, for the providers that want it back. */
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly WireToolCall[];
  readonly tool_call_id?: string;
}

export interface WireTool {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description: string;
    /** JSON Schema of the arguments. */
    readonly parameters: Readonly<Record<string, unknown>>;
    /** The provider makes sure that arguments fit `parameters`. */
    readonly strict?: true;
  };
}

/** A fully assembled request that the guard has passed (L13). */
export interface ModelRequest {
  readonly conversation: string;
  readonly agent: string;
  readonly turnId: string;
  readonly messages: readonly WireMessage[];
  readonly tools: readonly WireTool[];
  /** The exact JSON that is sent: `{"model":…,…,"messages":[…]}` in UTF-8. */
  readonly body: Uint8Array;
  /** SHA-256 of `body`, hex. */
  readonly hash: string;
  /** Sent besides the usual ones, e.g. the session. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The header by which the session goes to an agent in another process, unless its model names its own way. */
export const SESSION_HEADER = 'x-parley-session';

/** What arrives while a call runs; concatenated per kind (and `position`) they are the whole. */
export type ModelDelta =
  | { readonly type: 'text' | 'reasoning'; readonly delta: string }
  | {
      readonly type: 'tool_call_delta';
      /** Place of the call in the answer, from 0. */
      readonly position: number;
      readonly name?: string;
      readonly delta: string;
    };

export interface AnsweredCall {
  /** The provider's own id, for the record only (L10). */
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it; may be invalid. */
  readonly arguments: string;
}

export interface ModelAnswer {
  readonly content: string | null;
  readonly reasoning?: string;
  readonly toolCalls: readonly AnsweredCall[];
  readonly usage?: Usage;
  /** The model that answered, by the provider's word. */
  readonly model?: string;
  readonly finishReason?: string;
  /** The session that whoever answered wants to be given next time. */
  readonly sessionId?: string;
}

export interface PartialAnswer {
  readonly content: string;
  readonly reasoning: string;
}

export type ModelOutcome =
  | { readonly kind: 'answered'; readonly answer: ModelAnswer }
  | {
      readonly kind: 'failed';
      /** `RATE_LIMITED`, `PROVIDER_ERROR`, `NETWORK_ERROR`, `TIMEOUT`, `UNAUTHORIZED`, `NOT_FOUND`, `BAD_REQUEST`, `CONTEXT_TOO_LONG`, `STREAM_BROKEN`, `INVALID_RESPONSE` … */
      readonly code: string;
      /** For a person: what happened and what to do. Never holds a key. */
      readonly message: string;
      readonly partial: PartialAnswer;
      /** Trying again may help. Never true after the first delta. `afterMs`: the provider's own word (Retry-After). */
      readonly retryable: boolean;
      readonly afterMs?: number;
      /** How often the adapter itself tried within this call; 1 by default. */
      readonly tries?: number;
    }
  | { readonly kind: 'aborted'; readonly partial: PartialAnswer };

export interface Model {
  /** One attempt. Calls `onDelta` in order, as things come, and not after it resolves. */
  call(
    request: ModelRequest,
    options: { readonly signal: AbortSignal; readonly onDelta: (delta: ModelDelta) => void },
  ): Promise<ModelOutcome>;
  /** The turn has ended, however: nothing of it need be kept. Never throws. */
  turnOver?(turnId: string): void;
}
