import { describe, expect, it } from 'vitest';
import { Batches } from '../../chaos/actors/publishers.ts';

describe('posts in batches', () => {
  /** Waits for the batches 0 to 3, for the second one twice. Returns those that have begun. */
  function setUp() {
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

  it('batches begin one after the other when they are requested, and the rest never', async () => {
    const { batches, now } = setUp();
    expect(await now()).toEqual([0]);
    batches.next();
    expect(await now()).toEqual([0, 1]);
    batches.next();
    expect(await now()).toEqual([0, 1, 2, 2]);
    await batches.begun(2); // requested before it is awaited
  });

  it('all batches begin at once when the run hurries', async () => {
    const { hurry, batches, now } = setUp();
    hurry.abort();
    expect(await now()).toEqual([0, 1, 2, 2, 3]);
    await batches.begun(99);
  });
});
