import { describe, expect, it } from 'vitest';
import { Batches } from '../../../src/chaos/actors/publishers.ts';

describe('posts in batches', () => {
  /** Waits for the batches 0 to 3, twice for the second; answers which have begun. */
  function crowd() {
    const hurry = new AbortController();
    const batches = new Batches(hurry.signal);
    const begun: number[] = [];
    for (const batch of [3, 2, 2, 1, 0]) void batches.begun(batch).then(() => begun.push(batch));
    const now = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return [...begun].sort();
    };
    return { hurry, batches, now };
  }

  it('begin one after the other, whenever somebody asks, and the rest not', async () => {
    const { batches, now } = crowd();
    expect(await now()).toEqual([0]);
    batches.next();
    expect(await now()).toEqual([0, 1]);
    batches.next();
    expect(await now()).toEqual([0, 1, 2, 2]);
    await batches.begun(2); // asked for before anybody waited
  });

  it('begin all at once when people hurry', async () => {
    const { hurry, batches, now } = crowd();
    hurry.abort();
    expect(await now()).toEqual([0, 1, 2, 2, 3]);
    await batches.begun(99);
  });
});
