import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type Arrival,
  type FollowEvent,
  type FollowSource,
  followConversation,
} from '../../../src/client/follow.ts';
import type { Entry } from '../../../src/conversation/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { runs } from '../../support/runs.ts';

function note(index: number): Entry {
  const author = { kind: 'system', id: 'parley', name: 'Parley' } as const;
  return {
    index,
    id: `n${index}`,
    createdAt: '2026-01-01T00:00:00.000Z',
    type: 'note',
    author,
    content: 'x',
  };
}
const notes = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, offset) => note(from + offset));

/** A log that grows, and a feed that the test controls. */
function fakeSource(options: { length?: number; pageSize?: number } = {}) {
  const fake = {
    length: options.length ?? 0,
    failure: null as Error | null,
    reads: [] as number[],
    subscriptions: 0,
    emit: (_arrival: Arrival): void => {
      throw new Error('nobody is subscribed');
    },
    feed: (...indexes: number[]) => fake.emit({ kind: 'entries', entries: indexes.map(note) }),
    onPage: () => {},
  };
  const source: FollowSource = {
    async subscribe(_live, onArrival) {
      fake.subscriptions++;
      fake.emit = onArrival;
      return () => {
        fake.subscriptions--;
      };
    },
    async page(from) {
      fake.reads.push(from);
      if (fake.failure) throw fake.failure;
      const to = Math.min(fake.length, from + (options.pageSize ?? 1_000));
      const page = { conversation: 'c', length: fake.length, entries: notes(Math.min(from, to), to) };
      fake.onPage();
      return page;
    },
  };
  return { fake, source };
}

/** Ends with the test. */
function follow(
  { fake, source }: ReturnType<typeof fakeSource>,
  options: Parameters<typeof followConversation>[1],
) {
  const events = followConversation(source, options);
  onTestFinished(async () => void (await events.return()));
  return { fake, events };
}

