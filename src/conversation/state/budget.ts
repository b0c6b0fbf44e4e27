import type { MessageEntry } from '../log/entry.ts';

/** How many tokens there may be, and how far an estimate is off. */

/** How much there may be of something: when more, it is reduced to the target. */
export interface Limit {
  readonly max: number;
  readonly target: number;
}

export const NO_LIMIT: Limit = { max: Number.POSITIVE_INFINITY, target: Number.POSITIVE_INFINITY };

/** Of the model's window less what is kept free for the answer: when a view is reduced, and to what. */
const MAX_SHARE = 0.8;
const TARGET_SHARE = 0.5;

/** `room`: tokens of the window less the answer's. `fixed`: tokens of prefix, run context and tools. */
export function windowLimit(room: number, fixed: number): Limit {
  return { max: Math.floor(room * MAX_SHARE) - fixed, target: Math.floor(room * TARGET_SHARE) - fixed };
}

/** The away block repeats what stands in the history: it may have this share of the window, and no more than so much. */
const AWAY_SHARE = 0.1;
export const MOST_AWAY_TOKENS = 2_000;

export function awayTokens(contextTokens: number): number {
  return Math.min(MOST_AWAY_TOKENS, Math.floor(contextTokens * AWAY_SHARE));
}

/** A hard limit on history is kept in the same proportion. */
export function hardLimit(max: number | null): Limit {
  return max === null ? NO_LIMIT : { max, target: Math.floor((max * TARGET_SHARE) / MAX_SHARE) };
}

/**
 * A provider's word corrects the estimate, within bounds: never so far down that a view which needs no reduction could
 * leave the window by the plain estimate, nor so far up that one wrong report ends a conversation.
 */
const RATIO_BOUNDS = { least: MAX_SHARE, most: 4 };

export function boundedRatio(ratio: number): number {
  return Math.min(RATIO_BOUNDS.most, Math.max(RATIO_BOUNDS.least, ratio));
}

/** What the provider counted for each estimated token of the request that this entry answers; undefined: nobody knows. */
export function tokenRatio({ usage, estimatedTokens }: MessageEntry): number | undefined {
  if (!usage || !estimatedTokens || !(usage.inputTokens > 0)) return undefined;
  return boundedRatio(usage.inputTokens / estimatedTokens);
}
