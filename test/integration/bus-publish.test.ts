import { setTimeout as pause } from 'node:timers/promises';
import { headers } from 'nats';
import { describe, expect, it, vi } from 'vitest';
import { createSubjects, type Delivery } from '../../src/bus/index.ts';
import { createNatsBus, openNats } from '../../src/bus/nats/index.ts';
import type { Entry, LiveChunk } from '../../src/conversation/index.ts';
import { perTest } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { bytes, collecting, collector, recordingLog, startBroker, text, until } from '../unit/bus/support.ts';

/** As the ingress stream delivered it, at any sequence. */
const delivery = (publisher: string, conversation: string, body: Uint8Array, sequence = 7): Delivery => ({
  position: { stream: 's1', sequence },
  takenAt: 0,
  fallbackId: 'in-7-abc',
  messageId: null,
  ...{ publisher, conversation, body },
});

describe('what the daemon publishes', () => {
  const broker = perTest(() => startBroker('max_payload: 65536'));
  const note = (index: number, content: string): Entry => ({
    index,
    id: `e${index}`,
    createdAt: '2026-11-21T20:39:00.000Z',
    type: 'note',
    author: { kind: 'system', id: 'parley', name: 'Parley' },
    content,
  });

  it('followers receive entries in messages that fit, and live chunks', async () => {
    const daemon = await broker.bus();
    const seen: { subject: string; value: { entries?: Entry[] } }[] = [];
    broker.plain.subscribe('parley.>', {
      callback: (_error, message) => seen.push({ subject: message.subject, value: message.json() }),
    });
    await broker.plain.flush();
    const entries = [
      note(0, 'a'.repeat(40_000)),
      note(1, 'b'.repeat(40_000)),
      note(2, 'c'.repeat(70_000)),
      note(3, 'd'),
    ];
    daemon.publishEntries('demo', entries);
    const chunk: LiveChunk = { turnId: 't', call: 'c', n: 0, type: 'text', delta: 'hi' };
    daemon.publishLive('demo', 'dev', chunk);
    daemon.publishLive('demo', 'dev', { ...chunk, n: 1, delta: 'x'.repeat(70_000) });
    daemon.publishLive('*', '>', chunk);
    daemon.publishEntries('a.>', entries);
    daemon.publishLive('demo', 'dev', { ...chunk, n: 2 });
    await until('the last chunk came', () => seen.some(({ value }) => (value as { n?: number }).n === 2));
    const feed = seen.filter(({ subject }) => subject === 'parley.log.demo');
    expect(feed.map(({ value }) => value.entries?.map((entry) => entry.index))).toEqual([[0], [1, 3]]);
    const live = seen.filter(({ subject }) => subject === 'parley.live.demo.dev');
    expect(live.map(({ value }) => value)).toEqual([chunk, { ...chunk, n: 2 }]);
    expect(seen).toHaveLength(4);
  });

  it('what is published just before the bus closes still arrives, in order', async () => {
    const daemon = await broker.bus();
    const subscription = broker.plain.subscribe('parley.log.demo');
    await broker.plain.flush();
    for (let index = 0; index < 3; index += 1) daemon.publishEntries('demo', [note(index, 'x')]);
    await daemon.close();
    await broker.plain.flush();
    await subscription.drain();
    const seen: number[] = [];
    for await (const message of subscription)
      for (const { index } of message.json<{ entries: Entry[] }>().entries) seen.push(index);
    expect(seen).toEqual([0, 1, 2]);
  });

  it('a dead letter is stored under the names of its sender, also if no subject can contain them', async () => {
    const daemon = await broker.bus();
    const refused = { code: 'MALFORMED_JSON', message: 'no JSON', hint: 'correct it' };
    await daemon.publishDead(delivery('alice', 'demo', bytes('{oops')), refused, '');
    await daemon.publishDead(delivery('bob', 'a ü', new Uint8Array(65_000)), refused, 'm-1');
    const manager = await broker.plain.jetstreamManager();
    const first = await manager.streams.getMessage('PARLEY_DEAD', { last_by_subj: 'parley.dead.alice.demo' });
    expect(first.json()).toEqual({
      reason: 'no JSON',
      code: 'MALFORMED_JSON',
      hint: 'correct it',
      id: 'in-7-abc',
      ingress: { stream: 's1', sequence: 7 },
      size: 5,
      original: '{oops',
    });
    const second = await manager.streams.getMessage('PARLEY_DEAD', {
      last_by_subj: 'parley.dead.bob._invalid',
    });
    expect(second.json()).toMatchObject({ truncated: true, id: 'm-1', size: 65_000 });
  });

  it('dead letters are listed newest first, page by page, and removed ones are skipped', async () => {
    const daemon = await broker.bus();
    const { deadLetters } = daemon;
    expect(await deadLetters.page({ limit: 5 })).toEqual({ letters: [], next: null });
    for (let n = 1; n <= 150; n++) {
      const post = delivery(n % 50 === 0 ? 'bob' : 'alice', 'demo', bytes(`${n}`), n);
      await daemon.publishDead(post, { code: n % 2 ? 'ODD' : 'EVEN', message: `no ${n}` }, `m-${n}`);
    }
    await deadLetters.remove(149);
    await deadLetters.remove(149);
    expect(await deadLetters.get(149)).toBeNull();
    expect(await deadLetters.get(7)).toEqual({
      sequence: 7,
      at: expect.stringMatching(/^20.*Z$/),
      publisher: 'alice',
      conversation: 'demo',
      code: 'ODD',
      reason: 'no 7',
      id: 'm-7',
      ingress: { stream: 's1', sequence: 7 },
      size: 1,
      original: '7',
    });
    const first = await deadLetters.page({ limit: 3 });
    expect(first.letters.map(({ sequence }) => sequence)).toEqual([150, 148, 147]);
    const seen: number[] = [];
    for (let before: number | null = 148; before !== null; ) {
      const page = await deadLetters.page({ limit: 40, before, code: 'ODD' });
      seen.push(...page.letters.map(({ sequence }) => sequence));
      before = page.next;
    }
    expect(seen).toEqual(Array.from({ length: 74 }, (_, back) => 147 - 2 * back));
    const bobs = await deadLetters.page({ limit: 9, publisher: 'bob', conversation: 'demo' });
    expect(bobs).toMatchObject({
      letters: [{ sequence: 150 }, { sequence: 100 }, { sequence: 50 }],
      next: null,
    });
    expect((await deadLetters.page({ limit: 9, conversation: 'other' })).letters).toEqual([]);
  });

  it('other messages in the stream of dead letters are listed as they are', async () => {
    const daemon = await broker.bus();
    const { seq } = await broker.plain.jetstream().publish('parley.dead.alice.demo', bytes('[1]'));
    expect(await daemon.deadLetters.get(seq)).toMatchObject({ code: 'UNREADABLE', original: '[1]', size: 3 });
  });

  itLong('dead letters cannot be read or removed while the server is away', async () => {
    const daemon = await broker.bus();
    const { seq } = await broker.plain.jetstream().publish('parley.dead.alice.demo', bytes('[1]'));
    await broker.server.kill9();
    const { deadLetters } = daemon;
    const refusals = [deadLetters.get(seq), deadLetters.remove(seq)].map((refused) =>
      expect(refused).rejects.toMatchObject({ code: 'BROKER_UNAVAILABLE' }),
    );
    await Promise.all(refusals);
  });

  it('one dead letter is kept of a post that is refused again at once, also by the next daemon', async () => {
    const refused = { code: 'X', message: 'x' };
    for (const later of [2, 2]) {
      const daemon = await broker.bus();
      const post = delivery('alice', 'demo', bytes('1'));
      expect(await daemon.publishDead(post, refused, '')).toBe(1);
      expect(await daemon.publishDead(post, refused, '')).toBe(1);
      const other = { ...post, takenAt: 60_000 }; // The stream lost its end: another post has that sequence.
      expect(await daemon.publishDead(other, refused, '')).toBe(later);
      await daemon.close();
    }
  });

  it('one dead letter is kept of a post that two daemons refuse at the same moment', async () => {
    const daemons = await Promise.all([broker.bus(), broker.bus()]);
    const post = delivery('alice', 'demo', bytes('1'));
    const letters = await Promise.all(
      daemons.map((daemon) => daemon.publishDead(post, { code: 'X', message: 'x' }, '')),
    );
    expect(new Set(letters.filter((letter) => letter !== undefined))).toEqual(new Set([1]));
    const { state } = await (await broker.plain.jetstreamManager()).streams.info('PARLEY_DEAD');
    expect(state.messages).toBe(1);
  });

  it('a dead letter is stored when the server returns, and when its stream was deleted', async () => {
    const { bus: daemon, lines } = await broker.recording();
    await (await broker.plain.jetstreamManager()).streams.delete('PARLEY_DEAD');
    await daemon.publishDead(delivery('alice', 'demo', bytes('1')), { code: 'X', message: 'x' }, '');
    await broker.server.kill9();
    await until('the loss is seen', () => lines.some(({ message }) => /was lost/.test(message)));
    const storing = daemon.publishDead(
      delivery('alice', 'demo', bytes('2'), 8),
      { code: 'X', message: 'x' },
      '',
    );
    await pause(50);
    await broker.server.restart();
    await storing;
    const fresh = await openNats({ url: broker.server.url }); // The plain one may not be back yet.
    const { state } = await (await fresh.jetstreamManager()).streams.info('PARLEY_DEAD');
    await fresh.close();
    expect(state.messages).toBe(2);
  });

  it('a dead letter that another daemon may have stored during an outage is not stored again (SHARED-READER-2)', async () => {
    const { bus: daemon, lines } = await broker.recording();
    await broker.server.kill9();
    await until('the loss is seen', () => lines.some(({ message }) => /was lost/.test(message)));
    const mayStore = vi.fn(() => Promise.reject(new Error('another daemon reads the posts')));
    const storing = daemon.publishDead(
      delivery('alice', 'demo', bytes('1')),
      { code: 'X', message: 'x' },
      '',
      mayStore,
    );
    const given = expect(storing).rejects.toThrow('another daemon reads the posts');
    await pause(50);
    expect(mayStore).not.toHaveBeenCalled();
    await broker.server.restart();
    await given;
  });

  it('an unfinished dead letter is abandoned when the bus closes, so that its post is not settled', async () => {
    const { bus: daemon, lines } = await broker.recording();
    await broker.server.kill9();
    await until('the loss is seen', () => lines.some(({ message }) => /was lost/.test(message)));
    const storing = daemon.publishDead(
      delivery('alice', 'demo', bytes('2')),
      { code: 'X', message: 'x' },
      '',
    );
    const refusedToo = expect(storing).rejects.toMatchObject({ code: 'BUS_CLOSED' });
    await Promise.all([daemon.close(), daemon.close(), refusedToo]);
    await expect(daemon.startIngress(collector().options())).rejects.toMatchObject({ code: 'BUS_CLOSED' });
    daemon.publishEntries('demo', [note(0, 'dropped')]);
  });
});

