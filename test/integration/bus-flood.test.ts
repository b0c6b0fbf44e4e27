import { describe, expect, it } from 'vitest';
import type { IngressOptions, Reading, UnreadPosts } from '../../src/bus/index.ts';
import { parseSettledRecord } from '../../src/bus/settled.ts';
import { perTest } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { bytes, collector, startBroker, text, until } from '../unit/bus/support.ts';

const FLOODERS = ['mallory', 'trudy'];
/** Posts before the post of another publisher, and after it. */
const BEFORE = 9_000;
const AFTER = 3_000;
const ALL = BEFORE + 1 + AFTER;
/** Of one pull. */
const MOST_READ = 1_000;

/** INGRESS-8. The letters of skipped posts are stored when the test says so, those of other posts at once. */
describe('several publishers that flood the ingress stream at the same time', () => {
  const broker = perTest(() => startBroker());

  async function flood(count: number): Promise<void> {
    for (let place = 0; place < count; place++)
      broker.plain.publish(`parley.in.${FLOODERS[place % 2]}.flood-${place % 10}`, bytes('x'));
    await broker.plain.flush();
  }

  async function fillStream(): Promise<void> {
    const stream = broker.plain.jetstream();
    await flood(BEFORE);
    await until('the first posts are stored', async () => (await storedLast()) === BEFORE);
    await stream.publish('parley.in.bob.quiet', bytes('hello'));
    await flood(AFTER);
    await until('all posts are stored', async () => (await storedLast()) === ALL);
  }

  async function storedLast(): Promise<number> {
    const { streams } = await broker.plain.jetstreamManager();
    return (await streams.info('PARLEY_IN')).state.last_seq;
  }

  async function settledRecord() {
    const { streams } = await broker.plain.jetstreamManager();
    const stored = await streams.getMessage('PARLEY_SETTLED', { last_by_subj: '>' }).catch(() => null);
    return stored && parseSettledRecord(text(stored.data));
  }

  /** `isFlood`: of the number of unread posts of a publisher. */
  async function start(isFlood: (posts: UnreadPosts) => boolean) {
    const daemon = await broker.bus();
    await fillStream();
    const letters = new Map<string, () => void>();
    const stored = Object.fromEntries(
      FLOODERS.map((name) => [name, new Promise<void>((resolve) => letters.set(name, resolve))]),
    );
    const read: string[] = [];
    const unread: UnreadPosts[] = [];
    const seen = collector();
    const options: IngressOptions = {
      ...seen.options(),
      onRead({ publisher }): Reading {
        read.push(publisher);
        const isRefused = FLOODERS.includes(publisher);
        return isRefused ? { kind: 'refused', kept: Promise.resolve() } : { kind: 'deliver', waitMs: 0 };
      },
      isFlood,
      onUnread(posts) {
        unread.push(posts);
        return stored[posts.publisher] ?? Promise.resolve();
      },
    };
    await daemon.startIngress(options);
    await until('the post of the third publisher is delivered', () => seen.contents().length > 0);
    return { seen, read, unread, letters };
  }

  it('are skipped together, and a third publisher between them is read before their letters are stored', async () => {
    const { seen, read, unread, letters } = await start(({ count }) => count > 2_000);
    expect(seen.contents()).toEqual(['hello']);
    expect(unread.map(({ publisher }) => publisher).sort()).toEqual(FLOODERS);
    const counts = unread.map(({ count }) => count);
    expect(counts).toEqual([(ALL - 1 - MOST_READ) / 2, (ALL - 1 - MOST_READ) / 2]);
    expect(unread.map(({ first, last }) => [first, last])).toEqual([
      [MOST_READ + 1, ALL],
      [MOST_READ + 1, ALL],
    ]);
    expect(read.filter((publisher) => FLOODERS.includes(publisher))).toHaveLength(MOST_READ);
    letters.get('mallory')?.();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(seen.positions.at(-1)?.sequence).toBe(MOST_READ);
    letters.get('trudy')?.();
    await until('all posts are settled', () => seen.positions.at(-1)?.sequence === ALL);
  });

  it('are settled for another store only when the letters of all of them are stored', async () => {
    const { letters } = await start(({ count }) => count > 2_000);
    await until('the record of settled posts includes those of the first pull', async () => {
      const record = await settledRecord();
      return (record?.settled.upTo ?? 0) >= MOST_READ;
    });
    await new Promise((resolve) => setTimeout(resolve, 500)); // a record that is written late is written now
    expect((await settledRecord())?.settled).toEqual({ upTo: MOST_READ, open: [] });
    for (const store of letters.values()) store();
    await until('the record includes all posts', async () => (await settledRecord())?.settled.upTo === ALL);
  });

  itLong(
    'are read when their unread posts are no flood, while the flood of another publisher is skipped',
    async () => {
      const { seen, unread, read } = await start(({ publisher }) => publisher === 'mallory');
      expect(seen.contents()).toEqual(['hello']);
      expect(unread).toMatchObject([{ publisher: 'mallory' }]);
      const readOf = (name: string) => read.filter((publisher) => publisher === name).length;
      expect(readOf('trudy')).toBe((ALL - 1) / 2);
      expect(readOf('mallory') + (unread[0]?.count ?? 0)).toBe((ALL - 1) / 2);
    },
  );
});
