import type { NatsError } from 'nats';
import { describe, expect, it } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { collecting, collector, type PostingBus, startBroker, until } from '../unit/bus/support.ts';

describe('the capacity of the ingress stream', () => {
  const broker = perTest(() => startBroker());

  const ROOM = { ingressBytes: 100_000 };
  const large = () => new Uint8Array(20_000).fill(120);
  const isClosed = (error: NatsError) => error.api_error?.err_code === 10_054;
  const taken = (daemon: PostingBus) =>
    until('a post is taken', () =>
      daemon.post('alice', 'demo', large()).then(
        () => true,
        () => false,
      ),
    );
  const refused = (daemon: PostingBus) =>
    until('a post is refused', () => daemon.post('alice', 'demo', large()).then(() => false, isClosed));
  const streamNow = async () => (await broker.plain.jetstreamManager()).streams.info('PARLEY_IN');

  it('large settled posts do not exhaust the ingress stream, even if they are fewer than the purge margin (CAPACITY-5)', async () => {
    const daemon = await broker.bus(ROOM);
    const seen = await collecting(daemon);
    for (let n = 0; n < 20; n += 1) await taken(daemon);
    await until('all are settled', () => seen.positions.at(-1)?.sequence === 20);
    await until('it is freed', async () => (await streamNow()).state.bytes < ROOM.ingressBytes);
    await daemon.stopIngress();
    expect((await streamNow()).state.messages).toBeGreaterThan(0); // never purged to its end
  });

  it('freeing the ingress stream removes no unsettled post (CAPACITY-4)', async () => {
    const daemon = await broker.bus(ROOM);
    for (let n = 0; n < 4; n += 1) await daemon.post('alice', 'demo', large());
    const seen = collector(({ position }) =>
      position.sequence === 2 ? Promise.reject(new Error('not now')) : Promise.resolve(),
    );
    await daemon.startIngress(seen.options());
    await until('all came', () => seen.deliveries.length === 4);
    await daemon.stopIngress();
    expect((await streamNow()).state.first_seq).toBeLessThanOrEqual(2);
  });

  itLong('the ingress stream is freed when the unsettled posts that filled it are settled', async () => {
    const daemon = await broker.bus(ROOM);
    let settle: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const seen = collector(() => held);
    await daemon.startIngress(seen.options());
    for (let n = 0; n < 5; n += 1) await daemon.post('alice', 'demo', large());
    await refused(daemon);
    settle();
    await taken(daemon);
  });

  it('unsettled posts are never dropped to free the ingress stream, also if small posts fill it (CAPACITY-2)', async () => {
    const daemon = await broker.bus({ ingressBytes: 10_000 });
    const seen = collector(() => new Promise(() => undefined)); // nothing is ever settled
    await daemon.startIngress(seen.options());
    let accepted = 0;
    for (let isFull = false; !isFull; ) {
      if (accepted % 500 === 0) expect((await streamNow()).state.first_seq).toBeLessThan(2);
      await daemon.post('alice', 'demo', Buffer.from('{}')).then(
        () => {
          accepted += 1;
        },
        (error: NatsError) => {
          isFull = isClosed(error);
          if (!isFull) throw error;
        },
      );
    }
    const { state } = await streamNow();
    expect(state.bytes).toBeGreaterThan(10_000);
    expect([state.first_seq, state.messages]).toEqual([1, accepted]);
  });

  itLong('the number of posts is limited, too: settled ones are purged when it is near', async () => {
    const daemon = await broker.bus();
    await (await broker.plain.jetstreamManager()).streams.update('PARLEY_IN', { max_msgs: 10 });
    await collecting(daemon);
    for (let n = 0; n < 30; n += 1) await taken(daemon);
    await daemon.stopIngress();
    expect((await streamNow()).state.last_seq).toBe(30);
  });

  itLong('an ingress stream that settled posts fill is freed at the start', async () => {
    const daemon = await broker.bus(ROOM);
    for (let n = 0; n < 4; n += 1) await daemon.post('alice', 'demo', large());
    // As the last daemon leaves it after closing it.
    await (await broker.plain.jetstreamManager()).streams.update('PARLEY_IN', { max_msg_size: 1 });
    await expect(daemon.post('alice', 'demo', large())).rejects.toSatisfy(isClosed);
    const seen = collector();
    await daemon.startIngress(seen.options({ stream: (await streamNow()).created, sequence: 4 }));
    await taken(daemon);
    await until('it came', () => seen.deliveries.length === 1);
  });
});
