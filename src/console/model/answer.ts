import type { Entry, ExplainedRequest } from '../../conversation/index.ts';

/** What the panel about one answer shows: the turns of its agent, its request, and where a fork of it continues. */

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

export interface Segment {
  readonly group: string;
  readonly tokens: number;
  /** Share of the window, from 0 to 1. */
  readonly share: number;
}

/** The parts of the window: the groups of the request, the reserve for the answer, the free rest. */
export function segmentsOf({ report }: ExplainedRequest): Segment[] {
  const used = Object.entries(report.tokens_by_group);
  const free = Math.max(0, report.window - report.tokens - report.reserved);
  const all: [string, number][] = [...used, ['for the answer', report.reserved], ['free', free]];
  const sum =
    Math.max(
      report.window,
      all.reduce((total, [, tokens]) => total + tokens, 0),
    ) || 1;
  return all
    .filter(([, tokens]) => tokens > 0)
    .map(([group, tokens]) => ({ group, tokens, share: tokens / sum }));
}

/** The previous answer of the same agent; null: this is its first. */
export function previousAnswer(entries: readonly Entry[], index: number, agent: string): number | null {
  const found = entries
    .slice(0, index)
    .findLast((entry) => entry.type === 'message' && entry.role === 'assistant' && entry.author.id === agent);
  return found ? found.index : null;
}
