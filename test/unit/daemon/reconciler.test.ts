import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Heard } from '../../../src/bus/index.ts';
import {
  firstChoice,
  PASS_EVERY_MS,
  Reconciler,
  type ReconcilerParts,
} from '../../../src/daemon/cluster/reconciler.ts';
import { moved } from '../../../src/daemon/conversations/ownership.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import type { NewestAppend } from '../../../src/persistence/index.ts';

const TIMEOUT_MS = 1_000;
const running: Reconciler[] = [];
beforeEach(() => void vi.useFakeTimers());
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.stop()));
  vi.useRealTimers();
});

const outstanding = (daemon: string | null, hasOutstandingWork = true, sequence = 1): NewestAppend => ({
  status: { claim: daemon === null ? null : { daemon, epoch: 3 }, hasOutstandingWork },
  sequence,
  length: sequence,
});
const NO_ROW = { waiting: [], limited: [], stopped: [], activity: [], people: [], spent: [] };

interface Given {
  readonly logs: Readonly<Record<string, NewestAppend>>;
  readonly self?: string;
  readonly others?: readonly string[];
  readonly silent?: readonly string[];
  /** What another daemon answers to `holds`. */
  readonly heard?: () => Heard | Promise<Heard>;
  readonly open?: readonly string[];
  /** Called before the logs are listed, and before each takeover. */
  readonly look?: () => void;
  readonly submit?: () => Promise<void>;
  /** Lengths that the stored rows name; absent: those of the logs. */
  readonly rows?: Readonly<Record<string, number>>;
  readonly failureTimeoutMs?: number;
}

function reconcile({ logs, self = 'a', others = [], silent = [], open = [], ...more }: Given) {
  const { heard, look, submit, rows, failureTimeoutMs = TIMEOUT_MS } = more;
  const lengths = rows ?? Object.fromEntries(Object.entries(logs).map(([id, { length }]) => [id, length]));
  const given = { logs, silent };
  const taken: string[] = [];
  const free: string[] = [];
  const listed: string[] = [];
  const read: string[] = [];
  const said: string[] = [];
  const write = (_: object, message: string) => void said.push(message);
  const parts = {
    daemon: self,
    logs: {
      async all() {
        look?.();
        return new Map(Object.entries(given.logs));
      },
      newest: async (id: string) => given.logs[id] ?? null,
      forgetRow: async (id: string) => void listed.push(`not ${id}`),
    },
    workers: {
      holds: (id: string) => open.includes(id),
      storedRows: async () => Object.entries(lengths).map(([id, length]) => ({ id, length, ...NO_ROW })),
      refreshRow: async (id: string) => void listed.push(id),
      async current(id: string) {
        read.push(id);
        return { isOurs: false, hasOutstandingWork: given.logs[id]?.status?.hasOutstandingWork ?? false };
      },
      async submit(id: string) {
        await submit?.();
        taken.push(id);
      },
    },
    monitor: { responsive: others, isFailed: (daemon: string) => given.silent.includes(daemon) },
    router: {
      noteNewest: () => undefined,
      noteReleased: (id: string) => void free.push(id),
      ask: async () => heard?.() ?? { kind: 'no-responder' },
    },
    failureTimeoutMs,
    log: { info: write, warn: write, error: write },
  };
  const reconciler = new Reconciler(parts as unknown as ReconcilerParts);
  running.push(reconciler);
  return { reconciler, given, taken, free, read, said, listed };
}

