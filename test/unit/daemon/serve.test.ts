import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { IngressProgress } from '../../../src/daemon/conversations/ingress-progress.ts';
import { createLagMeter } from '../../../src/daemon/gateway-port.ts';
import { Metrics } from '../../../src/daemon/observe/metrics.ts';
import { orFault } from '../../../src/daemon/serve.ts';
import { Grace, ParleyError } from '../../../src/kernel/index.ts';

const at = (sequence: number, stream = 's1') => ({ stream, sequence });

describe('the progress in the ingress stream', () => {
  it('is unknown before anything was read', () => {
    expect(new IngressProgress(null).reached('demo')).toBeNull();
  });

  it('begins where the last daemon stood', () => {
    expect(new IngressProgress(at(4)).reached('demo')).toEqual(at(4));
  });

  it('of a conversation never counts the posts of another that are ahead (INGRESS-PROGRESS-1)', () => {
    const progress = new IngressProgress(at(4));
    progress.took('demo', at(6));
    progress.took('other', at(9));
    expect(progress.reached('demo')).toEqual(at(6));
    expect(progress.reached('third')).toEqual(at(4));
  });

  it('of a conversation stays on its newest durable post, in whatever order they became so (INGRESS-PROGRESS-2)', () => {
    const progress = new IngressProgress(at(4));
    progress.took('demo', at(8));
    progress.took('demo', at(6));
    expect(progress.reached('demo')).toEqual(at(8));
    progress.settledUpTo(at(7));
    expect(progress.reached('demo')).toEqual(at(8));
    progress.settledUpTo(at(9));
    expect(progress.reached('demo')).toEqual(at(9));
  });

  it('follows the stream into a new life, whose numbers are smaller', () => {
    const progress = new IngressProgress(at(400));
    progress.took('demo', at(2, 's2'));
    expect(progress.reached('demo')).toEqual(at(2, 's2'));
    progress.settledUpTo(at(1, 's2'));
    expect(progress.reached('demo')).toEqual(at(2, 's2'));
    progress.took('late', at(399));
    progress.settledUpTo(at(3, 's2'));
    expect(progress.reached('late')).toEqual(at(3, 's2'));
  });

  it('knows no place any more when the stream lost its end, since other posts get those places (INGRESS-PROGRESS-1)', () => {
    const progress = new IngressProgress(at(4));
    progress.took('demo', at(9));
    progress.settledUpTo(at(8));
    progress.settledUpTo(at(0));
    expect(progress.isSettled(at(7))).toBe(false);
    progress.took('demo', at(6));
    expect(progress.reached('demo')).toEqual(at(6));
  });
});

describe('the lag of the ingress', () => {
  it('the lag of the ingress is requested at most once per second, and a failure is ignored', async () => {
    let now = 0;
    let asked = 0;
    const read = async () => {
      asked += 1;
      if (asked === 2) throw new Error('there is no connection');
      return { messages: asked, oldestTakenAt: null };
    };
    const lag = createLagMeter(read, () => now);
    expect([await lag(), await lag(), asked]).toEqual([
      { messages: 1, oldestTakenAt: null },
      { messages: 1, oldestTakenAt: null },
      1,
    ]);
    now = 1_000;
    expect(await lag()).toBeNull();
    now = 2_000;
    expect(await lag()).toMatchObject({ messages: 3 });
  });

  it('the lag of the ingress is not reported while it is unknown', () => {
    const named = (ingressLag: { messages: number; oldestTakenAt: number | null } | null) =>
      new Metrics()
        .measure({ openConversations: 0, ingressUnsettled: 0, ingressLag })
        .filter(({ name }) => name.startsWith('parley_ingress_lag'))
        .map(({ name, samples }) => [name, samples[0]?.value]);
    expect(named(null)).toEqual([]);
    expect(named({ messages: 0, oldestTakenAt: null })).toEqual([
      ['parley_ingress_lag', 0],
      ['parley_ingress_lag_seconds', 0],
    ]);
    expect(named({ messages: 2, oldestTakenAt: 0 })[1]?.[1]).toBeGreaterThan(0);
  });
});

/** SERVER-FAULTS-1 */
describe('orFault', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const fault = new ParleyError('NATS_SILENT', 'the nats-server does not answer');
  const never = () => new Promise<string>(() => undefined);

  it('work that a fault of the server delays is answered with the cause before two seconds', async () => {
    const answer = orFault(never(), { fault: () => fault }, ({ code }) => code);
    await vi.advanceTimersByTimeAsync(1_900);
    expect(await answer).toBe('NATS_SILENT');
  });

  it('work is answered by itself while the server has no fault, and however long it takes', async () => {
    let found: ParleyError | null = null;
    let isAnswered = false;
    const answer = orFault(never(), { fault: () => found }, ({ code }) => code);
    void answer.then(() => {
      isAnswered = true;
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(isAnswered).toBe(false);
    found = fault;
    await vi.advanceTimersByTimeAsync(200);
    expect(await answer).toBe('NATS_SILENT');
    const done = orFault(Promise.resolve('done'), { fault: () => fault }, String);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await done).toBe('done');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('an error of the work, and one of the answer instead of it, reach the caller', async () => {
    await expect(orFault(Promise.reject(new Error('broken')), { fault: () => null }, String)).rejects.toThrow(
      'broken',
    );
    const answer = orFault(never(), { fault: () => fault }, (thrown) => {
      throw thrown;
    });
    const rejected = expect(answer).rejects.toBe(fault);
    await vi.advanceTimersByTimeAsync(2_000);
    await rejected;
  });
});

describe('the grace period of a stop', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const never = new Promise<void>(() => undefined);

  it('is shared by all consecutive waits', async () => {
    const grace = new Grace(1_000);
    let over = '';
    const waiting = (async () => {
      await grace.within(never);
      over += 'posts ';
      await grace.within(never);
      over += 'turns';
    })();
    await vi.advanceTimersByTimeAsync(999);
    expect(over).toBe('');
    await vi.advanceTimersByTimeAsync(1);
    expect(over).toBe('posts turns');
    await waiting;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends with the work, and leaves no timer', async () => {
    const grace = new Grace(1_000);
    await grace.within(Promise.resolve());
    grace.end();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('begins with the first wait', async () => {
    const grace = new Grace(1_000);
    await vi.advanceTimersByTimeAsync(5_000);
    let over = false;
    const waiting = grace.within(never).then(() => {
      over = true;
    });
    await vi.advanceTimersByTimeAsync(999);
    expect(over).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await waiting;
  });
});
