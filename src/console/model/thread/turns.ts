import type { Entry } from '../../../conversation/index.ts';

/** The turns of an agent, for comparing their definitions, and the place at which a fork continues. */

/** A `turn-started`: the first one of a turn, or a resumption, which may have another definition. */
export interface TurnStart {
  readonly index: number;
  readonly createdAt: string;
  readonly isResumed: boolean;
  /** The hash of its definition; null: none was recorded. */
  readonly definition: string | null;
}

export interface TurnsAround {
  /** The start that determines the definition of the answer; null: it belongs to no turn. */
  readonly own: TurnStart | null;
  /** The agent's start before it; null: there is none. */
  readonly previous: TurnStart | null;
  /** All other starts of the agent, newest first. */
  readonly others: readonly TurnStart[];
}

export function turnsAround(entries: readonly Entry[], index: number, agent: string): TurnsAround {
  const turnId = entries[index]?.turnId;
  const starts: TurnStart[] = [];
  let own: TurnStart | null = null;
  let previous: TurnStart | null = null;
  for (const entry of entries) {
    if (entry.type !== 'turn-started' || entry.agent !== agent) continue;
    const { definition = null, createdAt, resumed = false } = entry;
    const start = { index: entry.index, createdAt, isResumed: resumed, definition };
    if (entry.turnId === turnId && entry.index < index) {
      previous = starts.at(-1) ?? null;
      own = start;
    }
    starts.push(start);
  }
  return { own, previous, others: starts.filter((start) => start !== own).reverse() };
}

export interface ForkPoint {
  /** The last entry of the copy. */
  readonly at: number;
  /** At its end, the copy answers the message, ends the open turn as aborted, or waits for a message. */
  readonly outcome: 'answers' | 'aborts' | 'waits';
}

/** "Fork from here": with an answer that ends its turn, the end of the turn is copied too. */
export function forkPoint(entries: readonly Entry[], index: number): ForkPoint {
  const entry = entries[index];
  if (entry?.type !== 'message' || entry.author.kind !== 'agent') return { at: index, outcome: 'answers' };
  for (const after of entries.slice(index + 1)) {
    if (after.type === 'turn-ended' && after.turnId === entry.turnId)
      return { at: after.index, outcome: 'waits' };
    if (after.type === 'message' || after.turnId === entry.turnId) break;
  }
  return { at: index, outcome: 'aborts' };
}
