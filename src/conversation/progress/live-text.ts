import type { Entry } from '../log/entry.ts';

/**
 * The live text of running model calls.
 *
 * DRAFT-TEXT-1 It has what the newest attempt of each turn gave so far, until the log has the message or the end of the turn.
 * DRAFT-TEXT-2 Adjacent chunks of one kind and tool call are one: `from` to `n` are the chunks in it.
 * DRAFT-TEXT-3 A chunk is added once. Text that was streamed before (`from`) and overlaps what is known of its call replaces it.
 */

/** A piece of a model's answer. */
export interface LiveChunk {
  readonly turnId: string;
  /** One attempt of a model call. */
  readonly call: string;
  /** Numbers the chunks of that call, from 0. */
  readonly n: number;
  /** A chunk with text that was streamed before contains the chunks `from` to `n`. */
  readonly from?: number;
  readonly type: 'text' | 'reasoning' | 'tool_call_delta';
  readonly delta: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
}

export interface LiveArrival {
  readonly kind: 'live';
  readonly agent: string;
  readonly chunk: LiveChunk;
}

/** What a reader of a conversation gets. */
export type Received =
  | {
      readonly kind: 'entries';
      readonly entries: readonly Entry[];
      /** These entries reach the end of the log: what they leave open is open. */
      readonly isCurrent: boolean;
    }
  | LiveArrival;

export interface LiveText {
  readonly agent: string;
  readonly turnId: string;
  readonly call: string;
  readonly chunks: readonly LiveChunk[];
}

/** The same object if the chunk is known. */
export function liveTextWith<T extends LiveText>(
  known: T | undefined,
  agent: string,
  chunk: LiveChunk,
): T | LiveText {
  const { turnId, call, n, from = n } = chunk;
  const last = known?.call === call ? known.chunks.at(-1) : undefined;
  if (!known || !last || (chunk.from !== undefined && from <= last.n))
    return { agent, turnId, call, chunks: [{ ...chunk, from }] };
  if (n <= last.n) return known; // DRAFT-TEXT-3
  const isMore = last.type === chunk.type && last.toolCallId === chunk.toolCallId;
  const added = isMore
    ? { ...last, ...chunk, from: last.from ?? last.n, delta: last.delta + chunk.delta }
    : { ...chunk, from };
  return { ...known, chunks: [...(isMore ? known.chunks.slice(0, -1) : known.chunks), added] };
}

/** The turn whose live text the log has with this entry; null: none (DRAFT-TEXT-1). */
export function saidBy(entry: Entry): string | null {
  const isOver = entry.type === 'turn-ended' || (entry.type === 'message' && entry.role === 'assistant');
  return (isOver && entry.turnId) || null;
}
