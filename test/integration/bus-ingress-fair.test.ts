import { describe, expect, it } from 'vitest';
import type { Delivery, IngressOptions } from '../../src/bus/index.ts';
import { gate } from '../support/gate.ts';
import { perTest } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { bytes, collector, startBroker, text, until } from '../unit/bus/support.ts';

/** A flood of one publisher before the posts of others. The test decides when the daemon settles a post. */
describe('reading posts in a flood', () => {
  const broker = perTest(() => startBroker());

  /** What waits is read again, post by post. */
  const LIMITS = { maxInFlight: 20, maxInFlightPerPublisher: 5, maxKeptBytes: 0 };

  async function flood(count: number, first = 0): Promise<void> {
    const stream = broker.plain.jetstream();
    const posts = Array.from({ length: count }, (_, n) => bytes(`flood ${first + n}`));
    await Promise.all(posts.map((post) => stream.publish('parley.in.flooder.flood', post)));
  }

  const ofFlood = (deliveries: readonly Delivery[]) =>
    deliveries.filter(({ publisher }) => publisher === 'flooder').map(({ position }) => position.sequence);

  it('a post of another publisher is delivered at once, although none of the flood is settled', async () => {
    const daemon = await broker.bus();
    await flood(500);
    const held = gate();
    const seen = collector(({ publisher }) => (publisher === 'flooder' ? held.passed : Promise.resolve()));
    await daemon.startIngress({ ...seen.options(), ...LIMITS });
    await daemon.post('somebody', 'quiet', bytes('hello'));
    await until('it came', () => seen.contents().includes('hello'));
    expect(ofFlood(seen.deliveries)).toEqual([1, 2, 3, 4, 5]);
    expect(seen.positions).toEqual([]); // the low-water mark is before the flood (INGRESS-5)

    held.open();
    await until('all came', () => seen.deliveries.length === 501);
    expect(ofFlood(seen.deliveries)).toEqual(Array.from({ length: 500 }, (_, n) => n + 1));
    const read = new Map(seen.deliveries.map(({ position, body }) => [position.sequence, text(body)]));
    expect(new Set(read.values()).size).toBe(501);
    await until('all are settled', () => seen.positions.at(-1)?.sequence === 501);
  });

  it('a post that was kept in memory is not read again, and is delivered although the stream has lost it', async () => {
    const daemon = await broker.bus();
    await flood(40);
    const held = gate();
    const seen = collector(() => held.passed);
    await daemon.startIngress({ ...seen.options(), ...LIMITS, maxKeptBytes: 100_000 });
    await until('some came', () => seen.deliveries.length === 5);
    await daemon.post('somebody', 'quiet', bytes('behind it'));
    await until('all are read', () => seen.contents().includes('behind it'));
    await (await broker.plain.jetstreamManager()).streams.purge('PARLEY_IN', { keep: 1 });
    held.open();
    await until('all came', () => seen.deliveries.length === 41);
    expect(ofFlood(seen.deliveries)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
    expect(new Set(seen.contents()).size).toBe(41);
  });

  it('the order of a conversation with posts of several publishers is kept', async () => {
    const daemon = await broker.bus();
    await flood(50);
    const held = gate();
    const seen = collector(() => held.passed);
    await daemon.startIngress({ ...seen.options(), ...LIMITS });
    await daemon.post('somebody', 'flood', bytes('in between'));
    await flood(50, 50);
    await daemon.post('somebody', 'quiet', bytes('afterwards'));
    held.open();
    await until('all came', () => seen.deliveries.length === 102);
    const into = seen.deliveries.filter(({ conversation }) => conversation === 'flood');
    const order = into.map(({ position }) => position.sequence);
    expect(order).toEqual([...order].sort((one, other) => one - other));
    expect(seen.contents().indexOf('afterwards')).toBeGreaterThan(seen.contents().indexOf('in between'));
  });

  it('the whole flood is delivered again after a stop in between, and once', async () => {
    const first = await broker.bus();
    await flood(200);
    const some = collector(({ position }) =>
      position.sequence <= 30 ? Promise.resolve() : Promise.reject(new Error('stopping')),
    );
    const options: IngressOptions = { ...some.options(), ...LIMITS };
    await first.startIngress(options);
    await until('some came', () => some.deliveries.length > 30);
    await first.stopIngress();
    const after = some.positions.at(-1) ?? null;
    expect(after?.sequence).toBe(30);
    const second = await broker.bus();
    const rest = collector();
    await second.startIngress({ ...rest.options(after), ...LIMITS });
    await until('the rest came', () => rest.positions.at(-1)?.sequence === 200);
    expect(ofFlood(rest.deliveries)).toEqual(Array.from({ length: 170 }, (_, n) => n + 31));
  });

  it('reading pauses at the limit of what may be kept in memory', async () => {
    const daemon = await broker.bus();
    await flood(300);
    const held = gate();
    const seen = collector(({ publisher }) => (publisher === 'flooder' ? held.passed : Promise.resolve()));
    await daemon.startIngress({ ...seen.options(), ...LIMITS, maxParked: 100 });
    await daemon.post('somebody', 'quiet', bytes('hello'));
    await until('some came', () => seen.deliveries.length === 5);
    await new Promise((resolve) => setTimeout(resolve, 200)); // any further post would be delivered at once
    expect(seen.deliveries).toHaveLength(5);
    held.open();
    await until('all came', () => seen.deliveries.length === 301);
  });

  itLong(
    'a post that was removed while it waited is skipped, and reading continues when the server returns',
    async () => {
      const daemon = await broker.bus();
      await flood(40);
      const held = gate();
      const seen = collector(() => held.passed);
      await daemon.startIngress({ ...seen.options(), ...LIMITS });
      await until('some came', () => seen.deliveries.length === 5);
      await daemon.post('somebody', 'quiet', bytes('hello')); // by now all were read
      await until('it came', () => seen.contents().includes('hello'));
      const manager = await broker.plain.jetstreamManager();
      await manager.streams.deleteMessage('PARLEY_IN', 20);
      await broker.server.kill9();
      held.open();
      await broker.server.restart();
      await until('all are settled', () => seen.positions.at(-1)?.sequence === 41);
      expect(ofFlood(seen.deliveries)).toEqual(
        Array.from({ length: 40 }, (_, n) => n + 1).filter((n) => n !== 20),
      );
    },
  );
});
