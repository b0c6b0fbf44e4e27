import { describe, expect, it } from 'vitest';
import { IngressProgress } from '../../../src/daemon/conversations/deletion.ts';
import { Metrics } from '../../../src/daemon/observe/metrics.ts';
import { createLagMeter } from '../../../src/daemon/serve.ts';

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
