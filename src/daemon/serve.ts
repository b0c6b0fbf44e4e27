import { FileCache, LivePublisher, type Model, type Retry, type Toolbox } from '../agents/index.ts';
import { type Bus, type IngressOptions, type Owner, type StreamPosition, VERBS } from '../bus/index.ts';
import type { Config } from '../config/index.ts';
import {
  type Clock,
  createIdSource,
  type Log,
  messageOf,
  monotonicClock,
  type ParleyError,
  type Releasers,
  refusal,
  sleep,
} from '../kernel/index.ts';
import type { ConversationStore } from '../persistence/index.ts';
import { Api } from './api/api.ts';
import { Erasure } from './api/erasure.ts';
import { Retention } from './api/retention.ts';
import { Search } from './api/search.ts';
import type { DaemonFacts } from './api/status.ts';
import type { Membership } from './cluster/membership.ts';
import { composeModels } from './compose/compose.ts';
import { type Given, timeOf } from './compose/given.ts';
import { IngressProgress } from './conversations/deletion.ts';
import type { Ownership } from './conversations/ownership.ts';
import type { Workers } from './conversations/workers.ts';
import { feedOf, type Watchers } from './feed/watchers.ts';
import { Files } from './files/files.ts';
import { Posts } from './ingress/posts.ts';
import type { ReachCrashPoint } from './observe/crash-points.ts';
import type { Gauges, Metrics } from './observe/metrics.ts';
import { createTelemetry, type TelemetrySink } from './observe/telemetry.ts';
import type { TraceExporter } from './observe/trace-exporter.ts';
import type { Reloader } from './reload/reloader.ts';
import { Definitions } from './team/definitions.ts';
import { ModelHealth } from './team/health.ts';
import { createTeam, type Team } from './team/team.ts';
import type { ToolProgress } from './tools/run-tool.ts';
import { WhatIfs } from './what-if/what-ifs.ts';

/**
 * What the parts of a daemon share, and its work: it reads posts and answers requests, alone or with the other daemons of the
 * cluster, and removes old texts.
 */

/**
 * Makes what the parts of a daemon share, from the configuration and the acquired resources. Each part names what it needs of
 * it: none takes all of it.
 */
export type Runtime = Awaited<ReturnType<typeof createRuntime>>;

/** The resources that must be acquired first. */
interface Acquired {
  readonly store: ConversationStore;
  readonly ownership: Ownership;
  readonly log: Log;
  /** Aborted when the grace period is over. */
  readonly shutdown: AbortSignal;
  readonly reach: ReachCrashPoint;
  readonly traces: TraceExporter | null;
  readonly bus: Bus;
  readonly watchers: Watchers;
  /** The model of all agents in other processes. */
  readonly remote: Model;
  readonly toolbox: Toolbox;
  readonly telemetry: TelemetrySink | undefined;
  /** Called with the milliseconds that an append took. */
  readonly onAppended?: ((durationMs: number) => void) | undefined;
  /** All posts are read again, so no stored position counts. */
  readonly isReplay: boolean;
  readonly given: Given;
}

export async function createRuntime(config: Config, acquired: Acquired) {
  const { bus, watchers, toolbox, telemetry, onAppended, isReplay, given, ...shared } = acquired;
  const { store, remote, log } = shared;
  const newId = createIdSource();
  const { now, elapsed, timers } = timeOf(given);
  let team = createTeam(config, { toolbox, models: await composeModels(config, given), remote, newId });
  const cache = new FileCache((sha256) => store.blobs.read(sha256));
  const definitions = new Definitions(store.definitions, cache);
  const taking = {
    ...{ store, now, newId },
    get team() {
      return team;
    },
  };
  return {
    ...shared,
    files: await Files.open(taking, given.simulation ? null : config.daemon.data),
    ...feedOf(store, bus, watchers),
    progress: new IngressProgress(isReplay ? null : await store.ingressPosition()),
    get team() {
      return team;
    },
    replaceTeam(next: Team) {
      team = next;
    },
    definitions,
    isManagedServer: config.daemon.nats.kind === 'managed',
    whatIfs: new WhatIfs({ ...{ definitions, log, elapsed, now }, team: () => team }),
    maxPayload: bus.maxPayload,
    ...{ now, elapsed, timers, newId },
    telemetry: createTelemetry(telemetry, now, onAppended),
    lastPost: (conversation: string) => bus.lastPost(conversation),
    ingressEnd: () => bus.ingressEnd(),
    livePublisher: new LivePublisher(timers, newId),
    health: new ModelHealth(elapsed),
    retries: new Map<string, Retry & { readonly since: number }>(),
    toolProgress: new Map<string, ToolProgress>(),
  };
}

