import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { DeliveryHead, RefusedRuns } from '../../../src/bus/index.ts';
import type { PublisherConfig } from '../../../src/config/index.ts';
import { Flood, PublisherLimits } from '../../../src/daemon/ingress/publisher-limits.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { createDaemon, type TestDaemon } from './daemon.ts';

const none: PublisherConfig = { postsPerMinute: null, maxBytes: null, openConversations: null };

describe('the rate of a publisher', () => {
  const limits = () =>
    new PublisherLimits(
      () => ({ named: { alice: { ...none, postsPerMinute: 60 } }, others: none }),
      () => false,
    );
  const admitted = (of: PublisherLimits, publisher: string, takenAt: number) => {
    const refused = of.refusalOrEnter({ publisher, conversation: 'demo', bytes: 1, takenAt });
    if (!refused) of.settled(publisher, 'demo');
    return refused === null;
  };
  const burst = (of: PublisherLimits, count: number, at: number, publisher = 'alice') =>
    Array.from({ length: count }, () => admitted(of, publisher, at)).filter(Boolean).length;

  it('a publisher may post the number of one minute at once, and then at the rate', () => {
    const some = limits();
    expect(burst(some, 100, 0)).toBe(60);
    expect(burst(some, 100, 1_000)).toBe(1);
    expect(burst(some, 100, 61_000)).toBe(60);
  });

  it('a long post counts once for each 16 KiB, and never more than the posts of one minute (PUBLISHER-LIMITS-4)', () => {
    const some = limits();
    const long = (bytes: number, takenAt: number) =>
      some.refusalOrEnter({ publisher: 'alice', conversation: 'demo', bytes, takenAt });
    expect(long(40 * 16_384, 0)).toBeNull();
    expect(burst(some, 100, 0)).toBe(20);
    expect(long(10 * 16_384 + 1, 0)).toMatchObject({ code: 'RATE_LIMITED', retryAfter: 11 });
    expect(long(1_000 * 16_384, 60_000)).toBeNull();
    expect(burst(some, 100, 60_000)).toBe(0);
  });

  it('the rate of a publisher is independent of other publishers', () => {
    const some = limits();
    burst(some, 100, 0);
    expect(burst(some, 500, 0, 'bob')).toBe(500);
  });

  it('a backlog that arrived within the rate is not refused (PUBLISHER-LIMITS-2)', () => {
    const some = limits();
    const late = Array.from({ length: 600 }, (_, second) => admitted(some, 'alice', second * 1_000));
    expect(late.every(Boolean)).toBe(true);
  });

  it('a clock that jumps back and forth neither raises nor lowers the rate (PUBLISHER-LIMITS-2)', () => {
    const some = limits();
    expect(burst(some, 60, 1_000_000)).toBe(60);
    expect(burst(some, 10, 0)).toBe(0);
    expect(burst(some, 10, -50_000_000)).toBe(0);
    expect(burst(some, 10, -49_995_000)).toBe(5);
    expect(burst(some, 100, 9_000_000)).toBe(60);
  });

  it('the refusal of a post says when the next one is permitted', () => {
    const some = limits();
    burst(some, 60, 0);
    expect(
      some.refusalOrEnter({ publisher: 'alice', conversation: 'demo', bytes: 1, takenAt: 0 }),
    ).toMatchObject({
      code: 'RATE_LIMITED',
      hint: expect.stringContaining('in 1 s'),
      retryAfter: 1,
    });
  });

  it('a publisher with the name of an object property, such as constructor, has a normal rate', () => {
    const some = new PublisherLimits(
      () => ({ named: {}, others: { ...none, postsPerMinute: 2 } }),
      () => false,
    );
    expect(burst(some, 3, 0, 'constructor')).toBe(2);
  });

  it('the rates of quiet publishers are removed from memory, and no others (PUBLISHER-LIMITS-3)', () => {
    const some = limits();
    expect(burst(some, 60, 0)).toBe(60);
    for (let one = 0; one < 3_000; one += 1) burst(some, 1, 30_000, `p${one}`);
    expect(burst(some, 60, 30_000)).toBe(30);
    for (let one = 0; one < 3_000; one += 1) burst(some, 1, 200_000, `q${one}`);
    expect(some.size).toBeLessThan(3_100);
  });
});

