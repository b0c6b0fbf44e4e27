import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  FairQueue,
  type FairQueueLimits,
  type QueuedDelivery,
} from '../../../src/bus/nats/ingress/fair-queue.ts';

type Post = { readonly publisher: string; readonly conversation: string };
const ROOMY: FairQueueLimits = {
  maxInFlight: 1_000,
  perPublisher: 1_000,
  conversationsPerPublisher: 1_000,
  maxBytes: 1_000_000,
  maxParked: 1_000_000,
  maxKept: 0, // each is read again
};

/** A queue whose posts are settled by hand, and read again after a while. */
function openQueue(limits: Partial<FairQueueLimits>, gone: (sequence: number) => boolean = () => false) {
  const parcels: QueuedDelivery<string>[] = [];
  const delivered: number[] = [];
  const messages: string[] = [];
  const open = new Map<number, (settled: boolean) => void>();
  const settled: number[] = [];
  let fetched = 0;
  const queue = new FairQueue<string>(
    { ...ROOMY, ...limits },
    {
      deliver: ({ sequence, message }) => {
        delivered.push(sequence);
        messages.push(message);
        return new Promise((resolve) => open.set(sequence, resolve));
      },
      keep: (message) => `${message} kept`,
      async fetch({ sequence }) {
        fetched += 1;
        for (let turns = sequence % 7; turns > 0; turns--) await Promise.resolve();
        return gone(sequence) ? null : (parcels[sequence - 1] ?? null);
      },
      settled: (sequence) => void settled.push(sequence),
    },
  );
  return {
    ...{ queue, delivered, messages, open, settled },
    fetched: () => fetched,
    offer({ publisher, conversation }: Post) {
      const sequence = parcels.length + 1;
      const parcel = { sequence, publisher, conversation, bytes: 10, message: `${sequence}` };
      parcels.push(parcel);
      queue.offer(parcel);
    },
    async settle(sequence: number, isSettled = true) {
      open.get(sequence)?.(isSettled);
      open.delete(sequence);
      for (let turns = 0; turns < 200; turns++) await Promise.resolve();
    },
  };
}

const flood = (count: number, publisher = 'flooder', conversation = 'flood') =>
  Array.from({ length: count }, () => ({ publisher, conversation }));

