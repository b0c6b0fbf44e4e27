import { describe, expect, it, vi } from 'vitest';
import type { Entry } from '../../src/conversation/index.ts';
import { batch } from '../contract/samples.ts';
import { openTestStore } from '../support/jetstream-store.ts';
import { perTest } from '../support/lifetime.ts';
import { collector, OWNER, recordingLog, sharedReading, startBroker, until } from '../unit/bus/support.ts';
import { settledOn } from './settled-support.ts';

/** What daemons with shared work need of the bus, on a real server. */
describe('a daemon among others', () => {
  const broker = perTest(() => startBroker());
  const share = async (daemon: string) => (await broker.bus({ store: 'jetstream' })).share(daemon);

  it('a request to another daemon is answered, or reports that it is not there, or that it does not answer', async () => {
    const [a, b] = [await share('a'), await share('b')];
    await b.peers.listen(async (verb, body) => {
      if (verb === 'fails') throw new Error('no');
      return verb === 'greet' ? { heard: body } : undefined;
    });
    expect(await a.peers.ask('b', 'greet', { hello: 1 }, 5_000)).toEqual({
      kind: 'answered',
      body: { heard: { hello: 1 } },
    });
    expect(await a.peers.ask('c', 'greet', {}, 5_000)).toEqual({ kind: 'no-responder' });
    for (const verb of ['fails', 'unknown'])
      expect(await a.peers.ask('b', verb, {}, 100)).toEqual({ kind: 'silent' });
    broker.plain.publish('parley.control.b.greet', 'no JSON'); // ends nothing
    expect(await a.peers.ask('b', 'greet', 2, 5_000)).toEqual({ kind: 'answered', body: { heard: 2 } });
  });

  it('a daemon receives its own broadcasts, and detects that its connection is lost', async () => {
    const a = await share('a');
    const heard: unknown[] = [];
    const lost = vi.fn();
    a.peers.onLost(lost);
    await a.peers.listen(async (verb, body) => void heard.push([verb, body]));
    a.peers.tellAll('alive', { daemon: 'a' });
    await until('it hears itself', () => heard.length === 1);
    expect(heard).toEqual([['alive', { daemon: 'a' }]]);
    await broker.server.kill9();
    await until('it learns of the loss', () => lost.mock.calls.length > 0);
    await broker.server.restart();
    await until('it hears itself again', () => {
      a.peers.tellAll('alive', { daemon: 'a' }); // lost, as long as there is no connection
      return heard.length > 1;
    });
  });

  it('a request does not wait for its answer after its connection is lost', async () => {
    const [a, b] = [await share('a'), await share('b')];
    const asked = vi.fn(() => new Promise(() => {}));
    await b.peers.listen(asked);
    const hour = 3_600_000;
    const asking = a.peers.ask('b', 'holds', {}, hour);
    await until('it was asked', () => asked.mock.calls.length > 0);
    await broker.server.kill9();
    expect(await asking).toEqual({ kind: 'silent' });
  });

  it('a daemon receives all messages of a conversation from any daemon, and none from others', async () => {
    const [a, other] = [await share('a'), await broker.bus({ store: 'jetstream' })];
    const store = await openTestStore(broker.server.url);
    const entries: Entry[] = [];
    const live: [string, unknown][] = [];
    const following = a.follow('demo', {
      entries: (found) => void entries.push(...found),
      live: (agent, chunk) => void live.push([agent, chunk]),
    });
    await following.ready;
    // No append. Acknowledged, as it could otherwise be published twice around the one below.
    await broker.plain.jetstream().publish('parley.log.demo', JSON.stringify({ entries: batch(9, 1) }));
    broker.plain.publish('parley.live.demo.pm', 'no JSON');
    const { log } = await store.open('demo');
    await log.append(0, batch(0, 2));
    await (await store.open('elsewhere')).log.append(0, batch(0, 1));
    const chunk = { turnId: 't', call: 1, n: 0, type: 'text', delta: 'hi' } as never;
    other.publishLive('demo', 'pm', chunk);
    await until('both are heard', () => entries.length >= 2 && live.length >= 1);
    expect(entries).toEqual(batch(0, 2));
    expect(live).toEqual([['pm', chunk]]);
    following.stop();
    await log.append(2, batch(2, 1));
    await broker.plain.flush();
    expect(entries).toHaveLength(2);
    await store.close();
  });

  /** Two daemons; `dead` names those that count as ended. */
  async function two() {
    const dead = new Set<string>();
    const { log, lines } = recordingLog();
    const start = async (daemon: string, settle?: Parameters<typeof collector>[0]) => {
      const bus = await broker.bus({ store: 'jetstream', log });
      const seen = collector(settle);
      const [claims, floors]: [(string | null)[], number[]] = [[], []];
      const onBegin = vi.fn(async () => undefined);
      const options = sharedReading(seen, {
        daemon,
        mayTakeOver: async (other) => dead.has(other),
        onClaim: (from) => void claims.push(from),
        onFloor: ({ sequence }) => void floors.push(sequence),
        onBegin,
      });
      return { bus, seen, claims, floors, onBegin, ingress: await bus.share(daemon).startIngress(options) };
    };
    return { dead, start, lines };
  }
  const post = (n: number) => broker.plain.jetstream().publish('parley.in.alice.demo', `${n}`);
  const record = () => settledOn(broker).record();

  it('one daemon reads; another one knows what is settled, and reads when that one stops', async () => {
    const { start } = await two();
    const [a, b] = [await start('a'), await start('b')];
    for (let n = 1; n <= 3; n++) await post(n);
    await until('the floor is known', () => b.floors.at(-1) === 3);
    expect([a.seen.contents(), b.seen.contents()]).toEqual([['1', '2', '3'], []]);
    expect(await record()).toMatchObject({ reader: 'a', by: OWNER });
    expect([await a.ingress.holdsClaim(), await b.ingress.holdsClaim()]).toEqual([true, false]);
    expect(await b.bus.ingressLag()).toEqual({ messages: 0, oldestTakenAt: null });
    await a.ingress.stop();
    await post(4);
    await until('the other one reads', () => b.seen.contents().includes('4'));
    expect([b.seen.contents(), b.claims]).toEqual([['4'], [null]]);
    await b.ingress.stop();
    expect(await record()).toMatchObject({ reader: null, settled: { upTo: 4 } });
  });

  it('a daemon that does not read learns after an outage that the stream may have lost posts', async () => {
    const { start } = await two();
    const [, b] = [await start('a'), await start('b')];
    b.onBegin.mockClear();
    await broker.server.kill9();
    await broker.server.restart();
    await until('it looks', () => b.onBegin.mock.calls.length > 0);
    await b.ingress.ready();
    expect(b.onBegin).toHaveBeenCalledTimes(1);
  });

  it('a daemon whose claim was taken settles nothing more, and may not refuse', async () => {
    const { dead, start, lines } = await two();
    const release: (() => void)[] = [];
    const a = await start('a', () => new Promise((resolve) => release.push(resolve)));
    await post(1);
    await until('it is under way', () => release.length === 1);
    dead.add('a');
    const b = await start('b');
    await until('the other one reads', () => b.seen.contents().includes('1'));
    expect(b.claims).toEqual(['a']);
    expect(await a.ingress.holdsClaim()).toBe(false);
    for (const one of release) one();
    await post(2);
    await until('it is settled', async () => (await record())?.settled.upTo === 2);
    expect([a.seen.contents(), b.seen.contents()]).toEqual([['1'], ['1', '2']]);
    expect(await record()).toMatchObject({ reader: 'b' });
    expect(lines.map(({ message }) => message)).toContain('another daemon reads the ingress stream by now');
    await Promise.all([a.ingress.stop(), b.ingress.stop()]);
  });

  it('a post stays refused, with one letter, when its reader is killed between the letter and the settlement', async () => {
    const { dead, start } = await two();
    const refuse = (n: number) =>
      post(n).then(() => until('its letter is stored', async () => (await letters()) === n));
    const letters = async () =>
      (await (await broker.plain.jetstreamManager()).streams.info('PARLEY_DEAD')).state.messages;
    const a: Awaited<ReturnType<typeof start>> = await start('a', async (delivery) => {
      if (!dead.has('a')) await a.bus.publishDead(delivery, { code: 'X', message: 'x' }, '');
      await new Promise(() => undefined); // killed
    });
    await refuse(1);
    await refuse(2);
    dead.add('a');
    const b = await start('b');
    await post(3);
    await until('all are settled', async () => (await record())?.settled.upTo === 3);
    expect([b.seen.contents(), b.claims, await letters()]).toEqual([['3'], ['a'], 2]);
    await b.ingress.stop();
  });

  it('of daemons that find a dead reader at once, one reads; and they read on when the record was deleted', async () => {
    const { dead, start } = await two();
    const a = await start('a');
    await post(1);
    await until('it is recorded', async () => (await record())?.settled.upTo === 1);
    const others = await Promise.all(['b', 'c', 'd'].map((daemon) => start(daemon)));
    dead.add('a');
    const readers = () => others.filter(({ claims }) => claims.length > 0);
    await until('one reads', () => readers().length > 0);
    await post(2);
    await until('it is settled', async () => (await record())?.settled.upTo === 2);
    expect(readers()).toHaveLength(1);
    await (await broker.plain.jetstreamManager()).streams.delete('PARLEY_SETTLED');
    await post(3);
    await until('it is recorded again', async () => (await record())?.settled.upTo === 3);
    await Promise.all([a, ...others].map(({ ingress }) => ingress.stop()));
  });
});

