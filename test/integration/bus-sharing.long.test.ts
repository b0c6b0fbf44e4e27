import { describe, expect, it, vi } from 'vitest';
import type { SharedIngress, Token } from '../../src/bus/index.ts';
import type { Entry } from '../../src/conversation/index.ts';
import { batch } from '../contract/samples.ts';
import { openTestStore } from '../support/jetstream-store.ts';
import { perTest } from '../support/lifetime.ts';
import { OWNER, startBroker, until } from '../unit/bus/support.ts';

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

  it('a token is marked as delivered before, and tokens continue after the stream is deleted', async () => {
    const taken: Token[] = [];
    const a = await share('a');
    const ingress: SharedIngress = await a.startIngress({
      failureTimeoutMs: 1_000,
      after: null,
      owner: OWNER,
      maxInFlight: 10,
      onFloor: () => undefined,
      async onToken(token) {
        taken.push(token);
        if (token.isRepeated) ingress.acknowledge(token);
        else ingress.giveBack(token);
      },
    });
    const post = (n: number) => broker.plain.jetstream().publish('parley.in.alice.demo', `post ${n}`);
    await post(1);
    await until('it came again', () => taken.length >= 2);
    expect(taken.map(({ sequence, isRepeated }) => [sequence, isRepeated])).toEqual([
      [1, false],
      [1, true],
    ]);
    const manager = await broker.plain.jetstreamManager();
    await manager.consumers.delete('PARLEY_IN', 'parley');
    await post(2);
    await until('it goes on', () => taken.some(({ sequence }) => sequence === 2));
    await ingress.stop();
  });

  it('a token that was not acknowledged is delivered again after older posts were removed from the stream', async () => {
    const bus = await broker.bus({ store: 'jetstream', purgeMargin: 5, purgeEvery: 1 });
    const taken: number[] = [];
    const ingress: SharedIngress = await bus.share('a').startIngress({
      failureTimeoutMs: 3_000,
      after: null,
      owner: OWNER,
      maxInFlight: 100,
      onFloor: () => undefined,
      async onToken(token) {
        taken.push(token.sequence);
        if (token.sequence <= 20) ingress.acknowledge(token);
      },
    });
    const jetstream = broker.plain.jetstream();
    for (let n = 1; n <= 30; n++) await jetstream.publish('parley.in.alice.demo', `post ${n}`);
    const manager = await broker.plain.jetstreamManager();
    const streamed = async () => (await manager.streams.info('PARLEY_IN')).state.first_seq;
    await until('what is settled is taken out', async () => (await streamed()) === 16);
    await until('the others come again', () => taken.filter((sequence) => sequence > 20).length >= 20);
    expect(taken.filter((sequence) => sequence <= 20)).toHaveLength(20);
    expect((await manager.consumers.info('PARLEY_IN', 'parley')).ack_floor.stream_seq).toBe(20);
    await ingress.stop();
  });

  it('a daemon gets the token of a quiet publisher while tokens of another wait; another daemon gets these when it leaves', async () => {
    const first = (await broker.bus({ store: 'jetstream' })).share('a');
    const tokens: Token[] = [];
    const releases: (() => void)[] = [];
    const failureTimeoutMs = 3_000;
    const options = { failureTimeoutMs, after: null, owner: OWNER, maxInFlight: 8, onFloor: () => undefined };
    const ingress: SharedIngress = await first.startIngress({
      ...options,
      async onToken(token) {
        tokens.push(token);
        const keeping = setInterval(() => ingress.keep(token), failureTimeoutMs / 3);
        if (token.conversation === 'flood') await new Promise<void>((resolve) => releases.push(resolve));
        clearInterval(keeping);
        ingress.acknowledge(token);
      },
    });
    const jetstream = broker.plain.jetstream();
    for (let n = 1; n <= 50; n++) await jetstream.publish('parley.in.mallory.flood', `post ${n}`);
    await jetstream.publish('parley.in.bob.quiet', 'hello');
    await until('the quiet publisher has its turn', () => tokens.some(({ sequence }) => sequence === 51));
    expect(tokens.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 51]);
    const manager = await broker.plain.jetstreamManager();
    await new Promise((resolve) => setTimeout(resolve, 1.5 * failureTimeoutMs));
    expect((await manager.consumers.info('PARLEY_IN', 'parley')).num_redelivered).toBe(0);

    const stopping = ingress.stop();
    for (const release of releases) release();
    await stopping;
    expect(tokens).toHaveLength(7);
    const left: number[] = [];
    const second: SharedIngress = await (await broker.bus({ store: 'jetstream' })).share('b').startIngress({
      ...options,
      async onToken(token) {
        left.push(token.sequence);
        second.acknowledge(token);
      },
    });
    await until('the other daemon has the rest', () => left.length === 44);
    expect([...left].sort((one, other) => one - other)).toEqual(Array.from({ length: 44 }, (_, n) => n + 7));
    await second.stop();
  });

  it('more tokens are requested at once while more wait than were requested, and few again after that', async () => {
    const bus = await broker.bus({ store: 'jetstream' });
    const asked: number[] = [];
    broker.plain.subscribe('$JS.API.CONSUMER.MSG.NEXT.PARLEY_IN.parley', {
      callback: (_, message) => void asked.push(message.json<{ batch: number }>().batch),
    });
    await broker.plain.flush();
    const jetstream = broker.plain.jetstream();
    for (let n = 1; n <= 100; n++) await jetstream.publish('parley.in.alice.demo', `post ${n}`);
    let taken = 0;
    const ingress: SharedIngress = await bus.share('a').startIngress({
      failureTimeoutMs: 10_000,
      after: null,
      owner: OWNER,
      maxInFlight: 1_000,
      onFloor: () => undefined,
      async onToken(token) {
        taken += 1;
        ingress.acknowledge(token);
      },
    });
    await until('all are taken, and it has asked in vain', () => taken === 100 && asked.length >= 4);
    expect(asked.slice(0, 4)).toEqual([32, 64, 128, 32]);
    await ingress.stop();
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

      const position = { stream: 's1', sequence: 7 };
      await one.shared?.saveAttempts(position, 3);
      expect(await other.shared?.attempts(position)).toBe(3);
      expect(await other.shared?.attempts({ stream: 's2', sequence: 7 })).toBeNull(); // a new instance of the stream
      await other.shared?.saveAttempts(position, null);
      expect(await one.shared?.attempts(position)).toBeNull();
    } finally {
      await Promise.all([one.close(), other.close()]);
      await broker.stop();
    }
  });
});
