import type { Config } from '../../config/index.ts';
import { type Releasers, systemClock } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import { openSender } from '../../traces/index.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Log } from '../runtime.ts';
import { TraceExporter } from './exporter.ts';

interface TracesParts {
  readonly log: Log;
  readonly store: ConversationStore;
  readonly releasers: Releasers;
  readonly workers: () => Workers;
}

/** The exporter of a daemon; null: no collector is configured, and nothing of OpenTelemetry is loaded. */
export async function openTraces(
  { traces, daemon }: Config,
  { log, store, releasers, workers }: TracesParts,
): Promise<TraceExporter | null> {
  if (traces === null) return null;
  const { url, service, content } = traces;
  const headers = Object.fromEntries(
    Object.entries(traces.headers).map(([name, value]) => [name, value.reveal()]),
  );
  const exporter = new TraceExporter({
    sender: await openSender({ url, service, headers }),
    ...{ content, log, now: systemClock, dataDirectory: daemon.data },
    read: async (id) => ((await store.exists(id)) ? (await workers().use(id)).entries() : null),
    changedSince: (time) => changedSince(time, store, workers()),
  });
  releasers.add('traces', () => exporter.stop()); // after the conversations: their last spans are sent
  return exporter;
}

/** Released before the conversations are closed: no log is read for traces from then on. */
export async function startTraces(exporter: TraceExporter | null, releasers: Releasers): Promise<void> {
  if (exporter === null) return;
  releasers.add('reading for traces', () => exporter.readNoMore());
  await exporter.start();
}

/** A row can be older than its log if the daemon was killed: where logs are shared, its length shows that. */
async function changedSince(
  time: number,
  { shared }: ConversationStore,
  workers: Workers,
): Promise<string[]> {
  const rows = await workers.rows();
  const newest = (await shared?.all()) ?? new Map();
  const lengths = new Map(rows.map(({ id, length }) => [id, length]));
  const recent = rows.filter(({ updatedAt }) => Date.parse(updatedAt) >= time).map(({ id }) => id);
  const stale = [...newest].flatMap(([id, { length }]) => (lengths.get(id) === length ? [] : [id]));
  return [...new Set([...recent, ...stale])];
}
