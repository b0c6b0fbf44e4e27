import { describe, expect, it } from 'vitest';
import { Metric, Metrics } from '../../../src/daemon/observe/metrics.ts';
import type { TelemetryEvent } from '../../../src/daemon/observe/telemetry.ts';
import { openGateway } from '../gateway/support.ts';

describe('the metrics', () => {
  it('are in the text format of Prometheus', async () => {
    const { gateway, daemon } = await openGateway();
    daemon.measurements = [
      {
        name: 'parley_x_total',
        help: 'What\nit is',
        type: 'counter',
        samples: [
          { labels: { agent: 'pm', odd: 'a"b\\c\nd' }, value: 3 },
          { labels: {}, value: 0.5 },
        ],
      },
      { name: 'parley_y', help: 'None', type: 'gauge', samples: [] },
    ];
    const answer = await fetch(`${gateway.url}/metrics`);
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await answer.text()).toBe(
      [
        '# HELP parley_x_total What\\nit is',
        '# TYPE parley_x_total counter',
        'parley_x_total{agent="pm",odd="a\\"b\\\\c\\nd"} 3',
        'parley_x_total 0.5',
        '# HELP parley_y None',
        '# TYPE parley_y gauge',
        '',
      ].join('\n'),
    );
    await gateway.close();
  });

  it('count the telemetry events and forward them', () => {
    const metrics = new Metrics();
    const passed: TelemetryEvent[] = [];
    const tell = metrics.sink((event) => void passed.push(event));
    const place = { ts: '', conversation: 'demo', agent: 'pm', turnId: 't' };
    const call = {
      ...place,
      type: 'model_call',
      model: 'default',
      call: 1,
      requestHash: '',
      durationMs: 500,
    } as const;
    const events: TelemetryEvent[] = [
      { ...place, type: 'turn_started', index: 1, trigger: [0], resumed: false },
      { ...call, outcome: 'answered', usage: { inputTokens: 10, outputTokens: 2 } },
      {
        ...call,
        outcome: 'answered',
        usage: {
          inputTokens: 20,
          cachedInputTokens: 5,
          cacheWriteTokens: 7,
          outputTokens: 3,
          reasoningTokens: 2,
        },
      },
      { ...call, outcome: 'failed' },
      { ...place, type: 'tool_result_persisted', index: 3, bytes: 1, isPreview: false, durationMs: 1 },
      { ...place, type: 'turn_ended', index: 4, outcome: 'completed', lastProcessedMessageIndex: 4 },
    ];
    for (const event of events) tell(event);
    expect(passed).toEqual(events);
    const measured = metrics.measure({ openConversations: 2, ingressUnsettled: 1, ingressLag: null });
    const samples = Object.fromEntries(measured.map((one) => [one.name, one.samples]));
    expect(samples).toMatchObject({
      parley_turns_started_total: [{ labels: { agent: 'pm' }, value: 1 }],
      parley_turns_ended_total: [{ labels: { agent: 'pm', outcome: 'completed' }, value: 1 }],
      parley_tool_results_total: [{ labels: { agent: 'pm' }, value: 1 }],
      parley_model_calls_total: [
        { labels: { agent: 'pm', model: 'default', outcome: 'answered' }, value: 2 },
        { labels: { agent: 'pm', model: 'default', outcome: 'failed' }, value: 1 },
      ],
      parley_model_seconds_total: [{ labels: { agent: 'pm', model: 'default' }, value: 1.5 }],
      parley_tokens_total: [
        { labels: { agent: 'pm', model: 'default', kind: 'input' }, value: 30 },
        { labels: { agent: 'pm', model: 'default', kind: 'cached_input' }, value: 5 },
        { labels: { agent: 'pm', model: 'default', kind: 'cache_write' }, value: 7 },
        { labels: { agent: 'pm', model: 'default', kind: 'output' }, value: 5 },
        { labels: { agent: 'pm', model: 'default', kind: 'reasoning' }, value: 2 },
      ],
      parley_usd_total: [],
      parley_unpriced_calls_total: [{ labels: { agent: 'pm', model: 'default' }, value: 2 }],
      parley_open_conversations: [{ labels: {}, value: 2 }],
      parley_ingress_unsettled: [{ labels: {}, value: 1 }],
    });
    expect(samples.process_resident_memory_bytes?.[0]?.value).toBeGreaterThan(0);
  });

  const CALL = { conversation: 'demo', turnId: 't', type: 'model_call', requestHash: '' } as const;

  it('say how a model answered and why it failed last; a model without calls has none', () => {
    const metrics = new Metrics();
    const tell = metrics.sink(undefined);
    const seconds = [0.5, 1.5, 30];
    for (const [n, took] of seconds.entries())
      tell({
        ...{
          ...CALL,
          agent: 'pm',
          model: 'big',
          ts: `2026-01-01T00:0${n}:00.000Z`,
          durationMs: took * 1_000,
        },
        ...(n === 2 ? { outcome: 'failed', code: 'TIMEOUT' } : { outcome: 'answered', firstTokenMs: 100 }),
      });
    const [big, idle] = metrics.models(['big', 'idle']) ?? [];
    expect(big).toMatchObject({ model: 'big', calls: 3, failed: 1, firstTokenSeconds: 0.1 });
    expect(big).toMatchObject({
      answeredAt: '2026-01-01T00:01:00.000Z',
      failure: { at: '2026-01-01T00:02:00.000Z', code: 'TIMEOUT' },
    });
    expect(big?.seconds?.mean).toBe(1); // of the answered ones
    expect(big?.seconds?.p95).toBeGreaterThan(1);
    expect(big?.seconds?.p95).toBeLessThanOrEqual(2.5);
    expect(idle).toEqual({ model: 'idle', calls: 0, failed: 0 });
    expect(new Metrics(false).models(['big'])).toBeUndefined();
  });

  it('calls of an agent in another process are counted as its own, and for no model', () => {
    const metrics = new Metrics();
    const tell = metrics.sink(undefined);
    const call = { ...CALL, durationMs: 5 };
    const [first, then] = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:01:00.000Z'];
    tell({ ...call, ts: first, agent: 'critic', outcome: 'answered' });
    tell({ ...call, ts: then, agent: 'critic', outcome: 'failed', code: 'AGENT_NOT_CONNECTED' });
    tell({ ...call, ts: then, agent: 'pm', model: 'critic', outcome: 'answered' });
    expect(metrics.programs(['critic', 'idle'])).toEqual([
      {
        ...{ agent: 'critic', calls: 2, failed: 1, answeredAt: first },
        failure: { at: then, code: 'AGENT_NOT_CONNECTED' },
      },
      { agent: 'idle', calls: 0, failed: 0 },
    ]);
    expect(metrics.models(['critic'])).toMatchObject([{ calls: 1, failed: 0, answeredAt: then }]);
    expect(new Metrics(false).programs(['critic'])).toBeUndefined();
  });
});

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