/** Deliveries in progress: enough for many conversations, bounded for memory. */
const MAX_IN_FLIGHT = 1_000;
/** The limit of one publisher: a flood leaves capacity for others. */
const MAX_IN_FLIGHT_OF_ONE = 750;
/** The limit of one publisher: opening a conversation delays all other publishers (`fair-queue.ts`). */
const MAX_CONVERSATIONS_OF_ONE = 32;
/** 1000 posts of the maximum payload would be a gigabyte. */
const MAX_BYTES_IN_FLIGHT = 32 * 1_024 * 1_024;

interface Serving {
  readonly runtime: Runtime;
  readonly workers: Workers;
  readonly bus: Bus;
  readonly watchers: Watchers;
  readonly membership: Membership | null;
  readonly releasers: Releasers;
  readonly grace: Grace;
  readonly reloader: Reloader;
  readonly facts: DaemonFacts;
  readonly metrics: Pick<Metrics, 'models' | 'programs'>;
  readonly searchPath: string | null;
  readonly reading: { readonly owner: Owner; readonly isReplay: boolean };
}

export async function serve({
  runtime,
  workers,
  bus,
  watchers,
  membership,
  releasers,
  grace,
  reading,
  reloader,
  facts,
  metrics,
  searchPath,
}: Serving): Promise<{ readonly api: Pick<Api, 'handle'>; readonly posts: Posts }> {
  const stopping = new AbortController();
  const posts = new Posts(bus, workers, runtime, stopping.signal, membership?.otherDaemons);
  const erasure = new Erasure(bus.eraser, runtime);
  const search = new Search(runtime, workers, searchPath);
  releasers.add('search', () => search.close());
  releasers.add('uploads', () => runtime.files.close());
  const api = new Api(runtime, workers, posts, bus, { erasure, search, reloader, facts, metrics });
  releasers.add('ingress', () => {
    stopping.abort(); // do not wait for posts that cannot be made durable: they are redelivered
    return grace.within(membership ? membership.stopIngress() : bus.stopIngress());
  });
  releasers.add('erasure', () => erasure.stop());
  releasers.add('what-ifs', () => runtime.whatIfs.close());
  const after = await runtime.store.ingressPosition();
  const ingress: IngressOptions = {
    ...reading,
    after,
    maxInFlight: MAX_IN_FLIGHT,
    maxInFlightPerPublisher: MAX_IN_FLIGHT_OF_ONE,
    maxConversationsPerPublisher: MAX_CONVERSATIONS_OF_ONE,
    maxBytesInFlight: MAX_BYTES_IN_FLIGHT,
    onRead: (head) => posts.flood.read(head),
    isFlood: (unread) => posts.flood.isFlood(unread),
    onUnread: (unread) => posts.flood.skip(unread),
    onDelivery: (delivery) => posts.deliver(delivery),
    onPosition: onPositionOf(runtime),
    onSkip: (isElsewhere) => runtime.progress.skips(isElsewhere),
    onBegin: () => workers.cutDeletions(),
  };
  const work = { workers, api, watchers, runtime, ingress, leaving: stopping.signal };
  const shared = await membership?.join(work);
  if (!shared) await bus.startIngress(ingress);
  const answering = inTime(shared ?? api, runtime.store);
  await bus.serve(VERBS, (request) => answering.handle(request));
  erasure.start();
  return { api: answering, posts };
}