describe('a post beyond its publisher’s limits', () => {
  let daemon: TestDaemon;
  afterEach(() => daemon.end());
  const post = (id: string, conversation = 'demo', publisher = 'alice') =>
    daemon.deliver({ id, content: id }, { conversation, publisher });
  const codes = () => daemon.bus.dead.map(({ refused }) => refused.code);
  const posted = async (conversation = 'demo') =>
    (await daemon.entries(conversation)).flatMap((entry) =>
      entry.type === 'message' && entry.role === 'user' ? [entry.id] : [],
    );

  it('a post over the rate becomes a dead letter, and nothing of it is stored', async () => {
    daemon = createDaemon({ alice: { postsPerMinute: 2 }, now: () => 0 });
    for (const id of ['m1', 'm2', 'm3']) await post(id);
    expect(codes()).toEqual(['RATE_LIMITED']);
    expect(await posted()).toEqual(['m1', 'm2']);
    await post('n1', 'never');
    expect(await daemon.store.exists('never')).toBe(false);
  });

  it('the publisher of an API post over the rate gets the refusal', async () => {
    daemon = createDaemon({ alice: { maxBytes: 100 } });
    const body = { conversation: 'demo', publisher: 'alice', content: 'x'.repeat(100) };
    expect(await daemon.request('post', body)).toMatchObject({ ok: false, refusal: { code: 'TOO_LARGE' } });
    expect(await daemon.request('post', { ...body, content: 'x' })).toMatchObject({ ok: true });
    expect(daemon.bus.dead).toEqual([]);
  });

  it('an API post over the rate is refused, and leaves no dead letter', async () => {
    daemon = createDaemon({ alice: { postsPerMinute: 2 }, now: () => 0 });
    const ask = (id: string) =>
      daemon.request('post', { conversation: 'demo', publisher: 'alice', id, content: id });
    for (const one of await Promise.all([ask('m1'), ask('m2')])) expect(one).toMatchObject({ ok: true });
    const beyond = { ok: false, refusal: { code: 'RATE_LIMITED', retryAfter: 30 } };
    expect(await ask('m3')).toMatchObject(beyond);
    expect(await ask('m1')).toMatchObject({ ok: true, body: { duplicate: true } });
    expect(await posted()).toEqual(['m1', 'm2']);
    expect(daemon.bus.dead).toEqual([]);
  });

  it('posts of requests use the rate of posts of the bus, whatever the difference of the clocks (PUBLISHER-LIMITS-2)', () => {
    for (const skew of [-3_600_000, -100, 0, 100, 3_600_000]) {
      const limited = { postsPerMinute: 60, maxBytes: null, openConversations: null };
      const some = new PublisherLimits(
        () => ({ named: {}, others: limited }),
        () => false,
      );
      let admitted = 0;
      for (let n = 0; n < 1_000; n += 1) {
        const at = 10_000_000 + n; // one second
        const position = { stream: 's1', sequence: n + 1 };
        if (some.count({ publisher: 'alice', bytes: 1, takenAt: at + skew, position }) === 0) admitted += 1;
        if (some.count({ publisher: 'alice', bytes: 1, takenAt: at }) === 0) admitted += 1;
      }
      expect(admitted).toBeLessThanOrEqual(2 * 60 + 3);
      if (skew === 0) expect(admitted).toBeLessThanOrEqual(60 + 2);
    }
  });

  it('a caller beyond the rate has logs opened at the rate only, and a repeated post is recognised in memory (POSTS-8)', async () => {
    daemon = createDaemon({ alice: { postsPerMinute: 2 }, now: () => 0 });
    const ask = (conversation: string, id: string) =>
      daemon.request('post', { conversation, publisher: 'alice', id, content: id });
    for (const id of ['m1', 'm2']) expect(await ask('demo', id)).toMatchObject({ ok: true });
    const opened = vi.spyOn(daemon.workers, 'fateInConversation');
    for (let n = 0; n < 10; n++)
      expect(await ask(`other-${n}`, 'm3')).toMatchObject({ ok: false, refusal: { code: 'RATE_LIMITED' } });
    expect(opened).toHaveBeenCalledTimes(2);
    expect(await ask('demo', 'm1')).toMatchObject({ ok: true, body: { duplicate: true } });
  });

  it('an API post after posts of the bus that used the rate is refused', async () => {
    daemon = createDaemon({ alice: { postsPerMinute: 1 }, now: () => 0 });
    await post('m1');
    const body = { conversation: 'demo', publisher: 'alice', content: 'x' };
    expect(await daemon.request('post', body)).toMatchObject({ refusal: { code: 'RATE_LIMITED' } });
    expect(daemon.bus.dead).toEqual([]);
  });

  it('a post that is already in the log is not refused for the rate, however often it is repeated (POSTS-6)', async () => {
    daemon = createDaemon({ alice: { postsPerMinute: 1 }, now: () => 0 });
    await post('m1');
    await post('m1');
    await post('m2');
    await post('m1');
    expect(codes()).toEqual(['RATE_LIMITED']);
    expect(await posted()).toEqual(['m1']);
  });

  it('a post is refused while agents work in too many conversations of its publisher', async () => {
    daemon = createDaemon({ alice: { openConversations: 2 } });
    await post('a', 'one');
    await post('b', 'two');
    await post('c', 'three');
    expect(codes()).toEqual(['TOO_MANY_CONVERSATIONS']);
    await post('d', 'two');
    await post('e', 'three', 'bob');
    expect(await posted('two')).toEqual(['b', 'd']);
    expect(codes().length).toBe(1);
    daemon.calls[0]?.answer('done');
    await expect.poll(() => daemon.workers.isBusy('one')).toBe(false);
    await post('c', 'three');
    expect(await posted('three')).toEqual(['e', 'c']);
  });

  it('a post that was refused for another reason does not count as a conversation with work', async () => {
    daemon = createDaemon({ alice: { openConversations: 1 } });
    await daemon.deliver({ id: 'a', content: 'x', to: ['nobody'] }, { conversation: 'one' });
    await post('b', 'two');
    expect(codes()).toEqual(['UNKNOWN_AGENT']);
    expect(await posted('two')).toEqual(['b']);
  });
});

