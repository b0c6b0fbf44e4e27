import type { Entry, LiveChunk, LiveText } from '../../../conversation/index.ts';
import { liveTextWith, saidBy } from '../../../conversation/progress/live-text.ts';

/**
 * Streamed text that is not in the log yet (`live-text.ts`).
 *
 * LIVE-1 A draft is removed when the log has its message, or its turn has ended. Chunks of it that arrive later are dropped: the
 *    entry may come with one stream, and the text before it with the next one.
 * LIVE-2 A lost connection interrupts each draft; it is kept until the thread is loaded again.
 */

export type Chunk = LiveChunk & { readonly agent: string };

export type LiveDraft = LiveText & { readonly isInterrupted?: boolean };

export type Drafts = ReadonlyMap<string, LiveDraft>;
export const NO_DRAFTS: Drafts = new Map();

export function withChunk(drafts: Drafts, { agent, ...chunk }: Chunk): Drafts {
  const known = drafts.get(chunk.turnId);
  const draft = liveTextWith(known, agent, chunk);
  return draft === known ? drafts : new Map(drafts).set(chunk.turnId, draft);
}

/** `isPartial`: its beginning was streamed before this page followed the conversation. `tools`: in the streamed call, and those that the agent reports. */
export function contentOf({ chunks }: LiveDraft) {
  const textOf = (wanted: LiveChunk['type']) =>
    chunks.map(({ type, delta }) => (type === wanted ? delta : '')).join('');
  const tools = new Set(chunks.flatMap(({ toolName }) => toolName || []));
  const isPartial = (chunks[0]?.from ?? 0) > 0;
  const newest = chunks.at(-1)?.type;
  return { text: textOf('text'), reasoning: textOf('reasoning'), tools: [...tools], newest, isPartial };
}

/** LIVE-1 */
export function withoutSaid(drafts: Drafts, entry: Entry): Drafts {
  const said = saidBy(entry);
  return said !== null && drafts.has(said)
    ? new Map([...drafts].filter(([turnId]) => turnId !== said))
    : drafts;
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

/** LIVE-2: the connection was lost. */
export function interrupted(drafts: Drafts): Drafts {
  return new Map([...drafts].map(([turn, draft]) => [turn, { ...draft, isInterrupted: true }]));
}

/** LIVE-2: the thread was loaded again. */
export function withoutInterrupted(drafts: Drafts): Drafts {
  return new Map([...drafts].filter(([, draft]) => !draft.isInterrupted));
}
