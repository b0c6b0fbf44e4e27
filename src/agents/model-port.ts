import type { Answer, AnswerSoFar, Block, FilePart, ViewMessage } from '../conversation/index.ts';
import type { ToolDefinition } from './tool-port.ts';

export type { Block, OpaqueFields } from '../conversation/index.ts';

/**
 * What a turn needs of a model. The adapter returns every expected failure as a value, decides once whether a retry
 * makes sense, and throws only on a bug.
 */

/** A file that a request contains. */
export interface WireFile extends FilePart {
  /** Estimate. Absent: the model is given the reference only. */
  readonly tokens?: number;
}

/** One message of a request, in the chat-completions form: what is sent in the dialect `chat`, and what people read in every dialect. */
export interface WireMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  readonly content: string | null;
  /** Each has its line in `content`. */
  readonly files?: readonly WireFile[];
  /** Reasoning before the answer, for providers that require it back. */
  readonly reasoning_content?: string;
  readonly tool_calls?: ViewMessage['tool_calls'];
  readonly tool_call_id?: string;
}

export interface WireTool {
  readonly type: 'function';
  readonly function: Pick<ToolDefinition, 'name' | 'description' | 'parameters'> & {
    /** The provider enforces the schema in `parameters`. */
    readonly strict?: true;
  };
}

/** A fully assembled request that the guard has passed (L13). */
export interface ModelRequest {
  readonly conversation: string;
  readonly agent: string;
  readonly turnId: string;
  /** In the chat-completions form, whatever the dialect is. */
  readonly messages: readonly WireMessage[];
  readonly tools: readonly WireTool[];
  /** The exact JSON that is sent, in pieces, in UTF-8. */
  readonly body: readonly Uint8Array[];
  /** SHA-256 of `body`, hex. */
  readonly hash: string;
  /** The dialect and model that what is opaque in the answer belongs to. Absent: it is not kept. */
  readonly boundTo?: string;
  /** With the session of an agent in another process: places in `messages` that it has not been told. */
  readonly missed?: readonly number[];
  /** Additional headers, such as the session. */
  readonly headers: Readonly<Record<string, HeaderValue>>;
  /** When the log requested this call, before a restart of the daemon: milliseconds since the epoch. Absent: just now. */
  readonly askedAt?: number;
}

/** In bytes. */
export function bodyLength(body: ModelRequest['body']): number {
  return body.reduce((length, piece) => length + piece.length, 0);
}

/** A value that may be shown, or one that only the adapter reveals. */
export type HeaderValue = string | HiddenValue;

/** JSON, logs and errors show a placeholder instead of the value. */
export interface HiddenValue {
  reveal(): string;
  toJSON(): string;
}

/** The default header that carries the session to an agent in another process. */
export const SESSION_HEADER = 'x-parley-session';

/** Live parts of an answer. Concatenated per kind and `position` they are the answer. */
export type ModelDelta =
  | { readonly type: 'text' | 'reasoning'; readonly delta: string }
  | {
      readonly type: 'tool_call_delta';
      /** Index of the call in the answer, from 0. */
      readonly position: number;
      readonly name?: string;
      readonly delta: string;
    };

/** Most tool calls of one answer. Adapters may cut what exceeds it; the call then fails. */
export const MAX_TOOL_CALLS = 256;

export interface AnsweredCall {
  /** The provider's id, recorded only (L10). */
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it; may be invalid. */
  readonly arguments: string;
}

/** An answer as the adapter has it. Files that it names are stored, with what is known of them before the daemon looks (PARTS-3). */
export interface ModelAnswer
  extends Omit<Answer, 'toolCalls' | 'blocks' | 'typed' | 'id' | 'fullOutputPath'> {
  readonly toolCalls: readonly AnsweredCall[];
  /** Set if something of it is for this model only: the order of its texts and calls, with what is opaque in them. */
  readonly blocks?: readonly Block[];
}

export interface PartialAnswer {
  readonly content: string;
  readonly reasoning: string;
}

export type ModelOutcome =
  | { readonly kind: 'answered'; readonly answer: ModelAnswer }
  | ({
      readonly kind: 'failed';
      /** `RATE_LIMITED`, `PROVIDER_ERROR`, `NETWORK_ERROR`, `TIMEOUT`, `UNAUTHORIZED`, `NOT_FOUND`, `BAD_REQUEST`, `CONTEXT_TOO_LONG`, `STREAM_BROKEN`, `INVALID_RESPONSE` … */
      readonly code: string;
      /** For a person: what happened and what to do. Contains no key. */
      readonly message: string;
      readonly partial: PartialAnswer;
      /** Whether a retry may help; never after the first delta. `afterMs`: from the provider (Retry-After). */
      readonly retryable: boolean;
      readonly afterMs?: number;
      /** Attempts that the adapter made within this call; default 1. */
      readonly tries?: number;
    } & AnswerSoFar)
  | ({ readonly kind: 'aborted'; readonly partial: PartialAnswer } & AnswerSoFar);

export interface Model {
  /** One attempt. Calls `onDelta` in order, never after it has resolved. */
  call(
    request: ModelRequest,
    options: { readonly signal: AbortSignal; readonly onDelta: (delta: ModelDelta) => void },
  ): Promise<ModelOutcome>;
  /** The same model with each of its keys, in order, this one first; absent: it has at most one. */
  readonly keys?: readonly Model[];
  /** The turn has ended: release what was kept for it. Never throws. */
  turnOver?(turnId: string): void;
  /** The turn waits for the program of its agent to connect. */
  isAbsent?(turnId: string): boolean;
}
