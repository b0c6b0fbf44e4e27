import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Attempts } from '../../../src/daemon/ingress/attempts.ts';
import { createMemoryDisk, createMemoryStore } from '../../../src/persistence/memory/index.ts';
import { createWorld, type World } from './world.ts';

/** POSTS-7 over restarts: what a world is left with when its process ends, the next one begins with. */
describe('a post that may end the daemon', () => {
  const disk = createMemoryDisk();
  let world: World;
  beforeEach(() => {
    vi.useFakeTimers();
    Object.assign(disk, createMemoryDisk());
  });
  afterEach(async () => {
    vi.useRealTimers();
    await world.end();
  });

  const begin = (...posts: readonly { sequence: number; begun: number }[]) => {
    world = createWorld({ disk, ...(posts.length > 0 && { attempts: { stream: 's1', posts } }) });
  };
  const deliver = (sequence: number, conversation = 'demo') => {
    const body = { id: `m${sequence}`, content: `content ${sequence}` };
    const position = { stream: 's1', sequence };
    return world.posts.deliver(world.bus.delivery('alice', conversation, body, { position }));
  };
  const messages = async (conversation = 'demo') =>
    (await world.entries(conversation)).filter(({ type }) => type === 'message').map(({ id }) => id);
  const tries = (sequence: number, stream = 's1') => world.runtime.attempts.before({ stream, sequence });
  /** What a process that ended there would leave: at each decision, and at each append. */
  function watchNotes(): { readonly decisions: unknown[]; readonly appends: unknown[] } {
    const seen = { decisions: [] as unknown[], appends: [] as unknown[] };
    Object.assign(world.runtime, { reach: () => void seen.decisions.push(disk.deciding) });
    world.happened.push = (...what: string[]) => {
      if (what.some((one) => one.startsWith('appended message'))) seen.appends.push(disk.deciding);
      return 0;
    };
    return seen;
  }

  it('is noted while it is decided on, and at no other moment', async () => {
    begin();
    const { decisions, appends } = watchNotes();
    await Promise.all([deliver(1), deliver(2), deliver(3, 'other')]);
    expect(decisions.filter((note) => note !== null)).toEqual([noted(1, 2), noted(1, 2), noted(3)]);
    expect(appends).toEqual([null, null]); // the first two share one
    expect([disk.deciding, disk.documents.has('attempts')]).toEqual([null, false]);
  });

  it('is not overtaken by a later one of its conversation', async () => {
    begin({ sequence: 2, begun: 2 });
    const all = [deliver(1), deliver(2), deliver(3), deliver(4)];
    await vi.advanceTimersByTimeAsync(10_000);
    await Promise.all(all);
    expect(await messages()).toEqual(['m1', 'm2', 'm3', 'm4']);
  });

  const noted = (...sequences: number[]) => ({ stream: 's1', sequences });

  it('is tried later each time, and alone, while others are served', async () => {
    begin({ sequence: 1, begun: 4 }, { sequence: 2, begun: 2 });
    const { decisions } = watchNotes();
    const all = [deliver(1), deliver(2, 'second'), deliver(3, 'third')];
    await vi.advanceTimersByTimeAsync(900);
    expect([...disk.logs.keys()]).toEqual(['third']);
    await vi.advanceTimersByTimeAsync(2_000);
    expect([...disk.logs.keys()]).toEqual(['third', 'second']);
    await vi.advanceTimersByTimeAsync(200);
    await Promise.all(all);
    expect([...disk.logs.keys()]).toEqual(['third', 'second', 'demo']);
    expect(decisions.filter((note) => note !== null)).toEqual([noted(3), noted(2), noted(1)]);
  });

  it.each([
    { begun: 1, wait: 0 },
    { begun: 2, wait: 1_000 },
  ])('waits no longer where twenty others waited $begun times too', async ({ begun, wait }) => {
    const sequences = Array.from({ length: 20 }, (_, n) => n + 1);
    begin(...sequences.map((sequence) => ({ sequence, begun })));
    const { decisions } = watchNotes();
    const all = sequences.map((sequence) => deliver(sequence, sequence < 5 ? 'demo' : `c${sequence}`));
    await vi.advanceTimersByTimeAsync(wait);
    await Promise.all(all);
    const alone = decisions.filter((note) => note !== null) as { sequences: number[] }[];
    expect(alone.flatMap((note) => note.sequences).sort((a, b) => a - b)).toEqual(sequences);
    expect(alone.length).toBe(20);
    expect(await messages()).toEqual(['m1', 'm2', 'm3', 'm4']);
  });

  it('is not decided on together with those that came just before it', async () => {
    begin({ sequence: 3, begun: 1 });
    const { decisions } = watchNotes();
    await Promise.all([1, 2, 3, 4, 5].map((sequence) => deliver(sequence)));
    const notes = decisions.filter((note) => note !== null);
    expect(notes).toEqual([noted(1, 2), noted(1, 2), noted(3), noted(4), noted(5)]);
    expect(await messages()).toEqual(['m1', 'm2', 'm3', 'm4', 'm5']);
  });

  it('does not overtake one before it that fails when it has come already', async () => {
    begin({ sequence: 2, begun: 1 });
    world.faults.push(new Error('ENOSPC: no space left'));
    const all = [deliver(1), deliver(2), deliver(3)];
    await vi.advanceTimersByTimeAsync(5_000);
    await Promise.all(all);
    expect(await messages()).toEqual(['m1', 'm2', 'm3']);
  });

  it('a post becomes a dead letter after five attempts without an end, and its conversation continues', async () => {
    begin({ sequence: 1, begun: 5 });
    await Promise.all([deliver(1), deliver(2)]);
    expect(world.bus.dead).toMatchObject([
      { refused: { code: 'DECISION_FAILED', message: expect.stringContaining('5 times') } },
    ]);
    expect(await messages()).toEqual(['m2']);
  });

  it('is given up again when its dead letter could not be kept: that is no survival', async () => {
    begin({ sequence: 1, begun: 5 });
    const keep = world.bus.bus.publishDead;
    Object.assign(world.bus.bus, { publishDead: () => Promise.reject(new Error('no room for letters')) });
    const delivered = deliver(1);
    await vi.advanceTimersByTimeAsync(500);
    expect(tries(1)).toBe(5);
    Object.assign(world.bus.bus, { publishDead: keep });
    await vi.advanceTimersByTimeAsync(5_000);
    await delivered;
    expect(world.bus.dead).toMatchObject([{ refused: { code: 'DECISION_FAILED' } }]);
    expect(await messages()).toEqual([]);
  });

  it('is no dead letter when it is in the log already', async () => {
    begin();
    await deliver(1);
    await world.end();
    begin({ sequence: 1, begun: 5 });
    const again = deliver(1);
    await vi.advanceTimersByTimeAsync(10_000);
    await again;
    expect(world.bus.dead).toEqual([]);
    expect(await messages()).toEqual(['m1']);
  });

  it('is not held responsible for a full disk', async () => {
    begin({ sequence: 1, begun: 3 }, { sequence: 2, begun: 1 });
    world.faults.push(new Error('ENOSPC: no space left'));
    const waiting = [deliver(1), deliver(2, 'second')];
    await vi.advanceTimersByTimeAsync(3_500);
    expect(tries(1)).toBe(0);
    await vi.advanceTimersByTimeAsync(5_000);
    await Promise.all(waiting);
    expect(await messages()).toEqual(['m1']);
    expect(await messages('second')).toEqual(['m2']);
  });

  it('counts nothing where it waits while the daemon stops', async () => {
    begin({ sequence: 1, begun: 4 });
    world.faults.push(new Error('ENOSPC: no space left'));
    const stopped = [
      expect(deliver(1)).rejects.toMatchObject({ code: 'STOPPING' }),
      expect(deliver(2, 'other')).rejects.toThrow('ENOSPC'),
    ];
    await vi.advanceTimersByTimeAsync(10);
    world.shutdown.abort();
    await Promise.all(stopped);
    expect(world.bus.dead).toEqual([]);
    expect([tries(1), tries(2)]).toEqual([4, 0]);
    expect([disk.deciding, disk.documents.has('attempts')]).toEqual([null, false]);
  });

  it('is forgotten with the life of its stream, and a while after it is settled', async () => {
    begin({ sequence: 1, begun: 5 }, { sequence: 9, begun: 5 });
    const { attempts } = world.runtime;
    const settle = (sequence: number, stream = 's1') => {
      attempts.settledUpTo({ stream, sequence });
      return [1, 9].map((one) => tries(one));
    };
    expect([settle(8), settle(8)]).toEqual([
      [5, 5],
      [5, 5],
    ]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect([settle(8, 'other'), settle(9)]).toEqual([
      [5, 5],
      [0, 5],
    ]);
    await vi.advanceTimersByTimeAsync(0);
    expect(disk.documents.get('attempts')).toMatchObject({ posts: [{ sequence: 9, begun: 5 }] });
    expect(tries(9, 's2')).toBe(0);
    await attempts.failed({ stream: 's2', sequence: 3 }); // of a life that is over
    expect(tries(3)).toBe(0);
    attempts.readFrom('s2');
    expect([tries(3, 's2'), tries(9, 's2'), tries(9)]).toEqual([0, 0, 0]);
  });

  function breakDecisions(): void {
    Object.defineProperty(world.runtime.team.rules, 'phases', {
      get: () => {
        throw new TypeError('a bug');
      },
    });
  }

  it('a post that cannot be decided on becomes a dead letter after five attempts, although its stream was created again', async () => {
    begin();
    breakDecisions();
    const refused = deliver(1);
    await vi.advanceTimersByTimeAsync(1_500);
    world.runtime.attempts.readFrom('s2');
    await vi.advanceTimersByTimeAsync(3_000);
    await refused;
    expect(world.bus.dead).toMatchObject([
      { refused: { code: 'DECISION_FAILED', message: expect.stringContaining('tried 5 times') } },
    ]);
  });

  it('that fails to be decided on keeps its count for the next daemon', async () => {
    begin();
    breakDecisions();
    void deliver(1).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(2_500);
    expect(disk.documents.get('attempts')).toMatchObject({ posts: [{ sequence: 1, begun: 3 }] });
    world.shutdown.abort();
  });
});

/** Of several daemons: `shared-posts.test.ts`. */
describe('a suspect of one daemon', () => {
  const position = { stream: 's1', sequence: 1 };
  const disk = createMemoryDisk();
  let world: World;
  beforeEach(() => {
    vi.useFakeTimers();
    Object.assign(disk, createMemoryDisk());
  });
  afterEach(async () => {
    vi.useRealTimers();
    await world.end();
  });

  /** The post as it is delivered by a daemon that finds so many attempts at it. */
  async function deliver(begun: number): Promise<void> {
    const posts = [{ sequence: position.sequence, begun }];
    world = createWorld({ disk, attempts: { stream: position.stream, posts } });
    const delivery = world.bus.delivery('alice', 'demo', { id: 'm1', content: 'hello' }, { position });
    await world.posts.deliver(delivery);
  }
  const messages = async () =>
    (await world.entries()).filter(({ type }) => type === 'message').map(({ id }) => id);

  it('becomes a dead letter after five attempts, which says why', async () => {
    await deliver(5);
    expect(world.bus.dead).toMatchObject([
      {
        refused: {
          code: 'DECISION_FAILED',
          message: 'the daemon ended while it decided on it, 5 times',
          hint: expect.stringContaining('report it'),
        },
      },
    ]);
    expect(await messages()).toEqual([]);
  });

  it('is no dead letter when the log has it', async () => {
    await deliver(0);
    await world.end();
    const again = deliver(5);
    await vi.advanceTimersByTimeAsync(10_000);
    await again;
    expect(world.bus.dead).toEqual([]);
    expect(await messages()).toEqual(['m1']);
  });

  it('is tried again before that, later', async () => {
    const trying = deliver(4);
    await vi.advanceTimersByTimeAsync(2_900);
    expect([...disk.logs.keys()]).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    await trying;
    expect(await messages()).toEqual(['m1']);
  });

  it('does not wait when one attempt came to no end', async () => {
    await deliver(1);
    expect(await messages()).toEqual(['m1']);
  });

  it('stays in the stream when the daemon stops before it is tried', async () => {
    const trying = expect(deliver(4)).rejects.toMatchObject({ code: 'STOPPING' });
    await vi.advanceTimersByTimeAsync(10);
    world.shutdown.abort();
    await trying;
    expect([world.bus.dead, [...disk.logs.keys()]]).toEqual([[], []]);
  });
});

describe('what the last daemon was deciding on when it ended', () => {
  const last = { stream: 's1', sequences: [4, 6] };
  const left = ({ attempts, ...more }: { attempts?: object; deciding?: null } = {}) => {
    const disk = createMemoryDisk();
    Object.assign(disk, { deciding: last }, more);
    if (attempts) disk.documents.set('attempts', attempts);
    return disk;
  };
  const count = (attempts: Attempts, ...sequences: number[]) =>
    sequences.map((sequence) => attempts.before({ stream: 's1', sequence }));

  it('counts once more, durably, and nothing else does', async () => {
    const known = { stream: 's1', posts: [{ sequence: 4, begun: 2 }] };
    const disk = left({ attempts: known });
    const attempts = await Attempts.open(createMemoryStore(disk));
    expect(count(attempts, 4, 5, 6)).toEqual([3, 0, 1]);
    expect(disk.deciding).toBeNull();
    expect(disk.documents.get('attempts')).toEqual({
      stream: 's1',
      posts: [
        { sequence: 4, begun: 3 },
        { sequence: 6, begun: 1 },
      ],
    });
  });

  it('counts in its own life of the stream', async () => {
    const disk = left({ attempts: { stream: 's0', posts: [{ sequence: 4, begun: 4 }] } });
    expect(count(await Attempts.open(createMemoryStore(disk)), 4, 6)).toEqual([1, 1]);
  });

  it('is nothing after any other end', async () => {
    const known = { stream: 's1', posts: [{ sequence: 4, begun: 2 }] };
    const disk = left({ deciding: null, attempts: known });
    expect(count(await Attempts.open(createMemoryStore(disk)), 4, 6)).toEqual([2, 0]);
    expect(disk.documents.get('attempts')).toEqual(known);
  });

  it('is not known to the one after that when this one survived it', async () => {
    const posts = Array.from({ length: 20 }, (_, n) => ({ sequence: n + 10, begun: 2 }));
    const disk = left({ attempts: { stream: 's1', posts } });
    const store = createMemoryStore(disk);
    const attempts = await Attempts.open(store);
    const save = vi.spyOn(store, 'saveIngressAttempts');
    for (let sequence = 1; sequence < 29; sequence++) attempts.survived({ stream: 's1', sequence });
    await expect
      .poll(() => disk.documents.get('attempts'))
      .toMatchObject({ posts: [{ sequence: 29, begun: 2 }] });
    expect(save).toHaveBeenCalledTimes(2); // the first, and all others at once
    await store.close();
    expect(count(await Attempts.open(createMemoryStore(disk)), 4, 6, 10, 29)).toEqual([0, 0, 0, 2]);
  });

  it('costs posts without a count no save', async () => {
    const store = createMemoryStore(left({ deciding: null }));
    const save = vi.spyOn(store, 'saveIngressAttempts');
    const attempts = await Attempts.open(store);
    attempts.readFrom('s1');
    attempts.survived({ stream: 's1', sequence: 4 });
    attempts.settledUpTo({ stream: 's1', sequence: 4 });
    expect(save).not.toHaveBeenCalled();
  });

  it('is survived all the same where that cannot be kept', async () => {
    const store = createMemoryStore(left());
    const attempts = await Attempts.open(store);
    const save = vi.spyOn(store, 'saveIngressAttempts');
    save.mockRejectedValue(new Error('ENOSPC: no space left'));
    attempts.survived({ stream: 's1', sequence: 4 });
    await expect.poll(() => save.mock.calls.length).toBe(1);
    expect(count(attempts, 4, 6)).toEqual([0, 1]);
  });

  it('is known to the next daemon where its count cannot be kept', async () => {
    const store = createMemoryStore(left());
    store.saveIngressAttempts = () => Promise.reject(new Error('ENOSPC: no space left'));
    expect(count(await Attempts.open(store), 4, 6)).toEqual([1, 1]);
  });
});

describe('suspects of one daemon', () => {
  const stopping = new AbortController();
  const suspect = (attempts: Attempts, sequence: number) =>
    attempts.suspect({ stream: 's1', sequence })?.again ?? expect.fail('it is no suspect');
  const withCounts = (...counts: number[]) => {
    const posts = counts.map((begun, n) => ({ sequence: n + 1, begun }));
    return new Attempts(createMemoryStore(), { stream: 's1', posts });
  };
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are tried in the order in which their time comes, also where one of them takes long', async () => {
    const attempts = withCounts(4, 1, 3, 2, 2);
    const seen: number[] = [];
    const all = [1, 2, 3, 4, 5].map((sequence) =>
      suspect(attempts, sequence)(async () => {
        seen.push(sequence);
        if (sequence === 2) await new Promise((resolve) => setTimeout(resolve, 10_000));
      }, stopping.signal),
    );
    await vi.advanceTimersByTimeAsync(9_000);
    expect(seen).toEqual([2]);
    await vi.advanceTimersByTimeAsync(1_000);
    await Promise.all(all);
    expect(seen).toEqual([2, 4, 5, 3, 1]);
  });

  it('have waited since they came, though something else stood before them', async () => {
    const again = suspect(withCounts(3), 1);
    await vi.advanceTimersByTimeAsync(2_000);
    const attempt = vi.fn(async () => undefined);
    await again(attempt, stopping.signal);
    expect(attempt).toHaveBeenCalledOnce();
  });

  it('are not tried any more when the daemon is stopped while one is', async () => {
    const attempts = withCounts(1, 1);
    const stopped = new AbortController();
    let end = (): void => undefined;
    const first = suspect(attempts, 1)(() => new Promise((resolve) => (end = resolve)), stopped.signal);
    const attempt = vi.fn(async () => undefined);
    const second = expect(suspect(attempts, 2)(attempt, stopped.signal)).rejects.toMatchObject({
      code: 'STOPPING',
    });
    await vi.advanceTimersByTimeAsync(0);
    stopped.abort();
    end();
    await Promise.all([first, second]);
    expect(attempt).not.toHaveBeenCalled();
  });
});
