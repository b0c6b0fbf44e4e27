import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Batches } from '../../chaos/actors/publishers.ts';
import { rng } from '../../chaos/rng.ts';
import { INTENTS, intentText, persona, replyTo } from '../../chaos/scenario.ts';
import { createCrashSchedule, createSchedule, FAULT_KINDS, LANES, laneOf } from '../../chaos/schedule.ts';
import { runs } from '../../support/runs.ts';

const POINTS = ['before-tool', 'after-tool'];
const seeds = fc.integer({ min: 1, max: 2 ** 31 - 1 });
const lengths = fc.integer({ min: 1, max: 90 });
const property = (check: (seed: number, seconds: number) => void) =>
  fc.assert(fc.property(seeds, lengths, check), { numRuns: runs(20) });

describe('a chaos schedule', () => {
  it('a schedule is determined by its seed, byte for byte, also after JSON (SCHEDULE-1)', () => {
    property((seed, seconds) => {
      const first = createSchedule({ seed, seconds, crashPoints: POINTS });
      const again = createSchedule({ seed, seconds, crashPoints: POINTS });
      expect(JSON.stringify(again)).toBe(JSON.stringify(first));
      expect(JSON.parse(JSON.stringify(first))).toEqual(first);
    });
  });

  it('a schedule for a cluster names the server of each fault, sometimes its leader, and for one server none', () => {
    const options = { seed: 3, seconds: 300, crashPoints: POINTS };
    const ofServers = (servers: number) =>
      createSchedule({ ...options, servers }).faults.filter(({ kind }) => FAULT_KINDS[kind] === 'server');
    const three = ofServers(3);
    expect([...new Set(three.map(({ server }) => server))].sort()).toEqual([0, 1, 2]);
    expect(new Set(three.map(({ leader }) => leader))).toEqual(new Set([true, false]));
    expect(JSON.stringify(ofServers(1))).not.toMatch(/"server"|"leader"/);
    expect(createSchedule({ ...options, servers: 3 }).servers).toBe(3);
  });

  it('a schedule has one fault per lane at a time, and none after the end (SCHEDULE-2, SCHEDULE-3)', () => {
    property((seed, seconds) => {
      const { faults } = createSchedule({ seed, seconds, crashPoints: POINTS });
      for (const lane of LANES) {
        let free = 0;
        for (const fault of faults.filter(({ kind }) => FAULT_KINDS[kind] === lane)) {
          expect(fault.atMs).toBeGreaterThanOrEqual(free);
          free = fault.atMs + fault.lastsMs;
        }
        expect(free).toBeLessThanOrEqual(seconds * 1_000);
      }
    });
  });

  it('a schedule for several daemons gives each its own lane, freezes some for long, and fills no disk', () => {
    property((seed, seconds) => {
      const { faults, daemons } = createSchedule({ seed, seconds, crashPoints: POINTS, daemons: 3 });
      expect(daemons).toBe(3);
      const free = new Map<string, number>();
      for (const fault of faults) {
        expect(fault.kind).not.toBe('disk-full');
        expect(fault.daemon !== undefined).toBe(
          FAULT_KINDS[fault.kind] === 'daemon' || fault.between === 'daemon',
        );
        expect(fault.atMs).toBeGreaterThanOrEqual(free.get(laneOf(fault)) ?? 0);
        free.set(laneOf(fault), fault.atMs + fault.lastsMs);
        expect(fault.lastsMs).toBeLessThanOrEqual(30_000);
      }
      expect(Math.max(0, ...free.values())).toBeLessThanOrEqual(seconds * 1_000);
    });
    const { faults } = createSchedule({ seed: 1, seconds: 600, crashPoints: POINTS, daemons: 3 });
    const freezes = faults.filter(({ kind }) => kind === 'daemon-freeze').map(({ lastsMs }) => lastsMs);
    expect(Math.max(...freezes)).toBeGreaterThan(20_000);
    expect(Math.min(...freezes)).toBeLessThan(1_500);
    expect(new Set(faults.map(({ daemon }) => daemon))).toEqual(new Set([undefined, 0, 1, 2]));
  });

  it('a schedule with many conversations posts in nearly each of them, no more often than can be processed', () => {
    const { posts } = createSchedule({ seed: 1, seconds: 300, crashPoints: POINTS, conversations: 1_000 });
    expect(new Set(posts.map(({ conversation }) => conversation)).size).toBeGreaterThan(900);
    expect(posts.length).toBeGreaterThan(1_200);
    expect(posts.length).toBeLessThan(2_400);
    expect(new Set(posts.map(({ id }) => id)).size).toBe(posts.length);
  });

  it('a schedule of ten minutes kills the daemon more than a hundred times, and has every other fault twenty times', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { faults } = createSchedule({ seed, seconds: 600, crashPoints: POINTS });
      const count = (...kinds: string[]) => faults.filter(({ kind }) => kinds.includes(kind)).length;
      expect(count('daemon-kill')).toBeGreaterThanOrEqual(150);
      expect(count('daemon-freeze')).toBeGreaterThanOrEqual(25);
      expect(count('server-kill')).toBeGreaterThanOrEqual(20);
    }
  });

  it('a schedule describes the conditions of each fault', () => {
    property((seed, seconds) => {
      for (const fault of createSchedule({ seed, seconds, crashPoints: POINTS }).faults) {
        expect(fault.between !== undefined).toBe(fault.kind.startsWith('network-'));
        expect(fault.delayMs !== undefined).toBe(fault.kind === 'network-slow');
        if (fault.kind === 'daemon-crash') expect(POINTS).toContain(fault.point?.name);
        else expect(fault.point).toBeUndefined();
      }
    });
  });

  it('a schedule numbers the posts of a person in a conversation from 0 in the order of their times, with unique ids', () => {
    property((seed, seconds) => {
      const { posts } = createSchedule({ seed, seconds, crashPoints: POINTS });
      expect(new Set(posts.map(({ id }) => id)).size).toBe(posts.length);
      const last = new Map<string, { number: number; atMs: number }>();
      for (const { publisher, conversation, number, atMs } of posts) {
        const before = last.get(`${publisher} ${conversation}`) ?? { number: -1, atMs: 0 };
        expect(number).toBe(before.number + 1);
        expect(atMs).toBeGreaterThanOrEqual(before.atMs);
        last.set(`${publisher} ${conversation}`, { number, atMs });
      }
    });
  });

  it('a schedule that is long enough contains every kind of fault, every request and some repeated posts', () => {
    const { faults, posts } = createSchedule({ seed: 1, seconds: 600, crashPoints: POINTS });
    expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(Object.keys(FAULT_KINDS)));
    const wishes = new Set(posts.map(({ content }) => content.split(' ').at(-1)));
    expect([...wishes].sort()).toEqual(['both', 'delegate', 'handoff', 'look', 'talk', 'write']);
    expect(posts.filter(({ again }) => again.length > 0).length).toBeGreaterThan(100);
  });

  it('another seed gives another schedule', () => {
    const [one, two] = [1, 2].map((seed) => createSchedule({ seed, seconds: 60, crashPoints: POINTS }));
    expect(two?.faults).not.toEqual(one?.faults);
  });
});