/** SERVER-FAULTS-1 */
function inTime(api: Pick<Api, 'handle'>, store: Runtime['store']): Pick<Api, 'handle'> {
  return {
    handle: (request) =>
      orFault(api.handle(request), store, ({ code, message, hint }) => ({
        ok: false,
        refusal: refusal(code, message, hint),
      })),
  };
}

/** Called when everything up to a position is settled. */
function onPositionOf(runtime: Runtime): (position: StreamPosition) => void {
  return (position) => {
    runtime.reach('post-settled');
    runtime.progress.settledUpTo(position);
    const saved = runtime.store.saveIngressPosition(position);
    saved.then(
      () => runtime.reach('position-saved'),
      (error: unknown) => {
        runtime.log.warn(
          { error: messageOf(error) },
          'the position in the ingress stream was not saved; posts may come again',
        );
      },
    );
  };
}

/** Returns how to stop it. */
export function startRetention(
  { retention: config, sharing }: Pick<Config, 'retention' | 'sharing'>,
  {
    runtime,
    workers,
    bus,
    membership,
    api,
  }: Pick<Serving, 'runtime' | 'workers' | 'bus' | 'membership'> & { readonly api: Pick<Api, 'handle'> },
): () => Promise<void> {
  const { now, log } = runtime;
  const retention = new Retention({
    ...{ config, now, log, eraser: bus.eraser },
    rows: () => workers.rows(),
    blobs: runtime.store.blobs,
    handle: (request) => api.handle(request),
    firstAfterMs: membership ? 2 * sharing.failureTimeoutMs : 0,
    isOurs: membership ? membership.isOurs : async () => true,
  });
  retention.start();
  return () => retention.stop();
}

export function gaugesOf(
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

/** The grace period of a stop: one for all waits, starting with the first. */
export class Grace {
  readonly #milliseconds: number;
  #over: Promise<void> | null = null;
  readonly #done = new AbortController();

  constructor(milliseconds: number) {
    this.#milliseconds = milliseconds;
  }

  /** Resolves when the work or the grace period ends. */
  async within(work: Promise<void>): Promise<void> {
    this.#over ??= sleep(this.#milliseconds, this.#done.signal);
    await Promise.race([work, this.#over]);
  }

  /** Ends the period and clears its timer. */
  end(): void {
    this.#done.abort();
  }
}

/** DAEMON-DAEMON-3: running work may finish within the grace period; the rest is dropped and stays outstanding in its log. */
export async function finish(
  workers: Workers,
  shutdown: AbortController,
  grace: Grace,
  onReleased?: Membership['released'],
): Promise<void> {
  const drained = workers.drain(onReleased);
  await grace.within(drained);
  grace.end();
  shutdown.abort();
  await drained;
  await workers.closeAll();
}

/** Milliseconds, before a fault of the server counts for what waits; and between two checks after that. */
const PATIENCE_MS = 1_500;
const CHECK_MS = 100;

/**
 * A server of the logs that has no space or does not answer keeps what it is asked waiting.
 *
 * SERVER-FAULTS-1 What waits for it is answered with the cause within two seconds. The work itself continues, and may succeed.
 *
 * The result of the work, or of `instead` if a fault of the server delays it.
 */
export function orFault<T>(
  work: Promise<T>,
  store: Pick<ConversationStore, 'fault'>,
  instead: (fault: ParleyError) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const check = () => {
      const fault = store.fault();
      if (fault) resolve(Promise.resolve(fault).then(instead));
      else timer = setTimeout(check, CHECK_MS).unref();
    };
    let timer = setTimeout(check, PATIENCE_MS).unref();
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
