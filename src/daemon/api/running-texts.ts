import {
  type Entry,
  type LiveArrival,
  type LiveText,
  liveTextWith,
  saidBy,
} from '../../conversation/index.ts';
import type { Arrival } from '../../gateway/index.ts';

/** The live text of running model calls, for those who follow a conversation while an agent writes (DRAFT-TEXT-1). */

/** A turn that another daemon took over is never ended here. */
const MOST_TURNS = 1_000;

export class RunningTexts {
  readonly #turns = new Map<string, LiveText & { readonly conversation: string }>();

  take(conversation: string, arrival: Arrival): void {
    if (arrival.kind === 'live') this.#add(conversation, arrival);
    else for (const entry of arrival.entries) this.#end(entry);
  }

  of(conversation: string): readonly LiveArrival[] {
    const here = [...this.#turns.values()].filter((turn) => turn.conversation === conversation);
    return here.flatMap(({ agent, chunks }) =>
      chunks.map((chunk) => ({ kind: 'live', agent, chunk }) as const),
    );
  }

  #add(conversation: string, { agent, chunk }: LiveArrival): void {
    const known = this.#turns.get(chunk.turnId);
    const text = liveTextWith(known, agent, chunk);
    if (text === known) return;
    if (text.call !== known?.call) this.#turns.delete(chunk.turnId); // the newest come last
    this.#turns.set(chunk.turnId, { ...text, conversation });
    const [oldest] = this.#turns.keys();
    if (this.#turns.size > MOST_TURNS && oldest !== undefined) this.#turns.delete(oldest);
  }

  #end(entry: Entry): void {
    const turnId = saidBy(entry);
    if (turnId !== null) this.#turns.delete(turnId);
  }
}
