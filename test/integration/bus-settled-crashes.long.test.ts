import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Delivery } from '../../src/bus/index.ts';
import { perTest } from '../support/lifetime.ts';
import { collector, sharedReading, startBroker, until } from '../unit/bus/support.ts';
import { A, B, settledOn } from './settled-support.ts';

describe('the record of settled posts', () => {
  const broker = perTest(() => startBroker());
  const { post, record, settledUpTo, stopped, held } = settledOn(broker);

  describe('a stream that lost its newest posts in a crash', () => {
    const folder = () => join(broker.server.directory, 'store', 'jetstream', '$G', 'streams', 'PARLEY_IN');
    const kept = () => `${broker.server.directory}-kept`;
    afterEach(() => rm(kept(), { recursive: true, force: true }));
    const keep = async () => {
      await broker.server.kill9();
      await cp(folder(), kept(), { recursive: true });
      await broker.server.restart();
    };
    const lose = async () => {
      await broker.server.kill9();
      await rm(folder(), { recursive: true });
      await cp(kept(), folder(), { recursive: true });
      await broker.server.restart();
      const isThere = () => life().then(Boolean, () => false);
      await until('the stream is back', isThere);
    };
    const life = async () =>
      (await (await broker.plain.jetstreamManager()).streams.info('PARLEY_IN')).created;

    it('the record is replaced at once, and the store reads the posts that replaced the lost ones', async () => {
      const first = await broker.bus();
      await post(first, 1, 3);
      await keep();
      await post(first, 4, 6);
      await stopped(first, A, 6);
      await lose();
      const { bus, lines } = await broker.recording();
      await post(bus, 14, 16);
      const seen = collector();
      await bus.startIngress({ ...seen.options({ stream: await life(), sequence: 6 }), owner: A });
      await until('the others came', () => seen.contents().includes('16'));
      expect(seen.contents()).toEqual(['1', '2', '3', '14', '15', '16']);
      expect(lines.some(({ message }) => message.includes('lost its newest posts'))).toBe(true);
      await post(bus, 17, 17);
      await settledUpTo(7);
      expect(await record()).toMatchObject({ by: A, settled: { upTo: 7, open: [] }, before: null });
      expect(seen.positions[0]).toMatchObject({ sequence: 0 });
    });

    it('the record is replaced at once by the daemon that was reading', async () => {
      const bus = await broker.bus();
      await post(bus, 1, 3);
      await keep();
      const seen = collector();
      await bus.startIngress({ ...seen.options(), owner: A });
      await post(bus, 4, 6);
      await settledUpTo(6);
      await lose();
      await post(await broker.bus(), 14, 14);
      await until('the other one came', () => seen.contents().includes('14'));
      await settledUpTo(4);
      expect(await record()).toMatchObject({ by: A, settled: { upTo: 4, open: [] } });
      const { positions } = seen;
      expect(positions.slice(positions.findLastIndex(({ sequence }) => sequence === 6))).toMatchObject([
        { sequence: 6 },
        { sequence: 0 },
        ...positions.slice(-4).map(() => ({})),
      ]);
    });

    it('the loss is detected if daemons with shared logs wrote the record', async () => {
      const first = await broker.bus({ store: 'jetstream' });
      await post(first, 1, 3);
      await keep();
      await post(first, 4, 6);
      await first.share('a').startIngress(sharedReading(collector(), { owner: A }));
      await settledUpTo(6);
      expect((await record())?.last?.sequence).toBe(6);
      await first.close();
      await lose();
      const bus = await broker.bus();
      await post(bus, 14, 16);
      const seen = collector();
      await bus.startIngress({ ...seen.options(), owner: B });
      await until('the others came', () => seen.contents().includes('16'));
      expect(seen.contents()).toEqual(['1', '2', '3', '14', '15', '16']);
    });
  });

  it('daemons with shared logs receive the record, so that they know which posts are not theirs', async () => {
    const earlier = await broker.bus();
    await post(earlier, 1, 3);
    const seen = collector();
    const second = (delivery: Delivery) => held('2')(delivery);
    await earlier.startIngress({ ...seen.options(), owner: B, onDelivery: second });
    await until('the third is settled', async () => (await record())?.settled.upTo === 3);
    const stream = (await record())?.stream ?? '';
    let isElsewhere = (_: { stream: string; sequence: number }) => false;
    const bus = await broker.bus({ store: 'jetstream' });
    const taken = collector();
    const onSkip = (known: typeof isElsewhere) => {
      isElsewhere = known;
    };
    await bus.share('a').startIngress(sharedReading(taken, { owner: A, onSkip }));
    await until('the open one is delivered', () => taken.deliveries.length > 0);
    expect(taken.contents()).toEqual(['2']);
    const skipped = [1, 2, 3, 4].filter((sequence) => isElsewhere({ stream, sequence }));
    expect(skipped).toEqual([1, 3]);
    expect(isElsewhere({ stream: 'another', sequence: 3 })).toBe(false);
  });
});
