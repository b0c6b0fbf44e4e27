import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type WaitingEntry, WaitingQueue } from '../../../src/conversation/state/waiting.ts';

const item = (index: number): WaitingEntry => ({ index, delivery: 'steer', hops: 0, delegatedBy: null });
const indexesOf = (queue: WaitingQueue) => queue.map(({ index }) => index);

/** Steps on a queue, and the same steps on an array. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.constant('add' as const) },
  { weight: 3, arbitrary: fc.constant('take oldest' as const) },
  { weight: 1, arbitrary: fc.constant('add oldest' as const) },
  { weight: 1, arbitrary: fc.array(fc.nat({ max: 60 }), { maxLength: 4 }) },
);

describe("the queue of an agent's waiting entries", () => {
  it('WAITING-1: the queue equals an array after the same steps, and no step changes an earlier value', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let queue = WaitingQueue.EMPTY;
        let plain: number[] = [];
        const seen: [WaitingQueue, readonly number[]][] = [];
        for (const [at, what] of steps.entries()) {
          if (what === 'add') [queue, plain] = [queue.with(item(at)), [...plain, at]];
          else if (what === 'add oldest') [queue, plain] = [queue.withOldest(item(at)), [at, ...plain]];
          else {
            const gone = what === 'take oldest' ? plain.slice(0, 1) : what;
            queue = queue.without(gone);
            plain = plain.filter((index) => !gone.includes(index));
          }
          seen.push([queue, plain]);
        }
        for (const [then, expected] of seen) {
          expect(indexesOf(then)).toEqual(expected);
          expect([then.length, then.oldest?.index]).toEqual([expected.length, expected[0]]);
        }
      }),
    );
  });

  it('a search in the queue begins with the oldest entry', () => {
    const queue = [3, 5, 8, 9].reduce((waiting, index) => waiting.with(item(index)), WaitingQueue.EMPTY);
    expect(queue.find(({ index }) => index > 4)?.index).toBe(5);
    expect([queue.some(({ index }) => index === 9), queue.some(({ index }) => index === 4)]).toEqual([
      true,
      false,
    ]);
    expect(queue.filter(({ index }) => index % 2 === 1).map(({ index }) => index)).toEqual([3, 5, 9]);
    expect(queue.without([4, 7])).toBe(queue);
  });
});
