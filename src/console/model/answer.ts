import type { Entry, EntryOf, ExplainedRequest } from '../../conversation/index.ts';

/** What the panel about one answer shows: the turns of its agent, its request, and where a fork of it continues. */

/** A start may be a resumption, which may have another definition. */
export type TurnStart = EntryOf<'turn-started'>;
export type TurnsAround = ReturnType<typeof turnsAround>;

/** `own`: the start that determines the definition of the answer; null: it belongs to no turn. `others`: newest first. */
export function turnsAround(entries: readonly Entry[], index: number, agent: string) {
  const turnId = entries[index]?.turnId;
  const starts = entries.filter(
    (entry): entry is TurnStart => entry.type === 'turn-started' && entry.agent === agent,
  );
  const own = starts.findLast((start) => start.turnId === turnId && start.index < index) ?? null;
  const previous = own && (starts[starts.indexOf(own) - 1] ?? null);
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

/** The parts of the window, with their share from 0 to 1: the groups of the request, the reserve for the answer, the free rest. */
export function segmentsOf({ report }: ExplainedRequest) {
  const used = Object.entries(report.tokens_by_group);
  const free = Math.max(0, report.window - report.tokens - report.reserved);
  const all: [string, number][] = [...used, ['for the answer', report.reserved], ['free', free]];
  const sum = all.reduce((total, [, tokens]) => total + tokens, 0);
  const whole = Math.max(report.window, sum) || 1;
  return all.flatMap(([group, tokens]) => (tokens > 0 ? { group, tokens, share: tokens / whole } : []));
}

export function previousAnswer(entries: readonly Entry[], index: number, agent: string): number | null {
  const found = entries
    .slice(0, index)
    .findLast((entry) => entry.type === 'message' && entry.role === 'assistant' && entry.author.id === agent);
  return found ? found.index : null;
}
