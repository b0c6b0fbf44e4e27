import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Reconciler, type ReconcilerParts } from '../../../src/daemon/cluster/reconciler.ts';
import { ParleyError } from '../../../src/kernel/index.ts';

const unanswered = () => new ParleyError('STORE_UNAVAILABLE', 'could not read stream PARLEY_LOG: TIMEOUT');

/** One conversation that a daemon left behind. `faults`: what the next looks and takeovers fail with, in order. */
function scene(
  faults: { look?: Error[]; takeOver?: Error[] },
  others: readonly string[] = [],
  isFailed = () => true,
  ask: () => Promise<object> = async () => ({ kind: 'silent' }),
) {
  const done: string[] = [];
  const lines: string[] = [];
  const write = (_: object, message: string) => void lines.push(message);
  let hasOutstandingWork = true;
  const newest = () => ({
    sequence: 1,
    status: { hasOutstandingWork, claim: { daemon: 'gone', epoch: 1 } },
  });
  const parts = {
    daemon: 'one',
    failureTimeoutMs: 10_000,
    log: { info: write, warn: write, error: write },
    logs: {
      all: async () => {
        done.push('look');
        const fault = faults.look?.shift();
        if (fault) throw fault;
        return new Map([['demo', newest()]]);
      },
      newest: async () => newest(),
    },
    workers: {
      holds: () => false,
      storedRows: async () => [],
      refreshRow: async () => undefined,
      current: async () => ({ isOurs: false, hasOutstandingWork: true }),
      submit: async () => {
        const fault = faults.takeOver?.shift();
        done.push(fault ? 'failed' : 'taken over');
        if (fault) throw fault;
        hasOutstandingWork = false;
      },
    },
    monitor: { responsive: others, isFailed },
    router: {
      noteReleased: () => undefined,
      noteNewest: () => undefined,
      ask,
    },
  };
  return { reconciler: new Reconciler(parts as unknown as ReconcilerParts), done, lines };
}

/** When a look is made again. */
describe('orphaned work', () => {
  let reconciler: Reconciler;
  beforeEach(() => void vi.useFakeTimers());
  afterEach(async () => {
    await reconciler.stop();
    vi.useRealTimers();
  });

  it('is taken over in the first pass', async () => {
    const staged = scene({});
    reconciler = staged.reconciler;
    await reconciler.start();
    expect(staged.done).toEqual(['look', 'taken over']);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(staged.done).toEqual(['look', 'taken over']);
  });

  it('is taken over by another daemon a little later if the first choice does not do it (RECONCILER-2)', async () => {
    const first = ['two', 'three', 'four', 'five', 'six']; // one of them at least is before this one
    const staged = scene({}, first);
    reconciler = staged.reconciler;
    await reconciler.start();
    reconciler.gone(false);
    await vi.advanceTimersByTimeAsync(2_400);
    expect(staged.done).toEqual(['look', 'look']);
    await vi.advanceTimersByTimeAsync(200);
    expect(staged.done).toEqual(['look', 'look', 'look', 'taken over']);
  });

  it('is searched again after one second if the server did not answer (RECONCILER-3)', async () => {
    const staged = scene({ look: [unanswered(), unanswered()] });
    reconciler = staged.reconciler;
    await reconciler.start();
    expect(staged.done).toEqual(['look']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(staged.done).toEqual(['look', 'look']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(staged.done).toEqual(['look', 'look', 'look', 'taken over']);
  });

  it('is searched again soon if it is not yet known whether its owner failed (RECONCILER-3)', async () => {
    let isFailed = false;
    const staged = scene({}, [], () => isFailed);
    reconciler = staged.reconciler;
    await reconciler.start();
    isFailed = true;
    await vi.advanceTimersByTimeAsync(2_400);
    expect(staged.done).toEqual(['look']);
    await vi.advanceTimersByTimeAsync(200);
    expect(staged.done).toEqual(['look', 'look', 'taken over']);
  });

  it('is taken over when its owner answers slowly that it does not have it, also after a pass was interrupted (RECONCILER-4)', async () => {
    const slow = async () => {
      await new Promise((resolve) => setTimeout(resolve, 3_500)); // longer than until a pass is repeated
      return { kind: 'answered', body: { held: [] } };
    };
    const staged = scene({}, [], () => false, slow);
    reconciler = staged.reconciler;
    void reconciler.start();
    await vi.advanceTimersByTimeAsync(1_000);
    reconciler.gone(false); // interrupts it
    await vi.advanceTimersByTimeAsync(9_000);
    expect(staged.done).toContain('taken over');
  });

  it('is retried soon if the server did not answer the takeover (RECONCILER-3)', async () => {
    const staged = scene({ takeOver: [unanswered()] });
    reconciler = staged.reconciler;
    await reconciler.start();
    reconciler.gone(false); // two looks that fail are one that is made again
    await vi.advanceTimersByTimeAsync(0);
    expect(staged.done).toEqual(['look', 'failed', 'look', 'taken over']);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(staged.done).toEqual(['look', 'failed', 'look', 'taken over', 'look']);
  });

  it('is not retried if its log is damaged', async () => {
    const staged = scene({ takeOver: [new ParleyError('LOG_CORRUPT', 'no append')] });
    reconciler = staged.reconciler;
    await reconciler.start();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(staged.done).toEqual(['look', 'failed']);
    expect(staged.lines).toContain('a conversation could not be taken over');
  });

  it('is not taken over by a daemon that is stopping', async () => {
    const staged = scene({ look: [unanswered()] });
    reconciler = staged.reconciler;
    await reconciler.start();
    await reconciler.stop();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(staged.done).toEqual(['look']);
    expect(vi.getTimerCount()).toBe(0);
  });
});
