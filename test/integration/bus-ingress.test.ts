import { describe, expect, it } from 'vitest';
import { createSubjects, type Delivery } from '../../src/bus/index.ts';
import { gate } from '../support/gate.ts';
import { perTest } from '../support/lifetime.ts';
import { bytes, collecting, collector, OWNER, startBroker, text, until } from '../unit/bus/support.ts';

describe('reading posts from a real server', () => {
  const broker = perTest(() => startBroker());

  it('5,000 posts of several publishers are delivered in the order of the stream, each once', async () => {
    const daemon = await broker.bus();
    const jetstream = broker.plain.jetstream();
    const seen = collector();
    await daemon.startIngress(seen.options(null, 5_000)); // enough for all, so that the order does not depend on the limit
    const order: { sequence: number; content: string }[] = [];
    const publisher = async (name: string) => {
      for (let batch = 0; batch < 10; batch += 1) {
        await Promise.all(
          Array.from({ length: 100 }, async (_, place) => {
            const content = `${name} ${batch * 100 + place}`;
            const { seq } = await jetstream.publish(`parley.in.${name}.c${place % 7}`, content);
            order.push({ sequence: seq, content });
          }),
        );
      }
    };
    await Promise.all(['alice', 'bob', 'carol', 'dave', 'erin'].map(publisher));
    await until('all are delivered', () => seen.deliveries.length >= 5_000);
    order.sort((a, b) => a.sequence - b.sequence);
    expect(seen.contents()).toEqual(order.map((one) => one.content));
    expect(seen.deliveries.map((one) => one.position.sequence)).toEqual(order.map((one) => one.sequence));
    expect(new Set(seen.deliveries.map((one) => one.fallbackId)).size).toBe(5_000);
    await until('the position is the end', () => seen.positions.at(-1)?.sequence === 5_000);
  });

  it('the backlog includes read and unread posts that are not settled, and their age', async () => {
    const daemon = await broker.bus();
    expect(await daemon.ingressLag()).toBeNull();
    for (const n of [1, 2, 3]) await daemon.post('alice', 'demo', bytes(`${n}`));
    let settle: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const seen: Delivery[] = [];
    await daemon.startIngress({
      after: null,
      owner: OWNER,
      maxInFlight: 2,
      onDelivery: (delivery) => {
        seen.push(delivery);
        return held;
      },
      onPosition: () => undefined,
    });
    await until('two are under way', () => seen.length === 2);
    const lag = await daemon.ingressLag();
    expect(lag).toEqual({ messages: 3, oldestTakenAt: seen[0]?.takenAt });
    settle();
    await until('all are settled', async () => (await daemon.ingressLag())?.messages === 0);
    expect((await daemon.ingressLag())?.oldestTakenAt).toBeNull();
  });

  it('a delivered post has publisher, conversation, body and header', async () => {
    const daemon = await broker.bus();
    await broker.plain.jetstream().publish('parley.in.alice.demo', bytes('hello'), { msgID: 'mine-1' });
    const place = await daemon.post('bob', 'other', bytes('hi'));
    const seen = await collecting(daemon);
    await until('both came', () => seen.deliveries.length === 2);
    const [first, second] = seen.deliveries;
    expect(first).toMatchObject({ publisher: 'alice', conversation: 'demo', messageId: 'mine-1' });
    expect(text(first!.body)).toBe('hello');
    expect(second).toMatchObject({
      publisher: 'bob',
      conversation: 'other',
      messageId: null,
      position: place,
    });
  });

  it('reading resumes after the stored position, with the same fallback ids for the same posts', async () => {
    const daemon = await broker.bus();
    for (let n = 1; n <= 10; n += 1) await daemon.post('alice', 'demo', bytes(`${n}`));
    const first = await collecting(daemon);
    await until('all are settled', () => first.positions.at(-1)?.sequence === 10);
    await daemon.stopIngress();
    const second = collector();
    await daemon.startIngress(second.options(first.positions[3]));
    await until('the rest came', () => second.deliveries.length === 6);
    expect(second.contents()).toEqual(['5', '6', '7', '8', '9', '10']);
    expect(second.deliveries.map((one) => one.fallbackId)).toEqual(
      first.deliveries.slice(4).map((one) => one.fallbackId),
    );
  });

  it('reading pauses while the unsettled posts have as many bytes as allowed', async () => {
    const daemon = await broker.bus();
    for (let n = 0; n < 200; n += 1) await daemon.post('alice', 'demo', bytes('x'.repeat(10_000)));
    const open: (() => void)[] = [];
    const seen = collector(() => new Promise((resolve) => open.push(resolve)));
    await daemon.startIngress({ ...seen.options(), maxBytesInFlight: 100_000 });
    await until('the first came', () => open.length >= 10);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(open.length).toBeLessThanOrEqual(64); // one pull
    await until('all are settled', () => {
      for (const settle of open.splice(0)) settle();
      return seen.positions.at(-1)?.sequence === 200;
    });
    expect(seen.deliveries.length).toBe(200);
  });

  it('reading keeps at most maxInFlight unsettled posts, and continues as they are settled', async () => {
    const daemon = await broker.bus();
    for (let n = 1; n <= 20; n += 1) await daemon.post('alice', 'demo', bytes(`${n}`));
    const open: (() => void)[] = [];
    let most = 0;
    const seen = collector(
      () =>
        new Promise((resolve) => {
          open.push(resolve);
          most = Math.max(most, open.length);
        }),
    );
    await daemon.startIngress(seen.options(null, 3));
    for (let settled = 0; settled < 20; settled += 1) {
      await until('one is under way', () => open.length > 0);
      open.shift()?.();
    }
    await until('all are settled', () => seen.positions.at(-1)?.sequence === 20);
    expect(seen.deliveries.length).toBe(20);
    expect(most).toBeLessThanOrEqual(3);
  });

  it('the position never passes a post that is not settled', async () => {
    const daemon = await broker.bus();
    for (let n = 1; n <= 5; n += 1) await daemon.post('alice', `c${n}`, bytes(`${n}`));
    const { open: release, passed: held } = gate();
    const seen = collector((delivery) => (text(delivery.body) === '2' ? held : Promise.resolve()));
    await daemon.startIngress(seen.options());
    await until('all came', () => seen.deliveries.length === 5);
    await until('the first is settled', () => seen.positions.length > 0);
    expect(seen.positions.map((position) => position.sequence)).toEqual([1]);
    release();
    await until('all are settled', () => seen.positions.at(-1)?.sequence === 5);
  });

  it('a stop waits for running work, and delivers nothing after it', async () => {
    const daemon = await broker.bus();
    await daemon.post('alice', 'demo', bytes('1'));
    let release = () => {};
    const seen = collector(
      () =>
        new Promise((resolve) => {
          release = resolve;
        }),
    );
    await daemon.startIngress(seen.options(null, 1));
    await until('it came', () => seen.deliveries.length === 1);
    let stopped = false;
    const stopping = Promise.all([daemon.stopIngress(), daemon.stopIngress()]).then(() => {
      stopped = true;
    });
    await daemon.post('alice', 'demo', bytes('2'));
    expect(stopped).toBe(false);
    release();
    await stopping;
    expect(seen.contents()).toEqual(['1']);
    expect(seen.positions.map((position) => position.sequence)).toEqual([1]);
  });

  it('a purge removes only posts before the settled position, and keeps its margin', async () => {
    const daemon = await broker.bus({ purgeMargin: 20 });
    const manager = await broker.plain.jetstreamManager();
    const { open: release, passed: held } = gate();
    const seen = collector((delivery: Delivery) =>
      delivery.position.sequence === 51 ? held : Promise.resolve(),
    );
    for (let n = 1; n <= 100; n += 1) await daemon.post('alice', 'demo', bytes(`${n}`));
    await daemon.startIngress(seen.options(null, 200));
    const first = async () => (await manager.streams.info('PARLEY_IN')).state.first_seq;
    await until('all came', () => seen.deliveries.length === 100);
    await until('it purged', async () => (await first()) > 1);
    const whileHeld = await first();
    expect(whileHeld).toBeGreaterThan(1);
    expect(whileHeld).toBeLessThanOrEqual(31); // 50 is settled, 31…50 remain
    release();
    await until('all are settled and purged', async () => (await first()) > whileHeld);
    await daemon.stopIngress();
    expect(await first()).toBe(81);
    expect((await manager.streams.info('PARLEY_IN')).state.messages).toBe(20);
  });

  it('streams of different prefixes are separate', async () => {
    const one = await broker.bus({ subjects: createSubjects('team.one') });
    const two = await broker.bus({ subjects: createSubjects('team.two') });
    await one.post('alice', 'demo', bytes('for one'));
    const [seenByOne, seenByTwo] = [collector(), collector()];
    await one.startIngress(seenByOne.options());
    await two.startIngress(seenByTwo.options());
    await two.post('alice', 'demo', bytes('for two'));
    await until('both came', () => seenByOne.deliveries.length + seenByTwo.deliveries.length === 2);
    expect([seenByOne.contents(), seenByTwo.contents()]).toEqual([['for one'], ['for two']]);
  });

  it('a second reader at the same time is refused', async () => {
    const daemon = await broker.bus();
    await daemon.startIngress(collector().options());
    await expect(daemon.startIngress(collector().options())).rejects.toMatchObject({
      code: 'INGRESS_RUNNING',
    });
  });
});
