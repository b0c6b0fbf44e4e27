/**
 * Traces: a log as spans of OpenTelemetry. A span is computed from entries alone, so an export can be repeated.
 *
 *   log-traces.ts  which spans the entries end, and every name of a span and of an attribute
 *   lineage.ts     which work caused which: traces, parents, and the ids of calls that have not ended
 *   otlp.ts        sends spans to a collector; the only file that imports OpenTelemetry
 *
 * No clock and no access to stores here. `otlp.ts` is loaded only where traces are configured or exported.
 */
import type { OtlpOptions, SpanSender } from './otlp.ts';

export { hasNoCaller, Lineage } from './lineage.ts';
export { LogTraces, type Span } from './log-traces.ts';
export type { SpanSender } from './otlp.ts';

export async function openSender(options: OtlpOptions): Promise<SpanSender> {
  return (await import('./otlp.ts')).createOtlpSender(options);
}
