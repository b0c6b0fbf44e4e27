import type { Entry } from '../../../conversation/index.ts';

/**
 * Streamed text that is not in the log yet.
 *
 * LIVE-1 A draft is removed when the log has its message, or its turn has ended.
 * LIVE-2 Each attempt of a call starts a new draft: the text of a failed attempt is dropped.
 */

export interface Chunk {
  readonly agent: string;
  readonly turnId: string;
  readonly call: string;
  readonly n: number;
  readonly type: 'text' | 'reasoning' | 'tool_call_delta';
  readonly delta: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
}

export interface LiveDraft {
  readonly agent: string;
  readonly turnId: string;
  readonly call: string;
  readonly text: string;
  readonly reasoning: string;
  /** Names of the tools in the streamed call. */
  readonly tools: readonly string[];
  /** Its beginning was streamed before this page followed the conversation. */
  readonly isPartial: boolean;
}

export type Drafts = ReadonlyMap<string, LiveDraft>;
export const NO_DRAFTS: Drafts = new Map();

export function withChunk(drafts: Drafts, chunk: Chunk): Drafts {
  const { agent, turnId, call } = chunk;
  const known = drafts.get(turnId);
  const before: LiveDraft =
    known?.call === call // LIVE-2
      ? known
      : { agent, turnId, call, text: '', reasoning: '', tools: [], isPartial: chunk.n > 0 };
  return new Map(drafts).set(turnId, grown(before, chunk));
}

function grown(draft: LiveDraft, { type, delta, toolName }: Chunk): LiveDraft {
  if (type === 'text') return { ...draft, text: draft.text + delta };
  if (type === 'reasoning') return { ...draft, reasoning: draft.reasoning + delta };
  return toolName && !draft.tools.includes(toolName)
    ? { ...draft, tools: [...draft.tools, toolName] }
    : draft;
}

/** LIVE-1 */
export function withoutSaid(drafts: Drafts, entry: Entry): Drafts {
  const isOver = entry.type === 'turn-ended' || (entry.type === 'message' && entry.role === 'assistant');
  if (!isOver || entry.turnId === undefined || !drafts.has(entry.turnId)) return drafts;
  const left = new Map(drafts);
  left.delete(entry.turnId);
  return left;
}
