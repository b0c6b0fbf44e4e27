import { describe, expect, it } from 'vitest';
import { Metrics } from '../../../src/daemon/observe/metrics.ts';
import { createLagMeter } from '../../../src/daemon/serve.ts';

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
