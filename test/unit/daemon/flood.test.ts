import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { DeliveryHead, RefusedRuns } from '../../../src/bus/index.ts';
import { Flood, PublisherLimits } from '../../../src/daemon/ingress/publisher-limits.ts';
import { ParleyError } from '../../../src/kernel/index.ts';

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
