import type { Clock } from '../../kernel/index.ts';

/**
 * Rate limit per caller: a token bucket that holds a few seconds' worth of requests.
 *
 * Callers with a full bucket are forgotten, which bounds the memory.
 */

const SECONDS_HELD = 10;
const MOST_REMEMBERED = 10_000;

export interface RateLimit {
  /** False: over the limit. */
  take(caller: string): boolean;
}

export function createRateLimit(perSecond: number, elapsed: Clock): RateLimit {
  const most = perSecond * SECONDS_HELD;
  const buckets = new Map<string, { left: number; at: number }>();
  const filled = ({ left, at }: { left: number; at: number }, time: number) =>
    Math.min(most, left + ((time - at) / 1_000) * perSecond);

  function forgetTheIdle(time: number): void {
    for (const [caller, bucket] of buckets) if (filled(bucket, time) >= most) buckets.delete(caller);
  }

  return {
    take(caller) {
      const time = elapsed();
      const bucket = buckets.get(caller);
      if (!bucket && buckets.size >= MOST_REMEMBERED) forgetTheIdle(time);
      const left = bucket ? filled(bucket, time) : most;
      buckets.set(caller, { left: left < 1 ? left : left - 1, at: time });
      return left >= 1;
    },
  };
}
