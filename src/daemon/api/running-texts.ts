import type { LiveChunk } from '../../bus/index.ts';
import type { Entry } from '../../conversation/index.ts';
import type { Arrival } from '../../gateway/index.ts';

/**
 * The live text of running model calls, for those who follow a conversation while an agent writes.
 *
 * RUNNING-TEXT-1 It has what the newest attempt of each turn gave so far, until the log has the message or the end of the turn.
 * RUNNING-TEXT-2 Adjacent chunks of one kind and tool call are one: `from` to `n` are the chunks in it.
 * RUNNING-TEXT-3 A chunk is added once. Text from the beginning (`from`) replaces what is known of its call.
 */

export type LiveArrival = Extract<Arrival, { kind: 'live' }>;

interface Running {
  readonly conversation: string;
  readonly agent: string;
  readonly call: string;
  readonly chunks: LiveChunk[];
}

/** A turn that another daemon took over is never ended here. */
const MOST_TURNS = 1_000;

export class RunningTexts {
  readonly #turns = new Map<string, Running>();

  take(conversation: string, arrival: Arrival): void {
    if (arrival.kind === 'live') this.#add(conversation, arrival.agent, arrival.chunk);
    else for (const entry of arrival.entries) this.#end(entry);
  }

  of(conversation: string): readonly LiveArrival[] {
    const here = [...this.#turns.values()].filter((turn) => turn.conversation === conversation);
    return here.flatMap(({ agent, chunks }) =>
      chunks.map((chunk) => ({ kind: 'live', agent, chunk }) as const),
    );
  }

  #add(conversation: string, agent: string, chunk: LiveChunk): void {
    const { turnId, call, n, from = n, delta } = chunk;
    const known = this.#turns.get(turnId);
    const newest = known?.call === call ? (known.chunks.at(-1)?.n ?? -1) : -1;
    if (n <= newest && chunk.from === undefined) return; // RUNNING-TEXT-3
    if (known?.call !== call || from <= newest) {
      this.#turns.delete(turnId);
      this.#turns.set(turnId, { conversation, agent, call, chunks: [{ ...chunk, from }] });
      const [oldest] = this.#turns.keys();
      if (this.#turns.size > MOST_TURNS && oldest !== undefined) this.#turns.delete(oldest);
      return;
    }
    const last = known.chunks.at(-1);
    if (last?.type === chunk.type && last.toolCallId === chunk.toolCallId)
      known.chunks[known.chunks.length - 1] = { ...last, n, delta: last.delta + delta }; // RUNNING-TEXT-2
    else known.chunks.push({ ...chunk, from });
  }

  /** RUNNING-TEXT-1 */
  #end(entry: Entry): void {
    const turnId = saidBy(entry);
    if (turnId !== null) this.#turns.delete(turnId);
  }
}

/** The turn whose text so far the log has with this entry; null: none. */
export function saidBy(entry: Entry): string | null {
  const isOver = entry.type === 'turn-ended' || (entry.type === 'message' && entry.role === 'assistant');
  return (isOver && entry.turnId) || null;
}
