import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LowWaterMark } from '../../../src/bus/settled.ts';
import { expectEqual } from '../../support/expect-equal.ts';

describe('the low-water mark of posts that are settled out of order', () => {
  it('the low-water mark is the newest post before which everything is settled, for any order of settling', () => {
    const gaps = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 60 });
    const steps = fc.array(fc.nat(), { maxLength: 200 });
    fc.assert(
      fc.property(gaps, steps, (distances, picks) => {
        const mark = new LowWaterMark(0);
        let sequence = 0;
        const opened = distances.map((distance) => {
          sequence += distance;
          return sequence;
        });
        const waiting = [...opened];
        const underWay: number[] = [];
        const settled = new Set<number>();
        for (const pick of picks) {
          if (pick % 2 === 0 && waiting.length > 0) {
            const next = waiting.shift()!;
            mark.open(next);
            underWay.push(next);
          } else if (underWay.length > 0) {
            const [one] = underWay.splice(pick % underWay.length, 1);
            const before = mark.value;
            const moved = mark.settle(one!);
            settled.add(one!);
            expectEqual(moved, mark.value !== before);
          }
          const oldestOpen = opened.find((one) => !settled.has(one)) ?? Number.POSITIVE_INFINITY;
          const expected = opened.filter((one) => one < oldestOpen).at(-1) ?? 0;
          expectEqual(mark.value, expected); // SETTLED-5, SETTLED-6
        }
      }),
    );
  });

  it('the low-water mark needs little memory after many posts', () => {
    const mark = new LowWaterMark(10);
    expect(mark.value).toBe(10);
    for (let sequence = 11; sequence < 20_000; sequence += 2) {
      mark.open(sequence);
      mark.open(sequence + 1);
      const moved = [mark.settle(sequence + 1), mark.settle(sequence)];
      expectEqual([moved, mark.value], [[false, true], sequence + 1]);
    }
  });
});