async function take(events: AsyncGenerator<FollowEvent>, count: number): Promise<FollowEvent[]> {
  const taken: FollowEvent[] = [];
  while (taken.length < count) {
    const { value, done } = await events.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}
const indexesOf = (events: FollowEvent[]) =>
  events.map((event) => (event.kind === 'entry' ? event.entry.index : event.chunk.n));

describe('following a conversation', () => {
  it('following reads the whole log page by page before it waits for the feed', async () => {
    const { events } = follow(fakeSource({ length: 7, pageSize: 3 }), {});
    expect(indexesOf(await take(events, 7))).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('following marks the last entry of what the log has, page by page and by the feed', async () => {
    const { fake, events } = follow(fakeSource({ length: 5, pageSize: 3 }), {});
    const marks = async (count: number) =>
      (await take(events, count)).map((event) => event.kind === 'entry' && event.isCurrent === true);
    expect(await marks(5)).toEqual([false, false, false, false, true]);
    fake.length = 7;
    fake.feed(5, 6);
    expect(await marks(2)).toEqual([false, true]);
  });

  it('following begins at the requested index', async () => {
    const { events } = follow(fakeSource({ length: 7 }), { from: 5 });
    expect(indexesOf(await take(events, 2))).toEqual([5, 6]);
  });

  it('following drops entries of the feed that it has read', async () => {
    const { fake, events } = follow(fakeSource({ length: 3 }), {});
    fake.onPage = () => fake.feed(1, 2); // Arrived while the log was read (CLIENT-FOLLOW-2).
    await take(events, 3);
    fake.onPage = () => {};
    fake.length = 5;
    fake.feed(2, 3);
    fake.feed(3);
    fake.feed(4);
    expect(indexesOf(await take(events, 2))).toEqual([3, 4]);
  });

  it('following fills a gap from the log before any later entry', async () => {
    const { fake, events } = follow(fakeSource({ length: 1 }), {});
    await take(events, 1);
    fake.length = 4;
    fake.feed(3);
    const chunk = { turnId: 't', call: 'k', n: 99, type: 'text', delta: 'x' } as const;
    fake.emit({ kind: 'live', agent: 'pm', chunk });
    expect(indexesOf(await take(events, 4))).toEqual([1, 2, 3, 99]);
  });

  it.each<[string, Entry[]]>([
    [
      'claims the conversation',
      [{ ...note(1), id: 'b', type: 'claim', daemon: 'b', epoch: 1 } as Entry, { ...note(2), id: 'refused' }],
    ],
    ['is older than the log', [{ ...note(0), id: 'refused' }]],
    ['is older and longer than the log', [0, 1, 2].map((index) => ({ ...note(index), id: 'refused' }))],
  ])(
    'following reads an append that %s from the log, as the server may have refused it',
    async (_, entries) => {
      const { fake, events } = follow(fakeSource({ length: 1 }), { pollMs: 3_600_000 });
      await take(events, 1);
      const next = take(events, 2);
      fake.emit({ kind: 'entries', entries });
      setTimeout(() => {
        fake.length = 3; // The feed has it before the log does.
        fake.feed(1, 2);
      }, 20);
      expect(await next).toMatchObject([{ entry: { id: 'n1' } }, { entry: { id: 'n2' } }]);
      await events.return();
    },
  );

  it('following continues after an entry that fills a page alone', async () => {
    const { fake, events } = follow(fakeSource({ length: 1, pageSize: 1 }), { pollMs: 3_600_000 });
    await take(events, 1);
    fake.length = 4;
    fake.feed(3);
    expect(indexesOf(await take(events, 3))).toEqual([1, 2, 3]);
  });

  it('following polls for entries that the feed lost', async () => {
    const { fake, events } = follow(fakeSource({ length: 1 }), { pollMs: 1 });
    await take(events, 1);
    fake.length = 3;
    expect(indexesOf(await take(events, 2))).toEqual([1, 2]);
  });

  it('following polls at once after a reconnection', async () => {
    const { fake, events } = follow(fakeSource({ length: 1 }), { pollMs: 3_600_000 });
    await take(events, 1);
    fake.length = 2;
    fake.emit({ kind: 'reconnected' });
    expect(indexesOf(await take(events, 1))).toEqual([1]);
  });

  it('following waits for a daemon that disappeared, but not for one that never answered', async () => {
    const away = new ParleyError('DAEMON_NOT_RUNNING', 'no daemon answers');
    const { fake, source } = fakeSource({ length: 1 });
    const events = followConversation(source, { pollMs: 1 });
    await take(events, 1);
    fake.failure = away;
    fake.length = 2;
    const next = take(events, 1);
    const readsBefore = fake.reads.length;
    await expect.poll(() => fake.reads.length).toBeGreaterThan(readsBefore + 1);
    fake.failure = null;
    expect(indexesOf(await next)).toEqual([1]);
    await events.return();

    const never = fakeSource();
    never.fake.failure = away;
    await expect(followConversation(never.source, {}).next()).rejects.toThrow(away);
    expect(never.fake.subscriptions).toBe(0);
  });

  it('following reports when the daemon does not answer, and when it answers again', async () => {
    const { fake, source } = fakeSource({ length: 1 });
    const reports: boolean[] = [];
    const onReachable = (isReachable: boolean) => void reports.push(isReachable);
    const events = followConversation(source, { pollMs: 1, onReachable });
    await take(events, 1);
    expect(reports).toEqual([true]);
    fake.failure = new ParleyError('DAEMON_NOT_RUNNING', 'no daemon answers');
    fake.length = 2;
    const next = take(events, 1);
    await expect.poll(() => reports.at(-1)).toBe(false);
    fake.failure = null;
    await next;
    expect(reports.at(-1)).toBe(true);
    await events.return();
  });

  it('following ends without an error when its signal aborts while the log is read', async () => {
    const { fake, source } = fakeSource({ length: 1 });
    const abort = new AbortController();
    const page = (from: number, signal: AbortSignal | undefined) =>
      fake.reads.length === 0
        ? source.page(from, signal)
        : new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    const events = followConversation({ ...source, page }, { pollMs: 1, signal: abort.signal });
    await take(events, 1);
    const next = events.next();
    setTimeout(() => abort.abort(), 20);
    expect(await next).toMatchObject({ done: true });
  });

  it('following waits for a conversation that does not exist yet', async () => {
    const { fake, source } = fakeSource();
    fake.failure = new ParleyError('NOT_FOUND', 'no such conversation');
    const events = followConversation(source, {});
    const first = take(events, 1);
    await expect.poll(() => fake.reads.length).toBeGreaterThan(0);
    fake.failure = null;
    fake.length = 1;
    fake.feed(0);
    expect(indexesOf(await first)).toEqual([0]);
    await events.return();
  });

  it('following reports that the conversation was deleted', async () => {
    const { fake, events } = follow(fakeSource({ length: 3 }), { pollMs: 1 });
    await take(events, 3);
    fake.length = 0;
    await expect(events.next()).rejects.toMatchObject({ code: 'CONVERSATION_DELETED' });
    expect(fake.subscriptions).toBe(0);
  });

  it('following ends without an error when its signal aborts, and unsubscribes', async () => {
    const { fake, source } = fakeSource({ length: 1 });
    const abort = new AbortController();
    const events = followConversation(source, { signal: abort.signal, pollMs: 3_600_000 });
    await take(events, 1);
    const waiting = events.next();
    abort.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(fake.subscriptions).toBe(0);
  });

  it('following keeps a bounded buffer if the reader lags, and misses no entry', async () => {
    const { fake, events } = follow(fakeSource({ length: 1, pageSize: 500 }), { pollMs: 3_600_000 });
    await take(events, 1);
    fake.length = 12_000;
    for (let index = 1; index < 12_000; index++) fake.feed(index);
    const indexes = indexesOf(await take(events, 11_999));
    expect(indexes).toEqual(notes(1, 12_000).map((entry) => entry.index));
  });

  it('following yields each index once and in order, whatever the feed loses, repeats or reorders', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ grow: fc.integer({ min: 0, max: 3 }), say: fc.array(fc.integer({ min: 0, max: 40 })) }),
          { maxLength: 12 },
        ),
        async (steps) => {
          const { fake, events } = follow(fakeSource({ pageSize: 4 }), { pollMs: 1 });
          const total = steps.reduce((sum, { grow }) => sum + grow, 0) + 1;
          const taken = take(events, total);
          await Promise.resolve();
          for (const { grow, say } of steps) {
            fake.length += grow;
            // The feed contains only durable entries.
            if (fake.subscriptions > 0) fake.feed(...say.filter((index) => index < fake.length));
            await Promise.resolve();
          }
          fake.length += 1;
          expect(indexesOf(await taken)).toEqual(notes(0, total).map((entry) => entry.index));
          await events.return();
        },
      ),
      { numRuns: runs(20) },
    );
  });
});