describe('the fair queue', () => {
  it('the fair queue keeps the order of each publisher and conversation and all limits, and settles each post once (FAIR-QUEUE-1 to FAIR-QUEUE-4)', async () => {
    const post = fc.record({
      publisher: fc.constantFrom('a', 'b', 'c'),
      conversation: fc.constantFrom('x', 'y', 'z'),
    });
    const limits = fc.record({
      maxInFlight: fc.integer({ min: 1, max: 6 }),
      perPublisher: fc.integer({ min: 1, max: 4 }),
      conversationsPerPublisher: fc.integer({ min: 1, max: 3 }),
      maxBytes: fc.integer({ min: 5, max: 60 }),
      maxKept: fc.integer({ min: 0, max: 5_000 }),
    });
    const run = fc.asyncProperty(
      fc.array(post, { maxLength: 60 }),
      limits,
      fc.array(fc.nat(1_000), { minLength: 1, maxLength: 120 }),
      async (posts, given, picks) => {
        const at = openQueue(given, (sequence) => sequence % 11 === 0);
        const waiting = [...posts];
        for (let step = 0; waiting.length > 0 || at.open.size > 0; step++) {
          const pick = picks[step % picks.length] ?? 0;
          const next = pick % 3 > 0 || at.open.size === 0 ? waiting.shift() : undefined;
          if (next) at.offer(next);
          else await at.settle([...at.open.keys()][pick % at.open.size] ?? 0);
          expect(at.queue.inFlight).toBeLessThanOrEqual(given.maxInFlight);
          for (const name of ['a', 'b', 'c']) {
            const ofOne = [...at.open.keys()].filter((sequence) => posts[sequence - 1]?.publisher === name);
            expect(ofOne.length).toBeLessThanOrEqual(given.perPublisher);
            const into = new Set(ofOne.map((sequence) => posts[sequence - 1]?.conversation));
            expect(into.size).toBeLessThanOrEqual(given.conversationsPerPublisher);
          }
          if (waiting.length === 0) await at.settle(0);
        }
        for (const by of ['publisher', 'conversation'] as const) {
          for (const name of 'abcxyz') {
            const order = at.delivered.filter((sequence) => posts[sequence - 1]?.[by] === name);
            expect(order).toEqual([...order].sort((one, other) => one - other));
          }
        }
        expect([...at.settled].sort((one, other) => one - other)).toEqual(posts.map((_, place) => place + 1));
        expect(new Set(at.delivered).size).toBe(at.delivered.length);
        expect(at.queue).toMatchObject({ inFlight: 0, capacity: ROOMY.maxParked });
      },
    );
    await fc.assert(run, { numRuns: 200 });
  });

  it('the fair queue delivers the post of another publisher during a flood, and reads no kept message again', async () => {
    const at = openQueue({ maxInFlight: 8, perPublisher: 4 });
    for (const post of flood(1_000)) at.offer(post);
    at.offer({ publisher: 'somebody', conversation: 'quiet' });
    expect(at.delivered).toEqual([1, 2, 3, 4, 1_001]);
    expect(at.fetched()).toBe(0);
    expect(at.queue.capacity).toBe(ROOMY.maxParked - 996);
  });

  it('the fair queue reads no kept message again, and frees the memory of each delivered message (FAIR-QUEUE-3)', async () => {
    const at = openQueue({ maxInFlight: 1, maxKept: 2 * (10 + 512) });
    for (const post of flood(10)) at.offer(post);
    for (let sequence = 1; sequence <= 10; sequence++) await at.settle(sequence);
    expect(at.delivered).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(at.messages.slice(0, 4)).toEqual(['1', '2 kept', '3 kept', '4']);
    expect(at.fetched()).toBe(7);
    for (const post of flood(3)) at.offer(post);
    for (let sequence = 11; sequence <= 13; sequence++) await at.settle(sequence);
    expect(at.messages.slice(10)).toEqual(['11', '12 kept', '13 kept']);
    expect(at.fetched()).toBe(7);
  });

  it('the fair queue serves publishers round-robin when it is full', async () => {
    const at = openQueue({ maxInFlight: 2, perPublisher: 2 });
    for (const post of [...flood(2, 'a', 'x'), ...flood(100, 'b', 'y'), ...flood(1, 'c', 'z')])
      at.offer(post);
    await at.settle(1);
    await at.settle(2);
    expect(at.delivered).toEqual([1, 2, 3, 103]);
  });

  it('the fair queue delivers nothing after it is closed, and is idle when the posts in flight are settled', async () => {
    const at = openQueue({ maxInFlight: 2 });
    for (const post of flood(5)) at.offer(post);
    const changed = at.queue.change();
    at.queue.close();
    await changed;
    at.offer({ publisher: 'late', conversation: 'late' });
    await at.settle(1);
    await at.settle(2, false);
    expect(at.delivered).toEqual([1, 2]);
    expect(at.settled).toEqual([1]);
    expect(at.queue.inFlight).toBe(0);
  });

  it('the fair queue becomes idle if it is closed while posts are read again', async () => {
    let arrive: (parcel: QueuedDelivery<string>) => void = () => undefined;
    const parcel = (sequence: number) => ({ sequence, ...flood(1)[0]!, bytes: 1, message: '' });
    const finish: (() => void)[] = [];
    const queue = new FairQueue<string>(
      { ...ROOMY, maxInFlight: 1 },
      {
        deliver: () => new Promise((resolve) => finish.push(() => resolve(true))),
        keep: (message) => message,
        fetch: () => new Promise((resolve) => (arrive = resolve)),
        settled: () => undefined,
      },
    );
    queue.offer(parcel(1));
    queue.offer(parcel(2));
    finish[0]?.();
    for (let turns = 0; turns < 50; turns++) await Promise.resolve();
    expect(queue.inFlight).toBe(1);
    queue.close();
    arrive(parcel(2));
    await queue.change();
    expect(queue.inFlight).toBe(0);
    expect(finish).toHaveLength(1);
  });
});
