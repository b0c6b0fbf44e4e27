import type { IngressLag, ModelStatus, ProgramStatus } from '../../bus/index.ts';
import type { Measurement, Measurements } from '../../gateway/index.ts';
import { remember } from '../../kernel/index.ts';
import type { TelemetryEvent, TelemetrySink } from './telemetry.ts';
import type { SpanCounts } from './trace-exporter.ts';

/**
 * Counters and histograms by their labels.
 *
 * METRIC-SERIES-1  A metric has at most `MOST_SERIES` sets of labels: hired agents and tools of MCP servers have any names. Further
 *                  ones are counted together, with `other` in each label.
 */
type Labels = Readonly<Record<string, string>>;

const MOST_SERIES = 500;
const OTHER = 'other';

/** Upper bounds. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];
const SHARES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

interface Series {
  readonly labels: Labels;
  value: number;
  count: number;
  /** Observations up to each bound; empty for a counter. */
  readonly buckets: number[];
}

type Observed = Readonly<Omit<Series, 'labels'>>;

/** The value below which this share of the observations is: interpolated between bounds, at most the last one. */
function quantile({ count, buckets }: Observed, bounds: readonly number[], share: number): number {
  const wanted = count * share;
  const place = buckets.findIndex((observed) => observed >= wanted);
  if (place < 0) return bounds.at(-1) ?? 0;
  const [low, below] = place === 0 ? [0, 0] : [bounds[place - 1] ?? 0, buckets[place - 1] ?? 0];
  const inside = (wanted - below) / ((buckets[place] ?? 0) - below || 1);
  return low + inside * ((bounds[place] ?? 0) - low);
}

export class Metric {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[] | null;
  readonly #series = new Map<string, Series>();

  /** `bounds`: of a histogram; absent: a counter. */
  constructor(name: string, help: string, bounds?: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds ?? null;
  }

