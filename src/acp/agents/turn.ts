import type { FilePart, SentPrompt, Usage } from '../../conversation/index.ts';

/** What a coding agent needs of the turn that it is offered: a part of `AgentTurn` of the client library. */
export interface OfferedTurn {
  readonly conversation: string;
  readonly turnId: string;
  readonly messages: readonly TurnMessage[];
  readonly tools: readonly TurnTool[];
  /** The agent's session in this conversation. */
  readonly sessionId?: string;
  /** Places in `messages` that this session has not been told. */
  readonly missed?: readonly number[];
  /** Messages that arrived while tools ran; grows. */
  readonly news: readonly TurnMessage[];
  readonly signal: AbortSignal;
  write(delta: string): void;
  think(delta: string): void;
  showCall(id: string, name: string): void;
  callTools(
    calls: readonly ToolRequest[],
    content?: string,
    soFar?: AcpProgress,
  ): Promise<readonly { readonly content: string }[]>;
}

export interface TurnMessage {
  readonly role: string;
  readonly content: string | null;
  /** Each has its line in `content`. */
  readonly files?: readonly FilePart[];
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
  readonly tool_call_id?: string;
}

export interface TurnTool {
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}

export interface ToolRequest {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** A call that the agent made by itself and reported: nothing here runs it. */
export interface ReportedCall {
  readonly title: string;
  readonly kind: string;
  readonly status: string;
  /** JSON text. */
  readonly arguments?: string;
  /** Text, or a difference of a file. */
  readonly result?: string;
}

/** What was not reported before a call. */
export type AcpProgress = Partial<Pick<AcpAnswer, 'sessionId' | 'reported' | 'prompt'>>;

export interface AcpAnswer {
  readonly content: string;
  readonly files?: readonly FilePart[];
  readonly reasoning?: string;
  readonly sessionId: string;
  readonly reported?: readonly ReportedCall[];
  /** The newest prompt of the turn, unless a call before has it. */
  readonly prompt?: SentPrompt;
  readonly finishReason?: string;
  readonly usage?: Usage;
}

/** Where the files of conversations are. Both reject with what happened. */
export interface FileStore {
  read(conversation: string, sha256: string): Promise<AsyncIterable<Uint8Array>>;
  keep(
    conversation: string,
    bytes: Uint8Array,
    about: { name?: string; mediaType?: string },
  ): Promise<FilePart>;
}
