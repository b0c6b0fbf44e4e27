import type { Bus } from '../bus/index.ts';
import type { Config } from '../config/index.ts';
import type { GatewayPort } from '../gateway/index.ts';
import { type Clock, FULL_DISK_BYTES, freeBytes, monotonicClock, type ParleyError } from '../kernel/index.ts';
import type { Api } from './api/api.ts';
import { conversationIn } from './cluster/shared-api.ts';
import type { Workers } from './conversations/workers.ts';
import type { Watchers } from './feed/watchers.ts';
import type { Posts } from './ingress/posts.ts';
import type { Gauges, Metrics } from './observe/metrics.ts';
import type { TraceExporter } from './observe/trace-exporter.ts';
import type { Runtime } from './runtime.ts';
import { orFault } from './serve.ts';

interface GatewayParts {
  readonly api: Pick<Api, 'handle'>;
  readonly watchers: Watchers;
  readonly metrics: Metrics;
  readonly bus: Bus;
  readonly workers: Workers;
  readonly posts: Posts;
  readonly runtime: Runtime;
  readonly traces: Pick<TraceExporter, 'counts'> | null;
}

/** What HTTP takes of a daemon: its request API, what it published, its files, and its state as figures. */
export function createGatewayPort(
  config: Config,
  { api, watchers, metrics, bus, workers, posts, runtime, traces }: GatewayParts,
): GatewayPort {
  const gauges = gaugesOf(bus, workers, posts, traces);
  return {
    async request(request) {
      const conversation = conversationIn(request.body);
      if (conversation !== null) await watchers.ready(conversation);
      return api.handle(request);
    },
    keepFile: (...file) => runtime.files.keep(...file),
    findFile: (conversation, sha256) => runtime.files.find(conversation, sha256),
    subscribe: (conversation, onArrival) => watchers.watch(conversation, onArrival),
    liveSoFar: (conversation) => watchers.textsOf(conversation),
    measure: async () => metrics.measure(await orFault(gauges(), runtime.store, raise)),
    get isConnected() {
      return bus.isConnected;
    },
    isWritable: () => isWritable(config, posts),
  };
}

/** Only a failed append shows that a store on other machines is full. */
async function isWritable({ daemon }: Config, posts: Pick<Posts, 'isBlocked'>): Promise<boolean> {
  const { data, store, nats } = daemon;
  if (posts.isBlocked) return false;
  if (store !== 'file' && nats.kind !== 'managed') return true;
  return (await freeBytes(data).catch(() => FULL_DISK_BYTES)) >= FULL_DISK_BYTES; // a team in memory has no directory
}

function raise(fault: ParleyError): never {
  throw fault;
}

function gaugesOf(
  bus: Bus,
  workers: Workers,
  posts: Posts,
  traces: Pick<TraceExporter, 'counts'> | null,
): () => Promise<Gauges> {
  const lag = createLagMeter(() => bus.ingressLag(), monotonicClock);
  const letters = createLagMeter(() => bus.deadLetters.count(), monotonicClock);
  const waiting = createLagMeter(async () => {
    const rows = await workers.rows();
    const questions = rows.flatMap(({ activity = [] }) => activity.filter((one) => one.for === 'question'));
    return { agents: rows.flatMap((row) => row.waiting).length, questions: questions.length };
  }, monotonicClock);
  return async () => ({
    openConversations: workers.size,
    ingressUnsettled: posts.underWay,
    ingressLag: await lag(),
    approvals: (await workers.approvals()).length,
    waitingAgents: (await waiting())?.agents ?? null,
    questions: (await waiting())?.questions ?? null,
    deadLetters: await letters(),
    spans: traces?.counts ?? null,
  });
}

/** Shortest time between two requests to the broker. */
const FRESH_MS = 1_000;

/** The posts that are not in a log yet; null while the broker does not answer. Never rejects. */
export function createLagMeter<Value>(
  read: () => Promise<Value | null>,
  elapsed: Clock,
): () => Promise<Value | null> {
  let asked: { readonly at: number; readonly lag: Promise<Value | null> } | null = null;
  return () => {
    if (asked === null || elapsed() - asked.at >= FRESH_MS)
      asked = { at: elapsed(), lag: read().catch(() => null) };
    return asked.lag;
  };
}
