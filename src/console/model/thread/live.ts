import type { Entry } from '../../../conversation/index.ts';

/**
 * Streamed text that is not in the log yet.
 *
 * LIVE-1 A draft is removed when the log has its message, or its turn has ended. Chunks of it that arrive later are dropped: the
 *    entry may come with one stream, and the text before it with the next one.
 * LIVE-2 Each attempt of a call starts a new draft: the text of a failed attempt is dropped.
 * LIVE-3 A chunk is added once. Text that was streamed before (`from`) and overlaps a draft replaces it.
 * LIVE-4 A lost connection interrupts each draft; it is kept until the thread is loaded again.
 */

export interface Chunk {
  readonly agent: string;
  readonly turnId: string;
  readonly call: string;
  readonly n: number;
  /** Of text that was streamed before this page followed the conversation: its first chunk. */
  readonly from?: number;
  readonly type: 'text' | 'reasoning' | 'tool_call_delta';
  readonly delta: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
}

export interface LiveDraft {
  readonly agent: string;
  readonly turnId: string;
  readonly call: string;
  /** The newest chunk in it. */
  readonly n: number;
  readonly text: string;
  readonly reasoning: string;
  /** Names of the tools in the streamed call. */
  readonly tools: readonly string[];
  /** Its beginning was streamed before this page followed the conversation. */
  readonly isPartial: boolean;
  readonly isInterrupted: boolean;
}

export type Drafts = ReadonlyMap<string, LiveDraft>;
export const NO_DRAFTS: Drafts = new Map();

export function withChunk(drafts: Drafts, chunk: Chunk): Drafts {
  const { agent, turnId, call, n } = chunk;
  const first = chunk.from ?? n;
  const known = drafts.get(turnId);
  const isSame = known?.call === call; // LIVE-2
  if (isSame && n <= known.n && chunk.from === undefined) return drafts; // LIVE-3
  const before: LiveDraft =
    isSame && first > known.n
      ? known
      : {
          agent,
          turnId,
          call,
          n,
          text: '',
          reasoning: '',
          tools: [],
          isPartial: first > 0,
          isInterrupted: false,
        };
  return new Map(drafts).set(turnId, grown({ ...before, n }, chunk));
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

/** The turns that ended, and the calls whose message is in the log (LIVE-1). */
export class Said {
  readonly #turns = new Set<string>();
  readonly #calls = new Set<string>();

  /** `drafts`: before the entry. */
  add(drafts: Drafts, entry: Entry): void {
    if (entry.turnId === undefined) return;
    if (entry.type === 'turn-ended') this.#turns.add(entry.turnId);
    const draft = drafts.get(entry.turnId);
    if (draft && withoutSaid(drafts, entry) !== drafts) this.#calls.add(`${draft.turnId} ${draft.call}`);
  }

  has({ turnId, call }: Chunk): boolean {
    return this.#turns.has(turnId) || this.#calls.has(`${turnId} ${call}`);
  }
}

/** LIVE-4: the connection was lost. */
export function interrupted(drafts: Drafts): Drafts {
  return new Map([...drafts].map(([turn, draft]) => [turn, { ...draft, isInterrupted: true }]));
}

/** LIVE-4: the thread was loaded again. */
export function withoutInterrupted(drafts: Drafts): Drafts {
  return new Map([...drafts].filter(([, draft]) => !draft.isInterrupted));
}
