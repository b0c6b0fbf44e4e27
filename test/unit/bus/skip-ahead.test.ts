import { describe, expect, it } from 'vitest';
import { handOverSkipped } from '../../../src/bus/nats/ingress/skip-ahead.ts';
import type { StreamMessage } from '../../../src/bus/nats/ingress/stored-posts.ts';

function handed(from: number, last: number, others: readonly number[]): string[] {
  const order: string[] = [];
  const messages = others.map((sequence) => ({ sequence }) as StreamMessage);
  handOverSkipped(
    from,
    { last, others: messages },
    (sequence) => order.push(`refused ${sequence}`),
    ({ sequence }) => order.push(`taken ${sequence}`),
  );
  return order;
}

describe('a skipped part of the ingress stream (SKIP-2)', () => {
  it('the posts of others between two refused posts that represent a skipped range are delivered', () => {
    expect(handed(5, 100, [50, 7])).toEqual(['refused 5', 'taken 7', 'taken 50', 'refused 100']);
  });

  it('no post of another publisher at the ends of a skipped range is refused', () => {
    expect(handed(5, 10, [5, 6, 10])).toEqual(['taken 5', 'taken 6', 'refused 7', 'refused 9', 'taken 10']);
  });

  it('a single post is refused once, and none if all posts are of others', () => {
    expect(handed(5, 6, [5])).toEqual(['taken 5', 'refused 6']);
    expect(handed(5, 6, [5, 6])).toEqual(['taken 5', 'taken 6']);
  });
});
