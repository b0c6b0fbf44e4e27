import { setMaxListeners } from 'node:events';
import { type Bus, type IngressOptions, type Owner, type StreamPosition, VERBS } from '../bus/index.ts';
import { removeConnectionFile, writeConnectionFile } from '../client/index.ts';
import { type Config, Secret } from '../config/index.ts';
import { messageOf, monotonicClock, Releasers } from '../kernel/index.ts';
import { Api } from './api/api.ts';
import { Erasure } from './api/erasure.ts';
import { Retention } from './api/retention.ts';
import { Watchers } from './api/watchers.ts';
import type { Share } from './cluster/share.ts';
import {
  compose,
  composeBus,
  composeGateway,
  composeRemoteModel,
  composeShare,
  composeStore,
  composeToolbox,
} from './compose.ts';
import { storeName, warnOfHidden } from './compose-hidden.ts';
import { SOLE_OWNER } from './conversations/ownership.ts';
import { Workers } from './conversations/workers.ts';
import { createRuntime } from './create-runtime.ts';
import { makeDataDirectory } from './data-directory.ts';
import { createGatewayPort } from './gateway-port.ts';
import { Grace } from './grace.ts';
import { ownHttpToken } from './http-token.ts';
import { createLagMeter } from './ingress/ingress-progress.ts';
import { Posts } from './ingress/posts.ts';
import { Metrics } from './metrics.ts';
import type { Log, Runtime } from './runtime.ts';
import type { TelemetrySink } from './telemetry.ts';

/**
 * The daemon: everything acquired in order, released in reverse.
 *
 * DAEMON-DAEMON-1 The store's lock comes first: a second daemon on the same data fails before it touches anything.
 *    And no two on one server and prefix: both would answer every post.
 * DAEMON-DAEMON-2 What the logs owe is taken up before the first new post is read.
 * DAEMON-DAEMON-3 Stopping takes no new work, lets what runs reach a durable point within one grace, and is shared by its callers.
 */

export interface DaemonOptions {
  readonly config: Config;
  readonly log: Log;
  /** Told what the daemon does; absent: nothing is made of it. */
  readonly telemetry?: TelemetrySink | undefined;
  /** Answers every post that the stream holds and this store's logs do not. */
  readonly isReplay?: boolean;
  /** A nats-server that is missing may be installed; default: yes. */
  readonly mayInstall?: boolean | undefined;
}

export interface Readiness {
  readonly pid: number;
  /** Without credentials. */
  readonly nats: string;
  readonly http: string | null;
  /** Makes one-time codes for the token that the daemon made; null: tokens are configured, or none is needed. */
  readonly codeKey: Secret | null;
  readonly agents: readonly string[];
  readonly store: 'file' | 'jetstream';
  /** As logs that are shared name it; null: they are its own. */
  readonly daemon: string | null;
}

export interface Daemon {
  start(): Promise<Readiness>;
  /** Idempotent. Resolves when everything is released. */
  stop(): Promise<void>;
}

/** Deliveries under way at once: enough for many conversations, bounded for memory. */
const MAX_IN_FLIGHT = 1_000;
/** Of one publisher: whoever floods leaves room for others. */
const MAX_IN_FLIGHT_OF_ONE = 750;
/** Of one publisher: opening conversations costs all others time (`fair-queue.ts`). */
const MAX_CONVERSATIONS_OF_ONE = 32;
/** A thousand posts as large as the broker takes would be a gigabyte. */
const MAX_BYTES_IN_FLIGHT = 32 * 1_024 * 1_024;

