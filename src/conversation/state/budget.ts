import type { MessageEntry } from '../log/entry.ts';

/** Token limits, and the correction of token estimates. */

/** Above `max`, reduce to `target`. */
export interface Limit {
  readonly max: number;
  readonly target: number;
}

export const NO_LIMIT: Limit = { max: Number.POSITIVE_INFINITY, target: Number.POSITIVE_INFINITY };

/** Shares of the window without the answer's reserve: when to reduce a view, and to what. */
const MAX_SHARE = 0.8;
const TARGET_SHARE = 0.5;

/** `available`: tokens of the window without the answer's reserve. `fixed`: tokens of prefix, run context and tools. */
export function windowLimit(available: number, fixed: number): Limit {
  return {
    max: Math.floor(available * MAX_SHARE) - fixed,
    target: Math.floor(available * TARGET_SHARE) - fixed,
  };
}

/** The away block repeats parts of the history, so it may use only this share of the window, up to a maximum. */
const AWAY_SHARE = 0.1;
export const MOST_AWAY_TOKENS = 2_000;

export function awayTokens(contextTokens: number): number {
  return Math.min(MOST_AWAY_TOKENS, Math.floor(contextTokens * AWAY_SHARE));
}

/** A hard limit on the history, with a target in the same proportion. */
export function hardLimit(max: number | null): Limit {
  return max === null ? NO_LIMIT : { max, target: Math.floor((max * TARGET_SHARE) / MAX_SHARE) };
}

/**
 * The bounds of the correction. The lower one ensures that a view that needs no reduction fits the window by the plain
 * estimate; the upper one ensures that one wrong report does not end a conversation.
 */
const RATIO_BOUNDS = { least: MAX_SHARE, most: 4 };

/**
 * Real tokens per estimated token of the request that this entry answers; undefined if either number is missing. An agent in another
 * process counts requests of its own.
 */
export function tokenRatio({ usage, estimatedTokens }: MessageEntry): number | undefined {
  if (!usage || usage.byAgent || !estimatedTokens || !(usage.inputTokens > 0)) return undefined;
  return Math.min(RATIO_BOUNDS.most, Math.max(RATIO_BOUNDS.least, usage.inputTokens / estimatedTokens));
}