const PER_MINUTE = 60;

function setUp(options: { readonly fails?: boolean } = {}) {
  const letters: { publisher: string; posts: RefusedRuns; code: string }[] = [];
  const limited = { postsPerMinute: PER_MINUTE, maxBytes: null, openConversations: null };
  const named = { importer: { ...limited, postsPerMinute: null } };
  const limits = new PublisherLimits(
    () => ({ named, others: limited }),
    () => false,
  );
  const log = { info: vi.fn(), warn: vi.fn(), error: vi.fn() };
  const flood = new Flood({
    limits,
    bus: {
      publishRefusedRuns: async (publisher, posts, { code }) => {
        if (options.fails) throw new ParleyError('BUS_CLOSED', 'closed');
        letters.push({ publisher, posts, code });
      },
    },
    log,
    mayRefuse: async () => undefined,
  });
  const post = (sequence: number, publisher = 'mallory', bytes = 10): DeliveryHead => ({
    position: { stream: 's1', sequence },
    takenAt: 1_000,
    fallbackId: `in-${sequence}`,
    ...{ publisher, conversation: 'demo', bytes, messageId: null },
  });
  const kinds = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, place) => flood.read(post(from + place)).kind);
  return { flood, letters, log, post, kinds };
}

describe('posts over the rate', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('posts over the rate are refused one by one up to twenty per minute, and the others with one dead letter and one log line', async () => {
    const { kinds, letters, log } = setUp();
    expect(new Set(kinds(1, 80))).toEqual(new Set(['deliver']));
    expect(new Set(kinds(81, 1_000))).toEqual(new Set(['refused']));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(letters).toMatchObject([
      {
        publisher: 'mallory',
        code: 'RATE_LIMITED',
        posts: { count: 920, bytes: 9_200, runs: [[81, 1_000]] },
      },
    ]);
    expect(log.warn).toHaveBeenCalledTimes(1);
  });

  it('posts over the rate share a dead letter at once when no single one can hold them', () => {
    const { flood, kinds, post } = setUp();
    kinds(1, 60);
    expect(flood.read(post(61, 'mallory', 200_000)).kind).toBe('refused');
    expect(flood.read(post(62)).kind).toBe('deliver');
  });

  it('refused posts are settled when the dead letter that names them is stored, and not before', async () => {
    const { flood, kinds, post } = setUp();
    kinds(1, 80);
    const reading = flood.read(post(81));
    const settled = vi.fn();
    if (reading.kind === 'refused') void reading.kept.then(settled);
    await vi.advanceTimersByTimeAsync(999);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(settled).toHaveBeenCalledOnce();
  });

  it('refused posts stay unsettled when the bus closes before their dead letter is stored', async () => {
    const { flood, kinds, post } = setUp({ fails: true });
    kinds(1, 80);
    const reading = flood.read(post(81));
    if (reading.kind !== 'refused') throw new Error('it is delivered');
    const outcome = expect(reading.kept).rejects.toThrow('closed');
    await vi.advanceTimersByTimeAsync(1_000);
    await outcome;
  });

  it('posts over the rate of one publisher do not limit another publisher', () => {
    const { flood, kinds, post } = setUp();
    kinds(1, 200);
    expect(flood.read(post(201, 'bob'))).toEqual({ kind: 'deliver', waitMs: 0 });
    for (let sequence = 202; sequence < 500; sequence++)
      expect(flood.read(post(sequence, 'importer'))).toEqual({ kind: 'deliver', waitMs: 0 });
  });
});

describe('posts that reading would reach late', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const unread = { stream: 's1', publisher: 'mallory', first: 101, last: 20_000, bytes: 1, from: 1_000 };

  it('posts of a publisher far over its rate are refused without being read', async () => {
    const { flood, letters } = setUp();
    const posts = { ...unread, count: 19_000, to: 2_000 };
    expect(flood.isFlood(posts)).toBe(true);
    const kept = flood.skip(posts);
    await vi.advanceTimersByTimeAsync(1_000);
    await kept;
    expect(letters[0]?.posts).toMatchObject({ count: 19_000, from: 1_000, to: 2_000, runs: [[101, 20_000]] });
  });

  it('posts that arrived at about the permitted rate are read', () => {
    expect(setUp().flood.isFlood({ ...unread, count: 2 * PER_MINUTE, to: 11_000 })).toBe(false);
  });

  it('posts of a backlog that arrived over a longer time are read', () => {
    expect(setUp().flood.isFlood({ ...unread, count: 1_000_000, to: 70_000 })).toBe(false);
  });

  it('posts of a publisher without a limit are read', () => {
    const importer = { ...unread, publisher: 'importer', count: 1_000_000, to: 2_000 };
    expect(setUp().flood.isFlood(importer)).toBe(false);
  });
});