describe('a schedule of crashes', () => {
  const crashes = [
    { name: 'before-tool', nth: 1 },
    { name: 'after-tool', nth: 3 },
  ];
  const planned = createCrashSchedule(7, crashes, 1_500);

  it('a schedule of crashes has them in order, without a pause, and enough time for each', () => {
    expect(planned.faults).toEqual(
      crashes.map((point) => ({ kind: 'daemon-crash', atMs: 0, lastsMs: 1_500, point })),
    );
    expect(planned.seconds).toBe(3);
    expect(createCrashSchedule(7, crashes, 1_500)).toEqual(planned);
  });

  it('a schedule of crashes posts each request once per batch, over both ways, in its own conversations', () => {
    const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
    expect([...new Set(planned.posts.map(({ batch }) => batch))]).toEqual(numbers);
    const seen = new Set<string>();
    for (const number of numbers) {
      const posts = planned.posts.filter(({ batch }) => batch === number);
      const wishes = posts.map(({ content }) => content.split(' ').at(-1));
      expect(wishes.sort()).toEqual(['both', 'delegate', 'handoff', 'look', 'talk', 'write']);
      expect(new Set(posts.map(({ way }) => way))).toEqual(new Set(['api', 'stream']));
      const conversations = new Set(posts.map(({ conversation }) => conversation));
      for (const conversation of conversations) expect(seen).not.toContain(conversation);
      for (const conversation of conversations) seen.add(conversation);
    }
    expect(new Set(planned.posts.map(({ id }) => id)).size).toBe(planned.posts.length);
  });
});

