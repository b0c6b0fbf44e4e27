import { type Bus, type IngressOptions, type Owner, type StreamPosition, VERBS } from '../bus/index.ts';
import type { Config } from '../config/index.ts';
import { type Grace, messageOf, type ParleyError, type Releasers, refusalOf } from '../kernel/index.ts';
import type { ConversationStore } from '../persistence/index.ts';
import { Api } from './api/api.ts';
import { Erasure } from './api/erasure.ts';
import { Retention } from './api/retention.ts';
import { Search } from './api/search.ts';
import type { DaemonFacts } from './api/status.ts';
import type { Membership } from './cluster/membership.ts';
import type { Workers } from './conversations/workers.ts';
import type { Watchers } from './feed/watchers.ts';
import { Posts } from './ingress/posts.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Reloader } from './reload/reloader.ts';
import type { Runtime } from './runtime.ts';

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

/** The work of a daemon: it reads posts and answers requests, alone or with the other daemons of the cluster. */
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
    onSkip: (isElsewhere) => {
      runtime.progress.isElsewhere = isElsewhere;
    },
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
      orFault(api.handle(request), store, (fault) => ({ ok: false, refusal: refusalOf(fault) })),
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

/** Removes old conversations. Returns how to stop it. */
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
    config,
    now,
    log,
    eraser: bus.eraser,
    rows: () => workers.rows(),
    blobs: runtime.store.blobs,
    handle: (request) => api.handle(request),
    firstAfterMs: membership ? 2 * sharing.failureTimeoutMs : 0,
    isOurs: membership ? membership.isOurs : async () => true,
  });
  retention.start();
  return () => retention.stop();
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
