import { z } from 'zod';

/** A piece of a model's answer. */
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

const agentChunk = z.object({
  turnId: z.string(),
  call: z.string(),
  n: z.number(),
  type: z.enum(['text', 'reasoning', 'tool_call_delta']),
  delta: z.string(),
  toolCallId: z.string().optional(),
  toolName: z.string().optional(),
});

/**
 * A chunk of an agent in another process, without unknown fields. Null: of another turn; `unknown`: not a chunk as this
 * version knows it, and a sign of life.
 */
export function decodeChunk(data: Uint8Array, turnId: string): LiveChunk | 'unknown' | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    if ((value as { turnId?: unknown } | null)?.turnId !== turnId) return null;
    return (agentChunk.safeParse(value).data as LiveChunk | undefined) ?? 'unknown';
  } catch {
    return null;
  }
}
