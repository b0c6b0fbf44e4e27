import type { IngressLag } from '../bus/index.ts';
import type { Measurement, Measurements } from '../gateway/index.ts';
import type { TelemetryEvent, TelemetrySink } from './telemetry.ts';

/**
 * Counts the telemetry events of the daemon since its start (`telemetry.ts`). Labels are configured names and outcomes,
 * never conversations, so that there are few of them.
 */
export interface Gauges {
  readonly openConversations: number;
  readonly ingressUnsettled: number;
  /** Null: unknown. */
  readonly ingressLag: IngressLag | null;
}

export class Metrics {
  readonly #counters = new Map<string, Map<string, { labels: Record<string, string>; value: number }>>();

  /** Counts each event and forwards it. */
  sink(next: TelemetrySink | undefined): TelemetrySink {
    return (event) => {
      this.#count(event);
      next?.(event);
    };
  }

  measure(gauges: Gauges): Measurements {
    const { rss, heapUsed } = process.memoryUsage();
    return [
      ...Object.entries(COUNTERS).map(
        ([name, help]): Measurement => ({
          name,
          help,
          type: 'counter',
          samples: [...(this.#counters.get(name)?.values() ?? [])],
        }),
      ),
      gauge('parley_open_conversations', 'Conversations in memory', gauges.openConversations),
      gauge('parley_ingress_unsettled', 'Posts read that are not settled yet', gauges.ingressUnsettled),
      ...lagGauges(gauges.ingressLag, Date.now()),
      gauge('process_resident_memory_bytes', 'Resident memory of the daemon', rss),
      gauge('parley_heap_used_bytes', 'Heap in use', heapUsed),
      gauge('process_uptime_seconds', 'Since the process began', process.uptime()),
    ];
  }

  #count(event: TelemetryEvent): void {
    if (event.type === 'turn_started') this.#add('parley_turns_started_total', { agent: event.agent });
    else if (event.type === 'turn_ended') {
      this.#add('parley_turns_ended_total', { agent: event.agent, outcome: event.outcome });
    } else if (event.type === 'tool_result_persisted') {
      this.#add('parley_tool_results_total', { agent: event.agent });
    } else if (event.type === 'model_call') {
      const { model, outcome, usage } = event;
      this.#add('parley_model_calls_total', { model, outcome });
      this.#add('parley_model_seconds_total', { model }, event.durationMs / 1_000);
      if (!usage) return;
      this.#add('parley_tokens_total', { model, kind: 'input' }, usage.inputTokens);
      this.#add('parley_tokens_total', { model, kind: 'cached_input' }, usage.cachedInputTokens ?? 0);
      this.#add('parley_tokens_total', { model, kind: 'output' }, usage.outputTokens);
    }
  }

  #add(name: keyof typeof COUNTERS, labels: Record<string, string>, by = 1): void {
    const samples = this.#counters.get(name) ?? new Map();
    this.#counters.set(name, samples);
    const key = JSON.stringify(labels);
    const sample = samples.get(key) ?? { labels, value: 0 };
    samples.set(key, sample);
    sample.value += by;
  }
}

const COUNTERS = {
  parley_turns_started_total: 'Turns that began, or continued after a crash or a wait',
  parley_turns_ended_total: 'Turns that ended, or began to wait',
  parley_tool_results_total: 'Results of tools that became durable',
  parley_model_calls_total: 'Calls of models, retries included in each',
  parley_model_seconds_total: 'Time that calls of models took',
  parley_tokens_total: 'Tokens as the providers reported them; cached_input is part of input',
};

/** Empty while the server cannot be asked. */
function lagGauges(lag: IngressLag | null, now: number): Measurement[] {
  if (lag === null) return [];
  const age = lag.oldestTakenAt === null ? 0 : Math.max(0, now - lag.oldestTakenAt) / 1_000;
  return [
    gauge('parley_ingress_lag', 'Posts in the ingress stream that are not settled yet', lag.messages),
    gauge('parley_ingress_lag_seconds', 'Since the stream took the oldest of them', age),
  ];
}

function gauge(name: string, help: string, value: number): Measurement {
  return { name, help, type: 'gauge', samples: [{ labels: {}, value }] };
}
