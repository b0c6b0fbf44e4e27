import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { StreamConsumer } from '../../src/bus/nats/ingress/stored-posts.ts';
import { ParleyError } from '../../src/kernel/index.ts';
import { perTest } from '../support/lifetime.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { bytes, collecting, collector, startBroker, text, until } from '../unit/bus/support.ts';

describe('reading posts during failures', () => {
  const broker = perTest(() => startBroker());

  it('reading begins at the first post if the position is of an earlier stream, or after its end', async () => {
    const daemon = await broker.bus();
    const { stream } = await daemon.post('alice', 'demo', bytes('1'));
    for (const after of [
      { stream: '2020-01-01T00:00:00Z', sequence: 1 },
      { stream, sequence: 7 },
    ]) {
      const seen = collector();
      await daemon.startIngress(seen.options(after));
      await until('it came', () => seen.positions.at(-1)?.sequence === 1);
      expect(seen.contents()).toEqual(['1']);
      const lost = after.stream === stream ? [{ stream, sequence: 0 }] : []; // the stored position is replaced at once
      expect(seen.positions).toEqual([...lost, { stream, sequence: 1 }]);
      await daemon.stopIngress();
    }
  });

  it('messages that are deleted while the stream is read to its end are not awaited', async () => {
    const daemon = await broker.bus();
    for (let n = 1; n <= 3; n += 1) await daemon.post('alice', `c${n}`, bytes(`${n}`));
    const { plain: connection } = broker;
    const manager = await connection.jetstreamManager();
    const publish = vi.spyOn(connection, 'publish');
    for (const deleted of [[2, 3], [1]]) {
      const consumer = await StreamConsumer.open(connection, manager, 'PARLEY_IN', 1);
      expect(consumer.pending).toBe(deleted.length === 2 ? 3 : 1);
      for (const sequence of deleted) await manager.streams.deleteMessage('PARLEY_IN', sequence);
      const read: number[] = [];
      await consumer.toEnd(({ sequence }) => void read.push(sequence));
      consumer.close();
      expect(read).toEqual(deleted.includes(1) ? [] : [1]);
    }
    const pulls = publish.mock.calls.filter(([subject]) => subject.includes('.MSG.NEXT.'));
    const waits = pulls.map(([, request]) => JSON.parse(String(request)).expires / 1e6);
    expect(waits).toEqual([1_000, 1_000]);
  });

  it('a rejected post stays unsettled and is reported', async () => {
    const { bus: daemon, lines } = await broker.recording();
    for (let n = 1; n <= 3; n += 1) await daemon.post('alice', `c${n}`, bytes(`${n}`));
    const seen = collector(async (delivery) => {
      if (text(delivery.body) === '2') throw new Error('disk full');
    });
    await daemon.startIngress(seen.options());
    await until('all came', () => seen.deliveries.length === 3);
    await daemon.stopIngress();
    expect(seen.positions.map((position) => position.sequence)).toEqual([1]);
    expect(
      lines.some(({ level, message }) => level === 'error' && /could not be processed/.test(message)),
    ).toBe(true);
  });

  it.each([
    ['an outage', new ParleyError('STORE_UNAVAILABLE', 'no server answers'), 'warn'],
    ['a bug', new TypeError('x is undefined'), 'error'],
  ])('a post that failed with %s is logged with a stack only if it is a bug', async (_, thrown, level) => {
    const { bus: daemon, lines } = await broker.recording();
    await daemon.post('alice', 'demo', bytes('1'));
    const seen = collector(() => Promise.reject(thrown));
    await daemon.startIngress(seen.options());
    const told = () => lines.filter(({ message }) => message.includes('could not be processed'));
    await until('it is logged', () => told().length > 0);
    await daemon.stopIngress();
    const outage = { sequence: 1, code: 'STORE_UNAVAILABLE', reason: 'no server answers' };
    const fields = level === 'warn' ? outage : { sequence: 1, err: thrown };
    expect(told()).toEqual([{ level, fields, message: expect.stringContaining('after a restart') }]);
  });

  it('a stop reports the number of waiting posts once, and not each of them', async () => {
    const { bus: daemon, lines } = await broker.recording();
    for (let n = 1; n <= 4; n += 1) await daemon.post('alice', `c${n}`, bytes(`${n}`));
    const stopping = new AbortController();
    const seen = collector(async (delivery) => {
      if (text(delivery.body) === '1') return;
      await new Promise((_, reject) => stopping.signal.addEventListener('abort', reject));
    });
    await daemon.startIngress(seen.options(null, 3));
    await until('all came', () => seen.deliveries.length === 4);
    const before = lines.length;
    const stopped = daemon.stopIngress();
    stopping.abort();
    await stopped;
    expect(lines.slice(before)).toEqual([
      { level: 'info', fields: { posts: 3 }, message: 'unsettled posts are read again at the next start' },
    ]);
  });

  it('a stop reports nothing if no posts wait', async () => {
    const { bus: daemon, lines } = await broker.recording();
    await daemon.post('alice', 'demo', bytes('1'));
    const seen = await collecting(daemon);
    await until('it came', () => seen.positions.length === 1);
    await daemon.stopIngress();
    expect(lines.filter(({ message }) => message.includes('next start'))).toEqual([]);
  });

  it('reading survives the deletion of its consumer without loss or repetition', async () => {
    const daemon = await broker.bus();
    const manager = await broker.plain.jetstreamManager();
    const seen = await collecting(daemon);
    for (let round = 0; round < 3; round += 1) {
      await daemon.post('alice', 'demo', bytes(`${round}`));
      await until('it came', () => seen.deliveries.length === round + 1);
      const consumers = await manager.consumers.list('PARLEY_IN').next();
      for (const { name } of consumers) await manager.consumers.delete('PARLEY_IN', name);
    }
    await daemon.post('alice', 'demo', bytes('last'));
    await until('it goes on', () => seen.deliveries.length === 4);
    expect(seen.contents()).toEqual(['0', '1', '2', 'last']);
  });

  it('a deleted stream is created again and read from its start', async () => {
    const daemon = await broker.bus();
    const manager = await broker.plain.jetstreamManager();
    const seen = await collecting(daemon);
    const before = await daemon.post('alice', 'demo', bytes('old'));
    await until('it came', () => seen.deliveries.length === 1);
    await manager.streams.delete('PARLEY_IN');
    await until('it is created again', () =>
      manager.streams.info('PARLEY_IN').then(
        () => true,
        () => false,
      ),
    );
    // The server lists a new stream a moment before it receives its messages.
    await until('a post is taken', () =>
      broker.plain
        .jetstream()
        .publish('parley.in.alice.demo', 'new')
        .then(
          () => true,
          () => false,
        ),
    );
    await until('the new post came', () => seen.deliveries.length === 2);
    expect(seen.deliveries[1]?.position.sequence).toBe(1);
    expect(seen.deliveries[1]?.position.stream).not.toBe(before.stream);
  });

  it('no accepted post is lost if the server is killed while posts arrive', async () => {
    const daemon = await broker.bus();
    const seen = await collecting(daemon);
    const accepted: { sequence: number; content: string }[] = [];
    let stop = false;
    const posting = Array.from({ length: 4 }, async (_, publisher) => {
      for (let n = 0; !stop; n += 1) {
        const content = `${publisher}:${n}`;
        await broker.plain
          .jetstream()
          .publish(`parley.in.p${publisher}.demo`, content, { timeout: 500 })
          .then(({ seq }) => accepted.push({ sequence: seq, content }))
          .catch(() => undefined);
      }
    });
    for (let crash = 0; crash < 3; crash += 1) {
      const before = accepted.length;
      await until('posts are accepted', () => accepted.length > before + 200);
      await broker.server.kill9();
      await broker.server.restart();
    }
    const before = accepted.length;
    await until('posts are accepted again', () => accepted.length > before + 200);
    stop = true;
    await Promise.all(posting);
    const last = Math.max(...accepted.map((one) => one.sequence));
    await until('the last one is settled', () => (seen.positions.at(-1)?.sequence ?? 0) >= last);
    const delivered = new Map(seen.deliveries.map((one) => [one.position.sequence, text(one.body)]));
    const missing = accepted.filter((one) => delivered.get(one.sequence) !== one.content);
    expect(missing).toEqual([]);
    const sequences = seen.deliveries.map((one) => one.position.sequence);
    expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
    expect(new Set(sequences).size).toBe(sequences.length);
  });

  it('reading restarts at the first post if the server returns with an older store that continued differently', async () => {
    const { bus: daemon, lines } = await broker.recording();
    for (let n = 1; n <= 3; n += 1) await daemon.post('alice', 'demo', bytes(`${n}`));
    await broker.server.kill9();
    const other = await startNatsServer();
    await other.kill9();
    const store = (of: TestNatsServer) => join(of.directory, 'store');
    await cp(store(broker.server), store(other), { recursive: true });
    await broker.server.restart();
    const seen = await collecting(daemon);
    for (const content of ['4', '5']) await daemon.post('alice', 'demo', bytes(content));
    await until('all came', () => seen.deliveries.length === 5);
    await other.restart();
    const elsewhere = await openNats({ url: other.url });
    for (const content of ['4b', '5b', '6b']) {
      await elsewhere.jetstream().publish('parley.in.bob.demo', content);
    }
    await elsewhere.close();
    await Promise.all([other.kill9(), broker.server.kill9()]);
    await rm(store(broker.server), { recursive: true });
    await cp(store(other), store(broker.server), { recursive: true });
    await other.stop();
    await broker.server.restart();
    await until('everything came again', () => seen.deliveries.length === 11);
    expect(seen.contents().slice(5)).toEqual(['1', '2', '3', '4b', '5b', '6b']);
    expect(new Set(seen.deliveries.map((one) => one.fallbackId)).size).toBe(8);
    expect(lines.some(({ message }) => /another one than before/.test(message))).toBe(true);
  });
});
