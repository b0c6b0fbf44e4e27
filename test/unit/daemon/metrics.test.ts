import { afterEach, describe, expect, it } from 'vitest';
import type { Assembled } from '../../../src/agents/index.ts';
import type { CallOutcome, Entry, Usage } from '../../../src/conversation/index.ts';
import { Metric, Metrics } from '../../../src/daemon/observe/metrics.ts';
import { openGateway } from '../gateway/support.ts';
import { createWorld, postCommand, type World } from './world.ts';

const entry = (fields: object, createdAt = '2026-11-22T00:00:00.000Z'): Entry =>
  ({ index: 4, createdAt, author: { kind: 'agent', id: 'pm' }, turnId: 't', ...fields }) as unknown as Entry;
const result = (more: object): Entry =>
  entry({ type: 'message', role: 'tool', agentId: 'pm', toolName: 'fs_read', duration: 12, ...more });
const answered = (usage?: Usage, duration = 500) =>
  ({ type: 'model-answered', agent: 'pm', turnId: 't', answer: { usage }, duration }) as CallOutcome;
const failed = (code: string, duration = 500) =>
  ({ type: 'model-failed', agent: 'pm', turnId: 't', code, duration }) as CallOutcome;
const samplesOf = (metrics: Metrics) => {
  const measured = metrics.measure({ openConversations: 2, ingressUnsettled: 1, ingressLag: null });
  return Object.fromEntries(measured.map((one) => [one.name, one.samples]));
};

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

  it('count turns, calls and results, by names that are no texts', () => {
    const metrics = new Metrics();
    metrics.applied([
      entry({ type: 'turn-started', agent: 'pm', trigger: [0] }),
      result({}),
      result({ toolName: 'send "the password"' }),
      entry({ type: 'message', role: 'user', content: 'x' }),
      entry({
        ...{ type: 'attempt-failed', agent: 'pm', model: 'default', key: 2, duration: 1 },
        ...{ code: 'my key is 1', next: { model: 'other' } },
      }),
      entry({ type: 'turn-ended', agent: 'pm', outcome: 'completed' }, '2026-11-22T00:00:02.000Z'),
    ]);
    metrics.modelCalled('default', answered({ inputTokens: 10, outputTokens: 2 }));
    const usage = {
      inputTokens: 20,
      cachedInputTokens: 5,
      cacheWriteTokens: 7,
      outputTokens: 3,
      reasoningTokens: 2,
    };
    metrics.modelCalled('default', answered(usage));
    metrics.modelCalled('default', failed('RATE_LIMITED'));
    metrics.viewBuilt({ request: { agent: 'pm' }, tokens: 50 } as Assembled, 100);
    metrics.viewBuilt({ request: { agent: 'pm' }, tokens: 50 } as Assembled); // of an unknown window
    metrics.appended(20);
    const samples = samplesOf(metrics);
    expect(samples).toMatchObject({
      parley_turns_started_total: [{ labels: { agent: 'pm' }, value: 1 }],
      parley_turns_ended_total: [{ labels: { agent: 'pm', outcome: 'completed' }, value: 1 }],
      parley_tool_results_total: [{ labels: { agent: 'pm' }, value: 2 }],
      parley_model_attempts_failed_total: [
        { labels: { model: 'default', key: '2', code: 'UNKNOWN' }, value: 1 },
      ],
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
    const sumOf = (name: string) => samples[name]?.filter(({ suffix }) => suffix === '_sum');
    expect(sumOf('parley_turn_seconds')).toMatchObject([{ value: 2 }]);
    expect(sumOf('parley_view_window_ratio')).toMatchObject([{ value: 0.5 }]);
    expect(sumOf('parley_append_seconds')).toMatchObject([{ value: 0.02 }]);
    expect(sumOf('parley_tool_call_seconds')).toMatchObject([
      { labels: { tool: 'fs_read' }, value: 0.012 },
      { labels: { tool: 'unknown' }, value: 0.012 },
    ]);
    expect(samples.process_resident_memory_bytes?.[0]?.value).toBeGreaterThan(0);
  });

  it('say how a model answered and why it failed last; a model without calls has none', () => {
    let minute = 0;
    const metrics = new Metrics(true, () => Date.parse(`2026-01-01T00:0${minute++}:00.000Z`));
    metrics.modelCalled('big', answered(undefined, 500), 100);
    metrics.modelCalled('big', answered(undefined, 1_500), 100);
    metrics.modelCalled('big', failed('TIMEOUT', 30_000));
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
  });

  it('calls of an agent in another process are counted as its own, and for no model', () => {
    let minute = 0;
    const metrics = new Metrics(true, () => Date.parse(`2026-01-01T00:0${minute++}:00.000Z`));
    metrics.modelCalled(null, { ...answered(), agent: 'critic' });
    metrics.modelCalled(null, { ...failed('AGENT_NOT_CONNECTED'), agent: 'critic' });
    metrics.modelCalled('critic', answered());
    expect(metrics.programs(['critic', 'idle'])).toEqual([
      {
        ...{ agent: 'critic', calls: 2, failed: 1, answeredAt: '2026-01-01T00:00:00.000Z' },
        failure: { at: '2026-01-01T00:01:00.000Z', code: 'AGENT_NOT_CONNECTED' },
      },
      { agent: 'idle', calls: 0, failed: 0 },
    ]);
    const answeredAt = '2026-01-01T00:02:00.000Z';
    expect(metrics.models(['critic'])).toMatchObject([{ calls: 1, failed: 0, answeredAt }]);
  });

  it('count nothing where nobody reads them', () => {
    const metrics = new Metrics(false);
    metrics.modelCalled('big', answered());
    metrics.modelCalled(null, answered());
    metrics.applied([entry({ type: 'turn-started', agent: 'pm', trigger: [0] }), result({})]);
    metrics.appended(1);
    expect([metrics.models(['big']), metrics.programs(['pm'])]).toEqual([undefined, undefined]);
    const counted = samplesOf(metrics);
    expect(counted).toMatchObject({ parley_turns_started_total: [], parley_model_calls_total: [] });
    expect(counted).toMatchObject({ parley_tool_results_total: [], parley_append_seconds: [] });
  });
});

