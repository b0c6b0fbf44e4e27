/** A piece of what a model is saying. */
export interface LiveChunk {
  readonly turnId: string;
  /** One attempt of a model call. */
  readonly call: string;
  /** Numbers the chunks of that call, from 0. */
  readonly n: number;
  readonly type: 'text' | 'reasoning' | 'tool_call_delta';
  readonly delta: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
}
