import { setMaxListeners } from 'node:events';
import type { Bus, SkipUntil } from '../bus/index.ts';
import { type ConnectionFile, removeConnectionFile, writeConnectionFile } from '../client/index.ts';
import { type Config, type HttpToken, Secret } from '../config/index.ts';
import type { Gateway } from '../gateway/index.ts';
import { Grace, type Log, messageOf, Releasers, VERSION } from '../kernel/index.ts';
import type { ConversationStore } from '../persistence/index.ts';
import type { DaemonFacts } from './api/status.ts';
import type { Membership } from './cluster/membership.ts';
import { fingerprintOf } from './cluster/peer-monitor.ts';
import { storeName } from './compose/archives.ts';
import type { CodingAgentsParts } from './compose/coding-agents.ts';
import {
  compose,
  composeBus,
  composeGateway,
  composeMembership,
  composeModels,
  composeRemoteModel,
  composeStore,
  warnOfHidden,
} from './compose/compose.ts';
import { makeDataDirectory, ownHttpToken } from './compose/data-directory.ts';
import { type Given, searchPathOf } from './compose/given.ts';
import { TeamTools, type ToolContext } from './compose/tools.ts';
import { SoleOwner } from './conversations/ownership.ts';
import { Workers } from './conversations/workers.ts';
import { Watchers } from './feed/watchers.ts';
import { createGatewayPort } from './gateway-port.ts';
import { decideOnOldPosts } from './ingress/old-posts.ts';
import type { ReachCrashPoint } from './observe/crash-points.ts';
import { Metrics } from './observe/metrics.ts';
import type { TelemetrySink } from './observe/telemetry.ts';
import { openTraces } from './observe/trace-exporter.ts';
import { Reloader } from './reload/reloader.ts';
import { createRuntime, type Runtime } from './runtime.ts';
import { serve, startRetention } from './serve.ts';
import { absentMsOf } from './team/team.ts';
import { requireRoom } from './tools/entry-content.ts';
/**
 * Starts and stops the daemon. Resources are acquired in order and released in reverse.
 *
 * DAEMON-DAEMON-1  The lock of the store comes first: a second daemon on the same data fails before it changes anything.
 *                  Then it registers with the server: two daemons on one prefix would answer every post twice.
 * DAEMON-DAEMON-2  Outstanding work is resumed before the first new post is read.
 * DAEMON-DAEMON-3  A stop takes no new work and lets running work reach a durable point within one grace period. All
 *                  callers of `stop` share it.
 */

export interface DaemonOptions extends Given {
  readonly config: Config;
  /** Reads the configuration again, for a reload; absent: there is none. */
  readonly load?: (() => Promise<Config>) | undefined;
  readonly log: Log;
  /** Receives telemetry events; absent: none are made. */
  readonly telemetry?: TelemetrySink | undefined;
  /** Answers every post of the stream that is not in the logs of this store. */
  readonly isReplay?: boolean;
  /** Answers no post up to there. `isReplay` has precedence. */
  readonly skipUntil?: SkipUntil | undefined;
  /** Whether a missing nats-server is installed: true, also without a terminal; absent, if a person agrees; false, never. */
  readonly mayInstall?: boolean | undefined;
  /** Called at each crash point; absent in production. */
  readonly reach?: ReachCrashPoint | undefined;
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
  /** The id of this daemon in shared logs; null: the logs are not shared. */
  readonly daemon: string | null;
}

export interface Daemon {
  /** Idempotent, and possible again after a stop or a failure. */
  start(): Promise<Readiness>;
  /** Reads the configuration again; the log gets the outcome. `why` names the cause. Does nothing before the daemon is ready. */
  reload(why: string): Promise<void>;
  /** Idempotent. During a start, waits for its end. Resolves when everything is released. */
  stop(): Promise<void>;
}