describe('what several daemons read of a store', () => {
  it('a store reports the newest append, whatever others publish after it, and marks of posts that may have ended one', async () => {
    const broker = await startBroker();
    const [one, other] = await Promise.all([
      openTestStore(broker.server.url),
      openTestStore(broker.server.url),
    ]);
    try {
      const standing = { claim: { daemon: 'a', epoch: 2 }, hasOutstandingWork: true };
      expect(await other.shared?.newest('demo')).toBeNull();
      await (await one.open('demo')).log.append(0, batch(0, 1), standing);
      await broker.plain.jetstream().publish('parley.log.demo', 'not an append');
      expect(await other.shared?.newest('demo')).toEqual({ status: standing, sequence: 1, length: 1 });
      expect((await other.shared?.all())?.get('demo')).toEqual({ status: null, sequence: 2, length: null });

      const row = { id: 'demo', title: null, phase: 'chat', mode: 'default', activeAgent: null, length: 1 };
      await one.saveRow({ ...row, updatedAt: '', tokens: 0, usd: 0 } as never);
      expect(await other.rows()).toMatchObject([row]);
      await other.shared?.forgetRow('demo');
      expect(await one.rows()).toEqual([]);
    } finally {
      await Promise.all([one.close(), other.close()]);
      await broker.stop();
    }
  });
});