  /** Counts, or observes a value. */
  add(labels: Labels, value = 1): void {
    const series = this.#of(labels);
    series.value += value;
    series.count += 1;
    for (const [place, bound] of (this.#bounds ?? []).entries())
      if (value <= bound) series.buckets[place] = (series.buckets[place] ?? 0) + 1;
  }

  /** The sum of all series with these labels. */
  sum(labels: Labels): Observed {
    const isWanted = ({ labels: given }: Series) =>
      Object.entries(labels).every(([name, value]) => given[name] === value);
    const found = [...this.#series.values()].filter(isWanted);
    const total = (of: (series: Series) => number) => found.reduce((sum, series) => sum + of(series), 0);
    const buckets = (this.#bounds ?? []).map((_, place) => total((series) => series.buckets[place] ?? 0));
    return { value: total(({ value }) => value), count: total(({ count }) => count), buckets };
  }

  measure(): Measurement {
    const [name, help] = [this.#name, this.#help];
    const all = [...this.#series.values()];
    const bounds = this.#bounds;
    if (bounds === null)
      return { name, help, type: 'counter', samples: all.map(({ labels, value }) => ({ labels, value })) };
    return {
      name,
      help,
      type: 'histogram',
      samples: all.flatMap((series) => histogramSamples(series, bounds)),
    };
  }

  #of(labels: Labels): Series {
    const known = this.#series.get(JSON.stringify(labels));
    if (known) return known;
    const isFull = this.#series.size >= MOST_SERIES; // METRIC-SERIES-1
    const kept = isFull ? Object.fromEntries(Object.keys(labels).map((name) => [name, OTHER])) : labels;
    const key = JSON.stringify(kept);
    const series = this.#series.get(key) ?? {
      labels: kept,
      value: 0,
      count: 0,
      buckets: (this.#bounds ?? []).map(() => 0),
    };
    this.#series.set(key, series);
    return series;
  }
}

function histogramSamples(
  { labels, value, count, buckets }: Series,
  bounds: readonly number[],
): Measurement['samples'] {
  const bucket = (le: string, observed = 0) => ({
    suffix: '_bucket',
    labels: { ...labels, le },
    value: observed,
  });
  return [
    ...bounds.map((bound, place) => bucket(String(bound), buckets[place])),
    bucket('+Inf', count),
    { suffix: '_sum', labels, value },
    { suffix: '_count', labels, value: count },
  ];
}

/**
 * Counts the telemetry events of the daemon since its start (`telemetry.ts`). Labels are names of agents, models and tools,
 * and outcomes; never conversations (METRIC-SERIES-1).
 */
export interface Gauges {
  readonly openConversations: number;
  readonly ingressUnsettled: number;
  /** Null: unknown. */
  readonly ingressLag: IngressLag | null;
  /** Absent or null in the following: unknown, and not reported. */
  readonly approvals?: number | null;
  readonly questions?: number | null;
  readonly waitingAgents?: number | null;
  readonly deadLetters?: number | null;
  readonly spans?: SpanCounts | null;
}

type ModelCall = Extract<TelemetryEvent, { type: 'model_call' }>;

/** Turns whose start is remembered: another daemon may end one. */
const MOST_RUNNING = 10_000;

export class Metrics {
  readonly #metrics = {
    turnsStarted: new Metric(
      'parley_turns_started_total',
      'Turns that began, or continued after a crash or a wait',
    ),
    turnsEnded: new Metric('parley_turns_ended_total', 'Turns that ended, or began to wait'),
    turnSeconds: new Metric(
      'parley_turn_seconds',
      'From the start or continuation of a turn to its end or wait',
      SECONDS,
    ),
    toolResults: new Metric('parley_tool_results_total', 'Results of tools that became durable'),
    toolSeconds: new Metric('parley_tool_call_seconds', 'Time that tools ran', SECONDS),
    modelCalls: new Metric('parley_model_calls_total', 'Calls of models, retries included in each'),
    attempts: new Metric(
      'parley_model_attempts_failed_total',
      'Attempts after which another model or key was asked',
    ),
    modelSeconds: new Metric('parley_model_seconds_total', 'Time that calls of models took'),
    callSeconds: new Metric(
      'parley_model_call_seconds',
      'Time that one call of a model took, retries included',
      SECONDS,
    ),
    firstToken: new Metric(
      'parley_first_token_seconds',
      'From a call of a model to the first part of its answer',
      SECONDS,
    ),
    tokens: new Metric(
      'parley_tokens_total',
      'Tokens as the providers reported them; cached_input and cache_write are part of input, reasoning of output',
    ),
    usd: new Metric('parley_usd_total', 'Cost of calls whose price is known'),
    unpriced: new Metric(
      'parley_unpriced_calls_total',
      'Answered calls whose cost is unknown; not in parley_usd_total',
    ),
    viewShare: new Metric(
      'parley_view_window_ratio',
      'Estimated tokens of a request by the window of its model',
      SHARES,
    ),
    appendSeconds: new Metric('parley_append_seconds', 'Time until an append was durable', SECONDS),
  };
  /** The newest answer and failure of each model, and of each agent in another process. */
  readonly #newest = new Map<string, Pick<ModelStatus, 'answeredAt' | 'failure'>>();
  /** By turn that runs here: when it began or continued. */
  readonly #running = new Map<string, number>();

  readonly #isCounting: boolean;

  constructor(isCounting = true) {
    this.#isCounting = isCounting;
  }

  /** Counts each event and forwards it. */
  sink(next: TelemetrySink | undefined): TelemetrySink {
    return (event) => {
      this.#count(event);
      next?.(event);
    };
  }

  /** What the runtime reports to. */
  sinks(next: TelemetrySink | undefined) {
    if (!this.#isCounting) return { telemetry: next };
    return {
      telemetry: this.sink(next),
      onAppended: (durationMs: number) => observe(this.#metrics.appendSeconds, {}, durationMs),
    };
  }

  /** How these models are: what was counted, and their newest answer and failure. Undefined: nothing is counted. */
  models(names: readonly string[]): ModelStatus[] | undefined {
    if (!this.#isCounting) return undefined;
    return names.map((model) => {
      const answered = this.#metrics.callSeconds.sum({ model, outcome: 'answered' });
      const firstToken = this.#metrics.firstToken.sum({ model });
      const p95 = quantile(answered, SECONDS, 0.95);
      return {
        model,
        calls: this.#metrics.callSeconds.sum({ model }).count,
        failed: this.#metrics.callSeconds.sum({ model, outcome: 'failed' }).count,
        ...(answered.count > 0 && { seconds: { mean: answered.value / answered.count, p95 } }),
        ...(firstToken.count > 0 && { firstTokenSeconds: firstToken.value / firstToken.count }),
        ...this.#newest.get(keyOf(model, '')),
      };
    });
  }

  /** The calls of these agents in other processes. Undefined: nothing is counted. */
  programs(slugs: readonly string[]): ProgramStatus[] | undefined {
    if (!this.#isCounting) return undefined;
    const { modelCalls } = this.#metrics;
    return slugs.map((agent) => ({
      agent,
      calls: modelCalls.sum({ agent, model: NO_MODEL }).count,
      failed: modelCalls.sum({ agent, model: NO_MODEL, outcome: 'failed' }).count,
      ...this.#newest.get(keyOf(NO_MODEL, agent)),
    }));
  }

  measure({ ingressLag: lag, spans, ...gauges }: Gauges): Measurements {
    const { rss, heapUsed } = process.memoryUsage();
    const now = Date.now();
    const age = lag && Math.max(0, now - (lag.oldestTakenAt ?? now)) / 1_000;
    return [
      ...Object.values(this.#metrics).map((metric) => metric.measure()),
      ...gauge('parley_open_conversations', 'Conversations in memory', gauges.openConversations),
      ...gauge('parley_ingress_unsettled', 'Posts read that are not settled yet', gauges.ingressUnsettled),
      ...gauge('parley_ingress_lag', 'Posts in the ingress stream that are not settled yet', lag?.messages),
      ...gauge('parley_ingress_lag_seconds', 'Since the stream took the oldest of them', age),
      ...gauge('parley_approvals_open', 'Calls that wait for the approval of a person', gauges.approvals),
      ...gauge('parley_questions_open', 'Questions of agents that wait for a person', gauges.questions),
      ...gauge(
        'parley_agents_waiting',
        'Agents whose turn waits for a person or another agent',
        gauges.waitingAgents,
      ),
      ...gauge('parley_dead_letters', 'Refused posts that are kept', gauges.deadLetters),
      ...counter('parley_trace_spans_sent_total', 'Spans that the collector accepted', spans?.sent),
      ...counter(
        'parley_trace_spans_dropped_total',
        'Spans that the collector refused for good',
        spans?.dropped,
      ),
      ...gauge(
        'parley_trace_conversations_unsent',
        'Conversations with spans that are not sent yet',
        spans?.waiting,
      ),
      ...gauge('process_resident_memory_bytes', 'Resident memory of the daemon', rss),
      ...gauge('parley_heap_used_bytes', 'Heap in use', heapUsed),
      ...gauge('process_uptime_seconds', 'Since the process began', process.uptime()),
    ];
  }

  #count(event: TelemetryEvent): void {
    const metrics = this.#metrics;
    if (event.type === 'turn_started') {
      remember(this.#running, event.turnId, Date.parse(event.ts), MOST_RUNNING);
      metrics.turnsStarted.add({ agent: event.agent });
    } else if (event.type === 'turn_ended') {
      const labels = { agent: event.agent, outcome: event.outcome };
      metrics.turnsEnded.add(labels);
      const startedAt = this.#running.get(event.turnId) ?? Number.NaN;
      this.#running.delete(event.turnId);
      observe(metrics.turnSeconds, labels, Date.parse(event.ts) - startedAt);
    } else if (event.type === 'tool_result_persisted') {
      metrics.toolResults.add({ agent: event.agent });
      if (event.durationMs > 0)
        observe(metrics.toolSeconds, { tool: event.tool ?? 'unknown' }, event.durationMs);
    } else if (event.type === 'view_built') {
      if (event.contextTokens)
        metrics.viewShare.add({ agent: event.agent }, event.tokens / event.contextTokens);
    } else if (event.type === 'model_attempt_failed') {
      const { model, key, code = 'UNKNOWN' } = event;
      metrics.attempts.add({ model, ...(key !== undefined && { key: String(key) }), code });
    } else if (event.type === 'model_call') this.#countCall(event);
  }

  /** A cost that is unknown is no cost of 0. */
  #countCall({
    ts,
    agent,
    model = NO_MODEL,
    outcome,
    code = 'UNKNOWN',
    usage,
    durationMs,
    firstTokenMs,
  }: ModelCall): void {
    const key = keyOf(model, agent);
    const newest = this.#newest.get(key);
    if (outcome === 'answered') this.#newest.set(key, { ...newest, answeredAt: ts });
    if (outcome === 'failed') this.#newest.set(key, { ...newest, failure: { at: ts, code } });
    const metrics = this.#metrics;
    const labels = { agent, model };
    metrics.modelCalls.add({ ...labels, outcome });
    metrics.modelSeconds.add(labels, durationMs / 1_000);
    observe(metrics.callSeconds, { model, outcome }, durationMs);
    observe(metrics.firstToken, { model }, firstTokenMs ?? Number.NaN);
    if (outcome === 'answered' && usage?.usd === undefined) metrics.unpriced.add(labels);
    if (!usage) return;
    metrics.tokens.add({ ...labels, kind: 'input' }, usage.inputTokens);
    metrics.tokens.add({ ...labels, kind: 'cached_input' }, usage.cachedInputTokens ?? 0);
    metrics.tokens.add({ ...labels, kind: 'cache_write' }, usage.cacheWriteTokens ?? 0);
    metrics.tokens.add({ ...labels, kind: 'output' }, usage.outputTokens);
    metrics.tokens.add({ ...labels, kind: 'reasoning' }, usage.reasoningTokens ?? 0);
    if (usage.usd !== undefined) metrics.usd.add(labels, usage.usd);
  }
}

/** The label of calls of agents in other processes. No configured model has this name. */
const NO_MODEL = '';

const keyOf = (model: string, agent: string) => (model === NO_MODEL ? `agent ${agent}` : `model ${model}`);

function observe(metric: Metric, labels: Labels, milliseconds: number): void {
  if (milliseconds >= 0) metric.add(labels, milliseconds / 1_000);
}

/** Not reported where the value is unknown. */
const single =
  (type: 'gauge' | 'counter') =>
  (name: string, help: string, value: number | null | undefined): Measurement[] =>
    value === null || value === undefined ? [] : [{ name, help, type, samples: [{ labels: {}, value }] }];
const gauge = single('gauge');
const counter = single('counter');