describe('an unusual post', () => {
  const broker = perTest(() => startBroker());

  it('a post cannot imitate a status of the server', async () => {
    const daemon = await broker.bus();
    const seen = await collecting(daemon);
    const forged = headers(408, 'Request Timeout');
    await broker.plain.jetstream().publish('parley.in.alice.demo', bytes('forged'), { headers: forged });
    await daemon.post('alice', 'demo', bytes('next'));
    await until('both came', () => seen.deliveries.length === 2);
    expect(seen.contents()).toEqual(['forged', 'next']);
  });

  it('an empty post is read as such', async () => {
    const daemon = await broker.bus();
    const seen = await collecting(daemon);
    await broker.plain.jetstream().publish('parley.in.alice.demo');
    await until('it came', () => seen.deliveries.length === 1);
    expect(text(seen.deliveries[0]!.body)).toBe('');
  });

  it('posts work on one connection as well as on two', async () => {
    const connection = await openNats({ url: broker.server.url });
    const daemon = await createNatsBus(connection, { subjects: createSubjects(), log: recordingLog().log });
    broker.own(daemon);
    expect(daemon.url).toBe(broker.server.url);
    const storing = daemon.publishDead(
      delivery('alice', 'demo', bytes('x')),
      { code: 'X', message: 'x' },
      '',
    );
    expect(await storing).toBe(1);
    daemon.publishEntries('demo', []);
    await daemon.close();
    expect(connection.isClosed()).toBe(true);
  });
});
