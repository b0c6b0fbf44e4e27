import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { collector, recordingLog, sharedReading, startBroker, text, until } from '../unit/bus/support.ts';
import { A, B, settledOn, warnings } from './settled-support.ts';

describe('the record of settled posts on a real server', () => {
  const broker = perTest(() => startBroker());

  const { post, record, settledUpTo, stopped, held } = settledOn(broker);

  it('another store skips settled posts, and reports how many are still in the stream', async () => {
    const { bus, lines } = await broker.recording();
    await post(bus, 1, 10);
    await stopped(bus, A, 10);
    const manager = await broker.plain.jetstreamManager();
    await manager.streams.purge('PARLEY_IN', { seq: 4 });
    await manager.streams.deleteMessage('PARLEY_IN', 6);
    await post(bus, 11, 12);
    const seen = collector();
    await bus.startIngress({ ...seen.options(), owner: B });
    await until('the new ones came', () => seen.deliveries.length === 2);
    expect(seen.contents()).toEqual(['11', '12']);
    expect(warnings(lines)).toEqual([{ posts: 6, by: 'store a', stream: 'PARLEY_IN' }]);
    expect(seen.positions[0]).toMatchObject({ sequence: 10 });
    await settledUpTo(12);
    expect(await record()).toMatchObject({ by: B, before: { upTo: 10, open: [] } });
  });

  it('the store that settled posts continues from its own position', async () => {
    const { bus, lines } = await broker.recording();
    await post(bus, 1, 5);
    await stopped(bus, A, 5);
    const seen = collector();
    const life = (await (await broker.plain.jetstreamManager()).streams.info('PARLEY_IN')).created;
    await bus.startIngress({ ...seen.options({ stream: life, sequence: 3 }), owner: A });
    await until('its own come again', () => seen.deliveries.length === 2);
    expect(seen.contents()).toEqual(['4', '5']);
    expect(warnings(lines)).toEqual([]);
  });

  it('the record begins with the position of a store that is older than the record', async () => {
    const bus = await broker.bus();
    await post(bus, 1, 5);
    const life = (await (await broker.plain.jetstreamManager()).streams.info('PARLEY_IN')).created;
    const first = collector();
    await bus.startIngress({ ...first.options({ stream: life, sequence: 5 }), owner: A });
    await settledUpTo(5);
    await bus.stopIngress();
    expect(await record()).toMatchObject({ by: A, before: null });
    await post(bus, 6, 6);
    const second = collector();
    await bus.startIngress({ ...second.options(), owner: B });
    await until('the new one came', () => second.deliveries.length > 0);
    expect(second.contents()).toEqual(['6']);
  });

  it('the next store reads what was never settled, and skips what was settled after it', async () => {
    const bus = await broker.bus();
    await post(bus, 1, 6);
    const first = collector(held('3'));
    await bus.startIngress({ ...first.options(), owner: A });
    await settledUpTo(6);
    expect((await record())?.settled).toEqual({ upTo: 6, open: [3] });

    const other = await broker.bus();
    const second = collector();
    await other.startIngress({ ...second.options(), owner: B });
    await until('it is settled', () => second.positions.at(-1)?.sequence === 6);
    expect(second.contents()).toEqual(['3']);
    await until('it is recorded', async () => (await record())?.by.id === 'store-b');
    await other.stopIngress();

    // Without a position of its own, as after a crash before it was saved.
    const again = collector();
    await other.startIngress({ ...again.options(), owner: B });
    await until('its own comes again', () => again.positions.at(-1)?.sequence === 6);
    expect(again.contents()).toEqual(['3']);
  });

  it('a replay delivers settled posts again, and no later start takes the record back', async () => {
    const bus = await broker.bus();
    await post(bus, 1, 6);
    await stopped(bus, A, 6);
    const seen = collector(held('4'));
    await bus.startIngress({ ...seen.options(), owner: B, isReplay: true });
    await until('all came', () => seen.deliveries.length === 6);
    expect(seen.contents()).toEqual(['1', '2', '3', '4', '5', '6']);
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(await record()).toMatchObject({ by: A, settled: { upTo: 6, open: [] } });
  });

  it('the record does not apply to a stream that was created again, or that has other posts at the same sequences', async () => {
    const bus = await broker.bus();
    await post(bus, 1, 6);
    await stopped(bus, A, 6);
    const manager = await broker.plain.jetstreamManager();
    const recorded = await record();
    await manager.streams.delete('PARLEY_IN');
    const fresh = await broker.bus();
    await post(fresh, 7, 8);
    const seen = collector();
    await fresh.startIngress({ ...seen.options(), owner: B });
    await until('all of the new stream came', () => seen.deliveries.length === 2);
    expect(seen.contents()).toEqual(['7', '8']);
    await settledUpTo(2);
    await fresh.stopIngress();

    const { created } = await manager.streams.info('PARLEY_IN');
    const lost = {
      ...recorded,
      stream: created,
      last: { sequence: 2, time: '1' },
      settled: { upTo: 2, open: [] },
    };
    await broker.plain.jetstream().publish('parley.settled', JSON.stringify(lost));
    const again = collector();
    await fresh.startIngress({ ...again.options(), owner: B });
    await until('none is passed over', () => again.deliveries.length === 2);
  });

  itLong('the record applies to a stream of which a killed server forgot the settings alone', async () => {
    const bus = await broker.bus();
    await post(bus, 1, 3);
    await stopped(bus, A, 3);
    const { stream } = (await record()) ?? {};
    await broker.server.kill9();
    await truncate(join(broker.server.directory, 'store/jetstream/$G/streams/PARLEY_IN/meta.inf'));
    await broker.server.restart();
    const next = await broker.bus();
    await post(next, 4, 4);
    const own = { stream: `${stream}`, sequence: 2 };
    expect(await next.ingressStart({ after: null, owner: B })).toMatchObject({ old: null });
    const { after, old } = await next.ingressStart({ after: own, owner: A });
    expect([old, after.sequence, after.stream === stream]).toEqual([null, 2, false]);
    const first = collector();
    await next.startIngress({ ...first.options(own), owner: A });
    await until('what is after its position came', () => first.deliveries.length === 2);
    expect(first.contents()).toEqual(['3', '4']);
    await settledUpTo(4);
    await next.stopIngress();
    await post(next, 5, 5);
    const second = collector();
    await next.startIngress({ ...second.options(), owner: B });
    await until('what is not settled came', () => second.deliveries.length === 1);
    expect(second.contents()).toEqual(['5']);
  });

  itLong('the record is passed from daemons with shared logs to one with its own, and back', async () => {
    const { log, lines } = recordingLog();
    const sharing = async () => {
      const bus = await broker.bus({ store: 'jetstream', log });
      const seen = collector(async ({ body }) => {
        if (text(body) === '3') throw new Error('not now');
      });
      await bus.share('a').startIngress(sharedReading(seen, { owner: A }));
      return { bus, seen };
    };
    const first = await sharing();
    await post(first.bus, 1, 4);
    await until('4 is recorded', async () => (await record())?.settled.upTo === 4);
    expect(await record()).toMatchObject({ by: A, settled: { upTo: 4, open: [3] }, reader: 'a' });
    await first.bus.close();

    const alone = await broker.bus({ log });
    const seen = collector(held('5'));
    await post(alone, 5, 6);
    await alone.startIngress({ ...seen.options(), owner: B });
    await until('the rest came', () => seen.deliveries.length === 3);
    expect(seen.contents()).toEqual(['3', '5', '6']);
    expect(warnings(lines)).toMatchObject([{ posts: 3, by: A.name }]);
    await until('6 is recorded', async () => (await record())?.settled.upTo === 6);

    const second = await sharing();
    await post(second.bus, 7, 7);
    await until('the new one was delivered', () => second.seen.contents().includes('7'));
    expect(second.seen.contents()).toEqual(['5', '7']);
    expect(warnings(lines).at(-1)).toMatchObject({ by: B.name });
  });

  itLong(
    'the record is written again if its stream was deleted, and after an outage of the server',
    async () => {
      const bus = await broker.bus();
      const seen = collector();
      await bus.startIngress({ ...seen.options(), owner: A });
      await post(bus, 1, 1);
      await settledUpTo(1);
      await (await broker.plain.jetstreamManager()).streams.delete('PARLEY_SETTLED');
      await post(bus, 2, 2);
      await settledUpTo(2);
      await broker.server.kill9();
      await broker.server.restart();
      await post(bus, 3, 3);
      await settledUpTo(3);
    },
  );

  itLong('the record is written soon after a write that the server answered late', async () => {
    const bus = await broker.bus();
    const thaw = () => setTimeout(() => broker.server.thaw(), 1_000);
    const seen = collector(async ({ position }) => {
      if (position.sequence > 1) return;
      broker.server.freeze();
      thaw();
    });
    await bus.startIngress({ ...seen.options(), owner: A });
    await post(bus, 1, 1);
    await settledUpTo(1);
    await post(bus, 2, 2);
    await settledUpTo(2);
  });

  itLong('the record is written soon after an outage during which it was due', async () => {
    const bus = await broker.bus();
    const seen = collector(() => broker.server.kill9());
    await bus.startIngress({ ...seen.options(), owner: A });
    await post(bus, 1, 1);
    await until('the server is away', () => seen.deliveries.length === 1);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await broker.server.restart();
    await settledUpTo(1);
  });

  it('a record that cannot be written is reported once, and reading continues', async () => {
    const { bus, lines } = await broker.recording();
    const manager = await broker.plain.jetstreamManager();
    await manager.streams.update('PARLEY_SETTLED', { max_msg_size: 10 });
    const seen = collector();
    await bus.startIngress({ ...seen.options(), owner: A });
    await post(bus, 1, 3);
    await until('all are settled', () => seen.positions.at(-1)?.sequence === 3);
    const told = () => lines.filter(({ message }) => message.includes('cannot be saved on the server'));
    await until('it is reported', () => told().length > 0);
    await post(bus, 4, 4);
    await manager.streams.update('PARLEY_SETTLED', { max_msg_size: -1 });
    await settledUpTo(4);
    expect(told()).toHaveLength(1);
  });
});