/** Which orphaned work a daemon takes over. */
describe('the reconciler', () => {
  it('takes over outstanding work of a failed daemon, and nothing else', async () => {
    const { reconciler, taken, read } = reconcile({
      logs: { one: outstanding('b'), two: outstanding('b', false), three: outstanding(null) },
      silent: ['b'],
    });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    expect(taken).toEqual(['three', 'one']);
    expect(read).toEqual(['three', 'one']);
  });

  it('leaves a conversation to its live owner, and notes it as released when the owner does not have it open', async () => {
    const { reconciler, taken, free } = reconcile({
      logs: { one: outstanding('b'), two: outstanding('b') },
      others: ['b'],
      heard: () => ({ kind: 'answered', body: { held: ['one'] } }),
    });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    expect([taken, free]).toEqual([['two'], ['two']]);
  });

  it('leaves work of a daemon that cannot be reached, and checks again one failure timeout later', async () => {
    const { reconciler, given, taken, free } = reconcile({
      logs: { one: outstanding('b'), two: outstanding('c') },
    });
    await reconciler.pass({ isFirstChoiceOnly: true, handedOver: false });
    expect([taken, free]).toEqual([[], []]);
    given.silent = ['b', 'c'];
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS);
    expect([taken, free]).toEqual([['two', 'one'], []]);
  });

  it('does not let a claimant that is slow to answer delay the takeover of the work of a failed one (RECONCILER-4)', async () => {
    let answer = (_: Heard) => {};
    const { reconciler, taken } = reconcile({
      logs: { one: outstanding('gone'), two: outstanding('slow') },
      others: ['slow'],
      silent: ['gone'],
      heard: () => new Promise((resolve) => (answer = resolve)),
    });
    const pass = reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    await vi.advanceTimersByTimeAsync(0);
    expect(taken).toEqual(['one']);
    answer({ kind: 'answered', body: { held: [] } });
    await pass;
    expect(taken).toEqual(['one', 'two']);
  });

  it('does not let a claimant that is slow to answer delay the next pass, which asks it again (RECONCILER-4)', async () => {
    const answers: ((heard: Heard) => void)[] = [];
    const { reconciler, given, taken } = reconcile({
      logs: { one: outstanding('b'), two: outstanding('slow') },
      others: ['b', 'slow'],
      heard: () => new Promise((resolve) => answers.push(resolve)),
    });
    const first = reconciler.pass({ isFirstChoiceOnly: true, handedOver: false });
    await vi.advanceTimersByTimeAsync(0);
    given.silent = ['b'];
    const next = reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    const last = reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    await first;
    await next;
    await vi.advanceTimersByTimeAsync(0);
    expect(taken).toContain('one');
    expect(taken).not.toContain('two');
    answers.at(-1)?.({ kind: 'answered', body: { held: [] } });
    await last;
    expect(taken).toContain('two');
  });

  it('takes over its own work when the conversation is not open here', async () => {
    const { reconciler, taken } = reconcile({
      logs: { one: outstanding('a'), two: outstanding('a') },
      open: ['two'],
    });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    expect(taken).toEqual(['one']);
  });

  it('repairs the row of a conversation whose daemon was killed before it saved the row', async () => {
    const ended = (daemon: string, length = 6) => outstanding(daemon, false, length);
    const { reconciler, listed } = reconcile({
      logs: {
        ...{ one: ended('b'), same: ended('b', 4), mine: ended('a') },
        ...{ held: ended('c'), free: ended('c'), unknown: ended('d') },
      },
      rows: { same: 4, one: 3, held: 2 },
      open: ['mine'],
      silent: ['b'],
      others: ['c'],
      heard: () => ({ kind: 'answered', body: { held: ['held', 'unknown'] } }),
    });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    await vi.advanceTimersByTimeAsync(0);
    expect(listed).toEqual(['one', 'free']);
  });

  it('removes the row of a conversation that was deleted', async () => {
    const logs = { one: outstanding('a', false, 6) };
    const { reconciler, listed, said } = reconcile({ logs, rows: { one: 6, deleted: 5 }, open: ['one'] });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    await vi.advanceTimersByTimeAsync(0);
    expect([listed, said]).toEqual([['not deleted'], []]);
  });

  it('has one first choice for each conversation; the other daemons check a little later', async () => {
    const logs = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`c${n}`, outstanding('gone')]));
    const [a, b] = ['a', 'b'].map((self) =>
      reconcile({ logs, self, others: [self === 'a' ? 'b' : 'a'], silent: ['gone'] }),
    ) as [ReturnType<typeof reconcile>, ReturnType<typeof reconcile>];
    await Promise.all([
      a.reconciler.pass({ isFirstChoiceOnly: true, handedOver: false }),
      b.reconciler.pass({ isFirstChoiceOnly: true, handedOver: false }),
    ]);
    expect([...a.taken, ...b.taken].sort()).toEqual(Object.keys(logs).sort());
    expect(Math.min(a.taken.length, b.taken.length)).toBeGreaterThan(0);
    a.taken.length = 0;
    a.reconciler.gone(false);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS);
    expect(new Set(a.taken)).toEqual(new Set(Object.keys(logs)));
  });

  it('takes over at a start what the first choice has not taken over', async () => {
    const logs = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`c${n}`, outstanding('gone')]));
    const { reconciler, taken } = reconcile({ logs, self: 'a', others: ['b'], silent: ['gone'] });
    await reconciler.start();
    expect(taken.length).toBeLessThan(40);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS / 2);
    expect(new Set(taken)).toEqual(new Set(Object.keys(logs)));
  });

  const refusedAsMoved = (times: number) => async () => {
    if (times-- > 0) throw moved('one');
  };

  it('checks again after a daemon is gone, since a takeover that was refused as moved may not have moved', async () => {
    const logs = { one: outstanding('gone') };
    const { reconciler, taken } = reconcile({ logs, silent: ['gone'], submit: refusedAsMoved(1) });
    reconciler.gone(false);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS / 2);
    expect(taken).toEqual(['one']);
  });

  it('retries each second while a takeover is refused as moved and the claim has not changed', async () => {
    const logs = { one: outstanding('gone') };
    const { reconciler, taken } = reconcile({ logs, silent: ['gone'], submit: refusedAsMoved(3) });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    expect(taken).toEqual([]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(taken).toEqual(['one']);
  });

  it('leaves a conversation to the daemon that has claimed it meanwhile', async () => {
    const logs: Record<string, NewestAppend> = { one: outstanding('gone') };
    const { reconciler, read } = reconcile({
      logs,
      silent: ['gone'],
      submit: async () => {
        logs.one = {
          ...outstanding('b', true, 2),
          status: { claim: { daemon: 'b', epoch: 4 }, hasOutstandingWork: true },
        };
        throw moved('one');
      },
    });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    await vi.advanceTimersByTimeAsync(PASS_EVERY_MS / 2);
    expect(read).toEqual(['one']);
  });

  it('does not read the log of a conversation that the first choice has claimed since the pass began (RECONCILER-2)', async () => {
    const { reconciler, given, read } = reconcile({
      logs: { one: outstanding('b'), two: outstanding('b') },
      others: ['b'],
      heard: () => {
        given.logs = { one: outstanding('c'), two: outstanding('b') };
        return { kind: 'answered', body: { held: [] } };
      },
    });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    expect(read).toEqual(['two']);
  });

  it('reads a log without a stored status once for each newest append', async () => {
    const silentLog = { status: null, sequence: 5, length: 5 };
    const { reconciler, given, read } = reconcile({ logs: { old: silentLog } });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    expect(read).toEqual(['old']);
    given.logs = { old: { status: null, sequence: 6, length: 6 } };
    await reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    expect(read).toEqual(['old', 'old']);
  });

  it('runs a pass periodically', async () => {
    const { reconciler, taken } = reconcile({ logs: { one: outstanding(null) } });
    await reconciler.start();
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS);
    expect(taken).toEqual(['one', 'one']);
    await vi.advanceTimersByTimeAsync(PASS_EVERY_MS * 1.25);
    expect(taken).toEqual(['one', 'one', 'one']);
  });

  it('logs a failed search for outstanding work', async () => {
    const look = () => {
      throw new Error('no server');
    };
    const { reconciler, said } = reconcile({ logs: { one: outstanding(null) }, look });
    await reconciler.start();
    expect(said).toEqual(['the search for outstanding work failed; retrying']);
  });

  it('leaves work that another daemon takes first, and logs a takeover that failed', async () => {
    const first = reconcile({ logs: { one: outstanding(null) }, submit: () => Promise.reject(moved('one')) });
    await first.reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    expect(first.said).toEqual(['taking over a conversation']);
    const damaged = reconcile({
      logs: { one: outstanding(null) },
      submit: () => Promise.reject(new Error('damaged')),
    });
    await damaged.reconciler.pass({ isFirstChoiceOnly: false, handedOver: false });
    expect(damaged.said).toContain('a conversation could not be taken over');
  });

  it('takes over a released conversation at once', async () => {
    const { reconciler, taken, free } = reconcile({ logs: { one: outstanding('b') }, others: ['b'] });
    await reconciler.released('one', { daemon: 'b', epoch: 3 });
    expect([taken, free]).toEqual([['one'], ['one']]);
  });
});