export function createDaemon(options: DaemonOptions): Daemon {
  const { log } = options;
  let releasers = new Releasers();
  let begun: Promise<Readiness> | null = null;
  let starting: Promise<Readiness> | null = null;
  let stopping: Promise<void> | null = null;
  let reloader: Reloader | null = null;
  const release = async () => {
    await begun?.catch(() => undefined); // what it acquires later would not be released
    for (const failure of await releasers.release()) log.error({ failure }, 'a resource was not released');
    releasers = new Releasers();
    begun = starting = stopping = reloader = null;
  };
  const stop = () => {
    stopping ??= release();
    return stopping;
  };
  return {
    async start() {
      if (stopping !== null) await stopping;
      begun ??= start(options, releasers, (started) => {
        reloader = started;
      });
      starting ??= begun.catch(async (error: unknown) => {
        await stop();
        throw error;
      });
      return starting;
    },
    async reload(why) {
      if (stopping === null) await reloader?.reloadAndLog(why);
    },
    stop,
  };
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: the order of a start is in one place
async function start(
  { config, load, log, telemetry, mayInstall, reach, ...more }: DaemonOptions,
  releasers: Releasers,
  onReloader: (reloader: Reloader) => void,
): Promise<Readiness> {
  const { isReplay = false, skipUntil, ...given } = more;
  const startedAt = new Date().toISOString();
  if (!given.simulation) await makeDataDirectory(config.daemon.data);
  const shutdown = new AbortController();
  setMaxListeners(0, shutdown.signal); // one for each running turn
  const { signal } = shutdown;
  const composition = compose({ config, log, releasers, shutdown: signal, reach, given }, mayInstall);
  const store = await composeStore(composition);
  releasers.add('store', () => store.close());
  void composition.server(); // starts meanwhile
  const httpToken = await ownHttpToken(config, log);
  const gateway = await composeGateway(config, log, httpToken);
  if (gateway) releasers.add('http', () => gateway.close());
  const { url, address } = await composition.server();
  const bus = await composeBus(composition);

  await register(bus, given.store ? null : warnOfHidden(composition, store));
  const reading = { owner: { id: store.id, name: storeName(config) }, isReplay };
  await decideOnOldPosts({ bus, store, log, skipUntil, ...reading });

  const membership = composeMembership(config, store, bus, log);
  const watchers = new Watchers(membership ?? undefined);
  const agents = agentsContext(config, () => ({ runtime, tools }));
  const remote = composeRemoteModel(composition, bus, watchers, agents);

  const context = toolContext(store, () => ({ runtime, workers }));
  const tools = new TeamTools(log, context, given);
  releasers.add('tools', () => tools.close());
  const metrics = new Metrics(gateway !== null); // only HTTP reads the counts
  const traces = await openTraces(config, { log, store, releasers, workers: () => workers });
  const runtime = await createRuntime(config, {
    store,
    ownership: membership?.ownership ?? new SoleOwner(),
    bus,
    watchers,
    remote,
    log,
    traces,
    toolbox: await tools.open(config),
    ...metrics.sinks(telemetry),
    shutdown: signal,
    reach: reach ?? (() => undefined),
    isReplay,
    given,
  });
  const workers = new Workers(runtime);
  const grace = new Grace(config.shutdown.graceMs);
  releasers.add('readers', () => gateway?.dismissReaders()); // after the last entries of running work
  releasers.add('other daemons', () => membership?.leave());
  releasers.add('conversations', () => finish(workers, shutdown, grace, membership?.released));
  await workers.recover();
  if (traces !== null) releasers.add('reading for traces', () => traces.readNoMore());

  const reloader = new Reloader({
    daemon: runtime,
    workers,
    tools,
    config,
    load,
    models: (next) => composeModels(next, given),
    onReplaced: (replaced) => membership?.reconfigured(fingerprintOf(replaced)),
  });
  const place = { nats: url, http: gateway?.url ?? null, daemon: membership?.daemon ?? null };
  const facts = factsOf(config, { ...place, startedAt });
  const serving = { runtime, workers, bus, watchers, membership, releasers, grace, reloader, facts, metrics };
  const { api, posts } = await serve({ ...serving, reading, searchPath: searchPathOf(given, config) });
  onReloader(reloader);
  given.simulation?.onReady(workers, runtime.files);
  releasers.add('retention', startRetention(config, { ...serving, api }));
  if (!given.simulation)
    await publishAddress(config, { ...address, ...httpFacts(config, gateway, httpToken) }, releasers);
  gateway?.open(createGatewayPort(config, { ...serving, api, posts, traces }));
  releasers.add('readiness', () => gateway?.open(null)); // released first: load balancers stop sending requests
  workers
    .rebuildRows()
    .catch((error: unknown) => log.warn({ error: messageOf(error) }, 'the conversation list is incomplete'));
  return readinessOf(config, { ...place, codeKey: httpToken && gateway?.codeKey });
}

/** DAEMON-DAEMON-3: running work may finish within the grace period; the rest is dropped and stays outstanding in its log. */
async function finish(
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

/** What agents in other processes need of the daemon while turns run. */
function agentsContext(
  config: Config,
  daemon: () => { readonly runtime: Runtime; readonly tools: TeamTools },
): Parameters<typeof composeRemoteModel>[3] {
  return {
    absentMs: (agent) => absentMsOf(daemon().runtime.team, agent),
    settingsOf: (agent) => daemon().runtime.team.coding.get(agent) ?? null,
    enclose: () => daemon().tools.encloseFor(config),
    publish: (...piece) => daemon().runtime.publishLive(...piece),
    files: fileStore(() => daemon().runtime),
  };
}

/** For agents that this daemon runs. */
function fileStore(daemon: () => Runtime): CodingAgentsParts['files'] {
  return {
    async read(conversation, sha256) {
      const content = await (await daemon().files.find(conversation, sha256)).read();
      if (content) return content;
      throw new Error('its content is not stored');
    },
    async keep(conversation, ...file) {
      const kept = await daemon().files.keep(...file);
      await requireRoom(conversation, [kept], daemon());
      return kept;
    },
  };
}

/** Other daemons have time to answer; meanwhile the other store is read. */
async function register(bus: Bus, looked: Promise<void> | null): Promise<void> {
  try {
    await bus.register();
  } finally {
    await looked;
  }
}

/** `parts`: created after the tools. */
function toolContext(
  store: ConversationStore,
  parts: () => { readonly runtime: Runtime; readonly workers: Workers },
): ToolContext {
  return {
    entriesOf: (conversation) => parts().workers.entriesOf(conversation),
    viewPolicyOf: (agent) => parts().runtime.team.rules.viewPolicy(agent),
    store,
  };
}

async function publishAddress(
  config: Config,
  address: Omit<ConnectionFile, 'prefix' | 'managed' | 'store' | 'pid'>,
  releasers: Releasers,
): Promise<void> {
  const { data } = config.daemon;
  await writeConnectionFile(data, { ...address, ...identityOf(config) });
  releasers.add('address', () => removeConnectionFile(data, process.pid));
}

/** For commands on this machine: the address, the daemon's own token, and what makes codes for the owners of all tokens. */
function httpFacts(config: Config, gateway: Gateway | null, own: HttpToken | undefined) {
  const tokens = [...(config.daemon.http?.tokens ?? []), ...(own ? [own] : [])];
  const codeFor = tokens.map(({ role, publisher, name }) => ({ role, publisher, ...(name && { name }) }));
  const codes = tokens.length > 0 ? { codeKey: gateway?.codeKey, codeFor } : {};
  return { http: gateway?.url, httpToken: own?.secret.reveal(), ...codes };
}

function readinessOf(
  { agents, daemon: { store } }: Config,
  { codeKey, ...more }: Pick<Readiness, 'nats' | 'http' | 'daemon'> & { codeKey: string | undefined },
): Readiness {
  return {
    pid: process.pid,
    ...more,
    store,
    codeKey: codeKey === undefined ? null : new Secret(codeKey),
    agents: agents.map((agent) => agent.slug),
  };
}

function factsOf(
  { daemon: { store, data } }: Config,
  found: Pick<DaemonFacts, 'nats' | 'http' | 'daemon' | 'startedAt'>,
) {
  return { ...found, version: VERSION, pid: process.pid, store, data };
}

/** The fields of `connection.json` besides the addresses. */
function identityOf({ subjectPrefix: prefix, daemon }: Config) {
  const managed: { managed?: true } = daemon.nats.kind === 'managed' ? { managed: true } : {};
  const shared: { store?: 'jetstream' } = daemon.store === 'jetstream' ? { store: 'jetstream' } : {};
  return { prefix, ...managed, ...shared, pid: process.pid };
}
