import { SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { type TraceContext, VERSION } from '../kernel/index.ts';
import type { Span } from './log-traces.ts';

/** Sends spans to a collector over OTLP/HTTP with protobuf. The package repeats a failed request for about 10 seconds. */
export interface OtlpOptions {
  /** The whole address, such as `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly service: string;
}

export type Sent =
  | { readonly kind: 'sent' }
  /** `isRefused`: the collector will never accept these spans. */
  | { readonly kind: 'failed'; readonly isRefused: boolean; readonly reason: string };

export interface SpanSender {
  /** Never rejects. */
  send(spans: readonly Span[]): Promise<Sent>;
  close(): Promise<void>;
}

type Exported = Parameters<OTLPTraceExporter['export']>[0][number];

const KINDS = { consumer: SpanKind.CONSUMER, internal: SpanKind.INTERNAL, client: SpanKind.CLIENT } as const;
const SCOPE = { name: 'parleyd', version: VERSION };
/** The batch is wrong or too large; other answers can change. */
const REFUSED: ReadonlySet<number | undefined> = new Set([400, 413, 422]);

export function createOtlpSender({ url, headers, service }: OtlpOptions): SpanSender {
  const exporter = new OTLPTraceExporter({ url, headers: { ...headers } });
  const attributes = { 'service.name': service, 'service.version': VERSION };
  const resource = { attributes } as unknown as Exported['resource']; // the exporter reads nothing else
  return {
    send: (spans) =>
      new Promise((resolve) => {
        exporter.export(
          spans.map((span) => exported(span, resource)),
          ({ code, error }) => {
            if (code === 0) return resolve({ kind: 'sent' });
            const status = (error as { code?: number } | undefined)?.code;
            const reason = error?.message || String(status ?? 'no answer');
            resolve({ kind: 'failed', isRefused: REFUSED.has(status), reason });
          },
        );
      }),
    close: () => exporter.shutdown(),
  };
}

function exported(span: Span, resource: Exported['resource']): Exported {
  const { traceId, parentId } = span;
  const parent = parentId === null ? undefined : contextOf({ traceId, spanId: parentId });
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => contextOf(span),
    ...(parent && { parentSpanContext: parent }),
    startTime: timeOf(span.start),
    endTime: timeOf(span.end),
    duration: timeOf(span.end - span.start),
    status: { code: span.isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: { ...span.attributes },
    links: span.links.map((link) => ({ context: contextOf(link) })),
    events: [],
    ended: true,
    resource,
    instrumentationScope: SCOPE,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function contextOf({ traceId, spanId }: TraceContext) {
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
}

/** Seconds and nanoseconds. */
function timeOf(milliseconds: number): [number, number] {
  return [Math.floor(milliseconds / 1_000), Math.round((milliseconds % 1_000) * 1_000_000)];
}