export function createDaemon(options: DaemonOptions): Daemon {
  const releasers = new Releasers();
  const { log } = options;
  let stopping: Promise<void> | null = null;
  const stop = async () => {
    for (const failure of await releasers.release()) log.error({ failure }, 'something was not released');
  };
  return {
    async start() {
      try {
        return await start(options, releasers);
      } catch (error) {
        stopping ??= stop();
        await stopping;
        throw error;
      }
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
  };
}

async function start(
  { config, log, telemetry, isReplay = false, mayInstall = true }: DaemonOptions,
  releasers: Releasers,
): Promise<Readiness> {
  await makeDataDirectory(config.daemon.data);
  const shutdown = new AbortController();
  setMaxListeners(0, shutdown.signal); // one for each turn that runs: many are no leak
  const composition = compose(config, log, releasers, shutdown.signal, mayInstall);
  const store = await composeStore(composition); // DAEMON-DAEMON-1
  releasers.add('store', () => store.close());
  const httpToken = await ownHttpToken(config, log);
  const gateway = await composeGateway(config, log, httpToken);
  if (gateway) releasers.add('http', () => gateway.close());
  const bus = await composeBus(composition);
  const { url, address } = await composition.server();

  await bus.claim(); // DAEMON-DAEMON-1

  const share = composeShare(config, store, bus, log);
  const watchers = new Watchers(share?.follow);
  const remote = composeRemoteModel(config, bus, watchers);
  releasers.add('agents in other processes', () => remote.close());

  const toolbox = await composeToolbox(config, log, {
    entriesOf: (conversation) => workers.entriesOf(conversation),
    viewPolicyOf: (agent) => runtime.rules.viewPolicy(agent),
    store,
  });
  releasers.add('tools', () => toolbox.close());
  const metrics = new Metrics();
  const runtime = await createRuntime(config, {
    store,
    ownership: share?.ownership ?? SOLE_OWNER,
    bus,
    watchers,
    remote,
    toolbox,
    log,
    telemetry: gateway ? metrics.sink(telemetry) : telemetry, // nobody else asks for counts
    shutdown: shutdown.signal,
    isReplay,
  });
  const workers = new Workers(runtime);
  const grace = new Grace(config.shutdown.graceMs);
  releasers.add('readers', () => gateway?.dismissReaders()); // behind the last entries of what runs
  releasers.add('other daemons', () => share?.leave());
  releasers.add('conversations', () => finish(workers, shutdown, grace, share?.released));
  await workers.recover(); // DAEMON-DAEMON-2

  await warnOfHidden(composition, store);
  const reading = { owner: { id: store.id, name: storeName(config) }, isReplay };
  const { api, posts } = await serve({ runtime, workers, bus, share, releasers, grace, reading });
  releasers.add('retention', keepTo(config, { runtime, workers, bus, share, api }));
  const codeKey = gateway?.codeKey ?? undefined;
  const doors = { http: gateway?.url, httpToken: httpToken?.secret.reveal(), codeKey };
  await writeConnectionFile(config.daemon.data, { ...address, ...doors, ...identityOf(config) });
  releasers.add('address', () => removeConnectionFile(config.daemon.data, process.pid));
  gateway?.open(createGatewayPort(api, watchers, metrics, bus, gaugesOf(bus, workers, posts)));
  releasers.add('readiness', () => gateway?.open(null)); // the first to go: whoever balances load looks elsewhere
  workers
    .rebuildRows()
    .catch((error: unknown) => log.warn({ error: messageOf(error) }, 'the list is incomplete'));
  return {
    pid: process.pid,
    nats: url,
    http: gateway?.url ?? null,
    codeKey: codeKey === undefined ? null : new Secret(codeKey),
    agents: config.agents.map((agent) => agent.slug),
    store: config.daemon.store,
    daemon: share?.daemon ?? null,
  };
}

/** Answers how to stop. */
function keepTo(
  { retention: config, sharing }: Pick<Config, 'retention' | 'sharing'>,
  {
    runtime,
    workers,
    bus,
    share,
    api,
  }: Pick<Serving, 'runtime' | 'workers' | 'bus' | 'share'> & { readonly api: Pick<Api, 'handle'> },
): () => Promise<void> {
  const { now, log } = runtime;
  const retention = new Retention({
    ...{ config, now, log, eraser: bus.eraser },
    rows: () => workers.rows(),
    handle: (request) => api.handle(request),
    firstAfterMs: share ? 2 * sharing.silenceMs : 0,
    isOurs: share ? share.isOurs : async () => true,
  });
  retention.start();
  return () => retention.stop();
}

function gaugesOf(bus: Bus, workers: Workers, posts: Posts) {
  const lag = createLagMeter(() => bus.ingressLag(), monotonicClock);
  return async () => ({
    openConversations: workers.size,
    ingressUnsettled: posts.underWay,
    ingressLag: await lag(),
  });
}

/** What `connection.json` has besides where the server and the HTTP doors are. */
function identityOf({ subjectPrefix: prefix, daemon }: Config) {
  const managed: { managed?: true } = daemon.nats.kind === 'managed' ? { managed: true } : {};
  return { prefix, ...managed, pid: process.pid };
}

interface Serving {
  readonly runtime: Runtime;
  readonly workers: Workers;
  readonly bus: Bus;
  readonly share: Share | null;
  readonly releasers: Releasers;
  readonly grace: Grace;
  readonly reading: { readonly owner: Owner; readonly isReplay: boolean };
}

async function serve({
  runtime,
  workers,
  bus,
  share,
  releasers,
  grace,
  reading,
}: Serving): Promise<{ readonly api: Pick<Api, 'handle'>; readonly posts: Posts }> {
  const stopping = new AbortController();
  const posts = new Posts(bus, workers, runtime, stopping.signal);
  const erasure = new Erasure(bus.eraser, runtime);
  const api = new Api(runtime, workers, posts, bus, erasure);
  releasers.add('ingress', () => {
    stopping.abort(); // a post that cannot be made durable now is not waited for: it comes again
    return grace.within(share ? share.stopIngress() : bus.stopIngress());
  });
  releasers.add('erasure', () => erasure.stop());
  const after = await runtime.store.ingressPosition();
  const onPosition = positions(runtime);
  const onSkip: IngressOptions['onSkip'] = (isElsewhere) => runtime.progress.skips(isElsewhere);
  if (share) {
    const leaving = stopping.signal;
    const parts = { workers, posts, api, ...reading };
    const work = { ...parts, maxInFlight: MAX_IN_FLIGHT, after, onFloor: onPosition, onSkip, leaving };
    const shared = await share.join(work);
    await bus.serve(VERBS, (request) => shared.handle(request));
    erasure.start();
    return { api: shared, posts };
  }
  await bus.startIngress({
    ...reading,
    after,
    maxInFlight: MAX_IN_FLIGHT,
    maxInFlightPerPublisher: MAX_IN_FLIGHT_OF_ONE,
    maxConversationsPerPublisher: MAX_CONVERSATIONS_OF_ONE,
    maxBytesInFlight: MAX_BYTES_IN_FLIGHT,
    onRead: (post) => posts.read(post),
    onUnread: (unread) => posts.skip(unread),
    onDelivery: (delivery) => posts.deliver(delivery),
    onPosition,
    onSkip,
    onBegin: () => workers.cutDeletions(),
  });
  await bus.serve(VERBS, (request) => api.handle(request));
  erasure.start();
  return { api, posts };
}

/** Everything up to there is settled. */
function positions(runtime: Runtime): (position: StreamPosition) => void {
  return (position) => {
    runtime.reach('post-settled');
    runtime.progress.settledUpTo(position);
    runtime.attempts.settledUpTo(position);
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

/** DAEMON-DAEMON-3: what runs may finish within the grace; what does not is dropped, and its log owes it. */
async function finish(
  workers: Workers,
  shutdown: AbortController,
  grace: Grace,
  onReleased?: Share['released'],
): Promise<void> {
  const drained = workers.drain(onReleased);
  await grace.within(drained);
  grace.end();
  shutdown.abort();
  await drained;
  await workers.closeAll();
}