describe('the metrics of a conversation at work', () => {
  let world: World;
  afterEach(() => world.end());
  const totals = () =>
    Object.fromEntries(
      ['turns_started', 'turns_ended', 'model_calls'].map((name) => [
        name,
        samplesOf(world.runtime.metrics)[`parley_${name}_total`]?.map(
          ({ labels: { outcome = '' }, value }) => [outcome, value],
        ),
      ]),
    );

  it('count nothing that could not be made durable', async () => {
    world = createWorld();
    const worker = await world.workers.use('demo');
    world.faults.push(new Error('no space left'));
    await expect(worker.submit(postCommand('m1', 'hello'))).rejects.toThrow('no space');
    expect(totals()).toEqual({ turns_started: [], turns_ended: [], model_calls: [] });
  });

  it.each([
    ['answered', 'completed'],
    ['failed', 'failed'],
    ['aborted', 'aborted'],
  ] as const)('count a model call that was %s, and its turn', async (outcome, end) => {
    world = createWorld();
    const worker = await world.workers.use('demo');
    await worker.submit(postCommand('m1', 'hello'));
    if (outcome === 'answered') world.calls[0]?.answer('hi');
    else if (outcome === 'failed') world.calls[0]?.fail('RATE_LIMITED');
    else await worker.submit({ type: 'stop', agent: null, by: { kind: 'person', id: 'a', name: 'A' } });
    await expect
      .poll(totals)
      .toEqual({ turns_started: [['', 1]], turns_ended: [[end, 1]], model_calls: [[outcome, 1]] });
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