describe('the random numbers of a schedule', () => {
  it('random numbers stay within their bounds and reach both', () => {
    const roll = rng(7, 'test');
    const thrown = Array.from({ length: 1_000 }, () => roll.between(2, 4));
    expect(new Set(thrown)).toEqual(new Set([2, 3, 4]));
    expect(Array.from({ length: 1_000 }, () => roll.next()).every((n) => n >= 0 && n < 1)).toBe(true);
  });

  it('random numbers of another name differ, and a choice from an empty list fails', () => {
    expect(rng(7, 'a').next()).not.toBe(rng(7, 'b').next());
    expect(() => rng(7, 'a').pick([])).toThrow(RangeError);
  });
});

const system = { role: 'system', content: persona('pm') };
const asked = (wish: (typeof INTENTS)[number]) =>
  replyTo([system, { role: 'user', content: intentText('ann', 3, wish) }]);
const names = (wish: (typeof INTENTS)[number]) => asked(wish).calls.map(({ name }) => name);

describe('the model of a chaos run', () => {
  it('the model of a chaos run calls the tools that it is asked to call', () => {
    expect(names('look')).toEqual(['mcp__world__look']);
    expect(names('write')).toEqual(['mcp__world__write']);
    expect(names('both')).toEqual(['mcp__world__look', 'mcp__world__look', 'mcp__world__write']);
    expect(asked('delegate').calls).toMatchObject([{ name: 'delegate', arguments: { to: 'dev' } }]);
    expect(asked('handoff').calls).toMatchObject([{ name: 'handoff', arguments: { to: 'dev' } }]);
    expect(asked('talk')).toEqual({ text: expect.stringContaining('ann says 3'), calls: [] });
  });

  it('the model of a chaos run comments on results and other agents, so that every chain ends', () => {
    for (const wish of INTENTS) {
      const content = intentText('ann', 3, wish);
      for (const role of ['tool', 'system']) expect(replyTo([system, { role, content }]).calls).toEqual([]);
    }
  });
});

describe('posts in batches', () => {
  /** Waits for the batches 0 to 3, for the second one twice. Returns those that have begun. */
  function setUp() {
    const hurry = new AbortController();
    const batches = new Batches(hurry.signal);
    const begun: number[] = [];
    for (const batch of [3, 2, 2, 1, 0]) void batches.begun(batch).then(() => begun.push(batch));
    const now = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return [...begun].sort();
    };
    return { hurry, batches, now };
  }

  it('batches begin one after the other when they are requested, and the rest never', async () => {
    const { batches, now } = setUp();
    expect(await now()).toEqual([0]);
    batches.next();
    expect(await now()).toEqual([0, 1]);
    batches.next();
    expect(await now()).toEqual([0, 1, 2, 2]);
    await batches.begun(2); // requested before it is awaited
  });

  it('all batches begin at once when the run hurries', async () => {
    const { hurry, batches, now } = setUp();
    hurry.abort();
    expect(await now()).toEqual([0, 1, 2, 2, 3]);
    await batches.begun(99);
  });
});
