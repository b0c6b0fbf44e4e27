import type { Difference, Entry, ExplainedRequest } from '../../conversation/index.ts';
import { diffViews } from '../../conversation/view/view-diff.ts';

/** "Why did it say that?": the data of one request for the panel. */

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

export type { Difference };
export const changesOf = (before: ExplainedRequest, after: ExplainedRequest): Difference[] =>
  diffViews(before, after);