const unanswered = () => new ParleyError('STORE_UNAVAILABLE', 'could not read stream PARLEY_LOG: TIMEOUT');

/** One conversation that a daemon left behind. `faults`: what the next looks and takeovers fail with, in order. */
function orphan(faults: { look?: Error[]; takeOver?: Error[] } = {}, more: Partial<Given> = {}) {
  const logs: Record<string, NewestAppend> = { demo: outstanding('gone') };
  const done: string[] = [];
  const look = () => {
    done.push('look');
    const fault = faults.look?.shift();
    if (fault) throw fault;
  };
  const submit = async () => {
    const fault = faults.takeOver?.shift();
    done.push(fault ? 'failed' : 'taken over');
    if (fault) throw fault;
    logs.demo = outstanding('gone', false);
  };
  const timing = { self: 'one', failureTimeoutMs: 10_000 };
  return { ...reconcile({ logs, silent: ['gone'], look, submit, ...timing, ...more }), done };
}

/** When a look is made again. */
describe('orphaned work', () => {
  it('is taken over in the first pass', async () => {
    const { reconciler, done } = orphan();
    await reconciler.start();
    expect(done).toEqual(['look', 'taken over']);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(done).toEqual(['look', 'taken over']);
  });

  it('is taken over by another daemon a little later if the first choice does not do it (RECONCILER-2)', async () => {
    const others = ['two', 'three', 'four', 'five', 'six']; // one of them at least is before this one
    const { reconciler, done } = orphan({}, { others });
    await reconciler.start();
    reconciler.gone(false);
    await vi.advanceTimersByTimeAsync(2_400);
    expect(done).toEqual(['look', 'look']);
    await vi.advanceTimersByTimeAsync(200);
    expect(done).toEqual(['look', 'look', 'look', 'taken over']);
  });

  it('is searched again after one second if the server did not answer (RECONCILER-3)', async () => {
    const { reconciler, done } = orphan({ look: [unanswered(), unanswered()] });
    await reconciler.start();
    expect(done).toEqual(['look']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(done).toEqual(['look', 'look']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(done).toEqual(['look', 'look', 'look', 'taken over']);
  });

  it('is searched again soon if it is not yet known whether its owner failed (RECONCILER-3)', async () => {
    const { reconciler, given, done } = orphan({}, { silent: [] });
    await reconciler.start();
    given.silent = ['gone'];
    await vi.advanceTimersByTimeAsync(2_400);
    expect(done).toEqual(['look']);
    await vi.advanceTimersByTimeAsync(200);
    expect(done).toEqual(['look', 'look', 'taken over']);
  });

  it('is taken over when its owner answers slowly that it does not have it, also after a pass was interrupted (RECONCILER-4)', async () => {
    const heard = async (): Promise<Heard> => {
      await new Promise((resolve) => setTimeout(resolve, 3_500)); // longer than until a pass is repeated
      return { kind: 'answered', body: { held: [] } };
    };
    const { reconciler, done } = orphan({}, { silent: [], heard });
    void reconciler.start();
    await vi.advanceTimersByTimeAsync(1_000);
    reconciler.gone(false); // interrupts it
    await vi.advanceTimersByTimeAsync(9_000);
    expect(done).toContain('taken over');
  });

  it('is retried soon if the server did not answer the takeover (RECONCILER-3)', async () => {
    const { reconciler, done } = orphan({ takeOver: [unanswered()] });
    await reconciler.start();
    reconciler.gone(false); // two looks that fail are one that is made again
    await vi.advanceTimersByTimeAsync(0);
    expect(done).toEqual(['look', 'failed', 'look', 'taken over']);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(done).toEqual(['look', 'failed', 'look', 'taken over', 'look']);
  });

  it('is not retried if its log is damaged', async () => {
    const { reconciler, done, said } = orphan({ takeOver: [new ParleyError('LOG_CORRUPT', 'no append')] });
    await reconciler.start();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(done).toEqual(['look', 'failed']);
    expect(said).toContain('a conversation could not be taken over');
  });

  it('is not taken over by a daemon that is stopping', async () => {
    const { reconciler, done } = orphan({ look: [unanswered()] });
    await reconciler.start();
    await reconciler.stop();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(done).toEqual(['look']);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the daemon that a conversation is offered to', () => {
  const TEAMS = [
    ['a', 'b'],
    ['host-1', 'host-2'],
    ['5f0c2d9e', '81b7a3c4'],
    ['QK2X', 'QK2Y', 'QK2Z'],
  ];
  it.each(TEAMS.map((daemons) => ({ daemons })))(
    'conversations with names that differ in their last digits are spread over $daemons',
    ({ daemons }) => {
      const counts = new Map<string, number>();
      for (let at = 0; at < 100; at++) {
        const chosen = firstChoice(`ticket-${at}`, daemons);
        counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
      }
      expect([...counts.keys()].sort()).toEqual([...daemons].sort());
      expect(Math.min(...counts.values())).toBeGreaterThan(100 / daemons.length / 2);
    },
  );

  it('is the same whatever the order in which the daemons are known', () => {
    expect(firstChoice('demo', ['a', 'b', 'c'])).toBe(firstChoice('demo', ['c', 'b', 'a']));
  });
});
