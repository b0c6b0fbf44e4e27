import { describe, expect, it } from 'vitest';
import { Metric } from '../../../src/daemon/observe/metrics.ts';

describe('a metric', () => {
  it('as a histogram, has cumulative buckets, a sum and a count for each set of labels', () => {
    const metric = new Metric('x_seconds', 'X', [0.1, 1]);
    for (const value of [0.05, 0.1, 0.5, 3]) metric.add({ agent: 'pm' }, value);
    const { type, samples } = metric.measure();
    expect(type).toBe('histogram');
    expect(samples.map(({ suffix, labels, value }) => [suffix, labels.le, value])).toEqual([
      ['_bucket', '0.1', 2],
      ['_bucket', '1', 3],
      ['_bucket', '+Inf', 4],
      ['_sum', undefined, 3.65],
      ['_count', undefined, 4],
    ]);
  });

  it('has a bounded number of series: the others are counted together (METRIC-SERIES-1)', () => {
    const metric = new Metric('x_total', 'X');
    for (let n = 0; n < 2_000; n++) metric.add({ agent: `hired-${n}`, model: 'm' });
    const { samples } = metric.measure();
    expect(samples.length).toBe(501);
    expect(samples.at(-1)).toEqual({ labels: { agent: 'other', model: 'other' }, value: 1_500 });
  });
});
