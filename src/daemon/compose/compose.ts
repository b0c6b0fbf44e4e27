import { join } from 'node:path';
import type { Model } from '../../agents/index.ts';
import { type Bus, createSubjects, decodeRequest, statusOf } from '../../bus/index.ts';
import {
  afterLeaderElection,
  closeConnection,
  createNatsBus,
  enforceReplicas,
  type NatsOptions,
  openNats,
  requireReplicas,
  watchConnection,
} from '../../bus/nats/index.ts';
import {
  locateNatsServer,
  type ManagedLog,
  type ManagedServer,
  startManagedServer,
} from '../../bus/nats/managed/index.ts';
import {
  type Config,
  type HttpToken,
  type ModelConfig,
  revealed,
  type Secret,
  secretValuesOf,
} from '../../config/index.ts';
import { isHelpedByKey } from '../../conversation/index.ts';
import type { Gateway } from '../../gateway/index.ts';
import {
  createIdSource,
  hasCode,
  type Log,
  messageOf,
  PACKAGE,
  ParleyError,
  type Releasers,
  urlWithoutSecrets,
  VERSION,
} from '../../kernel/index.ts';
import {
  createOfflineModel,
  createRemoteModel,
  createScriptedModel,
  loadScript,
  type RemoteModel,
} from '../../models/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import { openJetStreamStore, openStreamSource } from '../../persistence/jetstream/index.ts';
import { holdDirectory, openFileStore } from '../../persistence/jsonl/index.ts';
import { Membership } from '../cluster/membership.ts';
import { fingerprintOf } from '../cluster/peer-monitor.ts';
import type { Watchers } from '../feed/watchers.ts';
import type { ReachCrashPoint } from '../observe/crash-points.ts';
import { composeInspector } from './archives.ts';
import { CodingAgents, type CodingAgentsParts } from './coding-agents.ts';
import { type Given, givenModels } from './given.ts';

export { checkJetStream } from '../../bus/nats/index.ts';
export { findNatsServer } from '../../bus/nats/managed/index.ts';
export { recordedScript } from '../../models/index.ts';

/**
 * Selects the server, the store, the bus, the models and HTTP for a configuration. Adapters with large dependencies are
 * loaded only if they are configured.
 */

/** For display: a simulation has no server. */
const MEMORY_URL = 'memory:';

const CONSOLE_FOLDER = join(PACKAGE, 'dist/console');

/** Shared by the parts of one daemon. */
interface Composition {
  readonly config: Config;
  readonly log: Log;
  readonly releasers: Releasers;
  /** Aborted when waits must end. */
  readonly shutdown: AbortSignal;
  readonly reach: ReachCrashPoint | undefined;
  readonly given: Given;
  /** The server; a managed one is started at the first call. */
  readonly server: () => Promise<ComposedServer>;
}

interface ComposedServer {
  /** For display: without credentials; several are separated by commas. */
  readonly url: string;
  /** For connections to the same server. */
  readonly address: NatsOptions & { readonly url: string };
}

/** `mayInstall`: whether a missing nats-server may be installed for `managed`. */
export function compose(parts: Omit<Composition, 'server'>, mayInstall: boolean | undefined): Composition {
  let server: Promise<ComposedServer> | null = null;
  return {
    ...parts,
    server: () => {
      server ??= parts.given.simulation
        ? Promise.resolve({ url: MEMORY_URL, address: { url: MEMORY_URL } })
        : composeServer(parts.config, parts.log, parts.releasers, mayInstall);
      server.catch(() => {}); // reported where it is awaited
      return server;
    },
  };
}

export async function composeStore(composition: Composition): Promise<ConversationStore> {
  const { config, log, reach, given } = composition;
  if (given.store) return given.store;
  const report = (event: { readonly type: string }) => log.warn(event, `the store reports: ${event.type}`);
  if (config.daemon.store === 'file') {
    return openFileStore(config.daemon.data, { log: report, reach });
  }
  const { releasers, shutdown } = composition;
  const directory = await holdDirectory(config.daemon.data); // before its managed server, which another daemon may be using
  releasers.add('data directory', () => directory.release());
  const { address } = await composition.server();
  const connection = await openNats({ ...address, name: 'parleyd-store', waitForServer: false });
  releasers.add('nats-store', () => closeConnection(connection));
  requireReplicas(connection, config.replicas);
  const options = {
    connection,
    watch: watchConnection(connection, log, () => undefined),
    names: createSubjects(config.subjectPrefix),
    reach,
    log: report,
    signal: shutdown,
  };
  return afterLeaderElection(connection, () => openJetStreamStore(options));
}

export async function composeBus(composition: Composition): Promise<Bus> {
  const { config, log, releasers, given } = composition;
  if (given.simulation) return given.simulation.bus;
  const { address } = await composition.server();
  const options = { ...address, name: 'parleyd', waitForServer: false };
  // Each is registered for release at once: a later step may fail, and an open connection keeps the process alive.
  const isAlone = config.daemon.store === 'file'; // daemons that share receive their own heartbeats
  const connection = await openNats({ ...options, noEcho: isAlone });
  releasers.add('nats', () => closeConnection(connection));
  const feedConnection = await openNats({ ...options, name: 'parleyd-feeds' });
  releasers.add('nats-feeds', () => closeConnection(feedConnection));
  requireReplicas(connection, config.replicas);
  const subjects = createSubjects(config.subjectPrefix);
  const busOptions = {
    subjects,
    log,
    feedConnection,
    version: VERSION,
    store: config.daemon.store,
    ingressBytes: config.ingress.maxBytes,
  };
  const bus = await afterLeaderElection(connection, () => createNatsBus(connection, busOptions));
  releasers.add('bus', () => bus.close());
  await afterLeaderElection(connection, () => enforceReplicas(connection, subjects, config.replicas, log)); // after the store: all streams exist
  return bus;
}

/** Null: the logs are not shared. */
export function composeMembership(
  config: Config,
  store: ConversationStore,
  bus: Bus,
  log: Log,
): Membership | null {
  if (store.shared === null) return null;
  const daemon = createIdSource()();
  const { failureTimeoutMs } = config.sharing;
  return new Membership({
    daemon,
    bus,
    logs: store.shared,
    log,
    failureTimeoutMs,
    fingerprint: fingerprintOf(config),
  });
}

async function composeServer(
  config: Config,
  log: Log,
  releasers: Releasers,
  mayInstall: boolean | undefined,
): Promise<ComposedServer> {
  const starting = startServer(config, log, mayInstall);
  releasers.add('nats-server', async () => (await starting.catch(() => null))?.stop()); // also if another part fails first
  const managed = await starting;
  const address = addressOf(config, managed);
  return { url: urlWithoutSecrets(address.url), address };
}

async function startServer(
  config: Config,
  log: Log,
  mayInstall: boolean | undefined,
): Promise<ManagedServer | null> {
  if (config.daemon.nats.kind !== 'managed') return null;
  const say: ManagedLog = (level, message, fields) => log[level](fields ?? {}, message);
  const { data, natsBinary } = config.daemon;
  const env = { ...config.tools.environment, ...(natsBinary && { NATS_BIN: natsBinary }) };
  const { path: binary, version } = await locateNatsServer({ env, log: say, mayInstall });
  return startManagedServer({ directory: join(data, 'nats'), log: say, binary, version });
}

function addressOf(config: Config, managed: ManagedServer | null): ComposedServer['address'] {
  if (managed) return { url: managed.url, nkey: managed.nkey, managed: true };
  const { nats } = config.daemon;
  if (nats.kind === 'managed') throw new ParleyError('INTERNAL', 'the managed server was not started');
  return revealed(nats);
}

export async function composeModels(config: Config, given: Given): Promise<ReadonlyMap<string, Model>> {
  const models = givenModels(given, config);
  for (const [name, model] of Object.entries(config.models))
    if (!models.has(name)) models.set(name, await composeModel(name, model, secretValuesOf(config)));
  return models;
}

/** `secrets`: what its errors do not show. */
export async function composeModel(
  name: string,
  model: ModelConfig,
  secrets: readonly string[] = [],
): Promise<Model> {
  if (model.provider === 'scripted')
    return model.script === null ? createOfflineModel() : createScriptedModel(await loadScript(model.script));
  const { createHttpModel } = await import('../../models/http/index.ts');
  const { dialect, baseURL, firstTokenMs, idleMs, apiKeys } = model;
  const of = { dialect, baseURL, name, model: model.model, firstTokenMs, idleMs, secrets };
  const withKey = (key: Secret | undefined) => createHttpModel({ ...of, apiKey: key?.reveal() });
  return apiKeys.length < 2 ? withKey(apiKeys[0]) : withKeys(apiKeys.map(withKey));
}

/** Calls outside turns, such as those for summaries, try one key after the other. A turn chooses among `keys` (CANDIDATES-2). */
function withKeys(keys: readonly Model[]): Model {
  return {
    keys,
    async call(request, options) {
      for (const [at, key] of keys.entries()) {
        const outcome = await key.call(request, options);
        const isLast = at === keys.length - 1;
        if (isLast || outcome.kind !== 'failed' || !isHelpedByKey(outcome.code)) return outcome;
        if (outcome.partial.content + outcome.partial.reasoning !== '') return outcome;
      }
      throw new Error('a model with several keys has none');
    },
  };
}

/** One model for all agents in other processes, those that this daemon runs included. */
export function composeRemoteModel(
  { config: { remoteAgents }, releasers, given: { simulation } }: Composition,
  bus: Bus,
  watchers: Watchers,
  { absentMs, ...parts }: CodingAgentsParts & { absentMs(agent: string): number | null },
): RemoteModel {
  if (simulation)
    return { isAbsent: () => false, ...simulation.remote, turnOver: () => undefined, close: () => undefined };
  const coding = new CodingAgents(parts);
  releasers.add('coding agents', () => coding.close());
  const openChannel = (agent: string) =>
    coding.openChannel(agent) ??
    bus.openTurn(agent, (conversation, chunk) => watchers.tell(conversation, { kind: 'live', agent, chunk }));
  const remote = createRemoteModel({ openChannel, absentMs, ...remoteAgents });
  releasers.add('agents in other processes', () => remote.close());
  return remote;
}

/** The default payload limit of the broker. */
const MAX_BODY_BYTES = 1_048_576;
/** Requests of standard protocols bring all messages with their files, of which only the last ones are posted: as much as OpenAI takes. */
const MAX_HISTORY_BYTES = 52_428_800;

/** Proxies close a connection that is idle for one minute. */
const HEARTBEAT_MS = 15_000;

export async function composeGateway(config: Config, log: Log, own?: HttpToken): Promise<Gateway | null> {
  const { http } = config.daemon;
  if (http === null) return null;
  const { consoleMissing, hasConsole, startGateway } = await import('../../gateway/index.ts');
  if (!hasConsole(CONSOLE_FOLDER)) {
    const { message, hint } = consoleMissing();
    log.warn({ checkout: PACKAGE, hint }, message);
  }
  return startGateway({
    host: http.host,
    port: http.port,
    tokens: [...http.tokens, ...(own ? [own] : [])].map(({ secret, ...token }) => ({
      ...token,
      secret: secret.reveal(),
    })),
    known: { hosts: http.hosts, origins: http.origins, publicUrl: http.publicUrl },
    maxBodyBytes: MAX_BODY_BYTES,
    maxHistoryBytes: MAX_HISTORY_BYTES,
    maxFileBytes: config.blobs.maxBytes,
    fetch: http.fetch,
    requestsPerSecond: http.requestsPerSecond,
    readers: http.readers,
    readersPerCaller: http.readersPerCaller,
    heartbeatMs: HEARTBEAT_MS,
    consoleFolder: CONSOLE_FOLDER,
    wire: { decode: decodeRequest, statusOf },
    version: VERSION,
    onFault: (error, path) => log.error({ path, error: messageOf(error) }, 'an HTTP request failed'),
  });
}

/** Reads the other store and changes nothing. A failed read does not prevent the start. */
export async function warnOfHidden(composition: Composition, store: ConversationStore): Promise<void> {
  const { config, log } = composition;
  const { data, nats, store: kind } = config.daemon;
  try {
    const others = kind === 'file' ? await inStreams(composition) : await inFiles(data);
    if (others.length === 0) return;
    const known = new Set(await store.conversations());
    const hidden: string[] = [];
    for (const id of others) if (!known.has(id) && (await store.deletedUpTo(id)) === null) hidden.push(id);
    if (hidden.length === 0) return;
    const [from, to] = kind === 'file' ? ['jetstream', `file:${data}`] : [`file:${data}`, 'jetstream'];
    const url = nats.kind === 'managed' ? 'URL' : urlWithoutSecrets(nats.url);
    log.warn(
      { conversations: hidden.length, in: from },
      `these conversations are in the other store and are not shown; \`parley migrate --from ${from} --to ${to} --nats ${url}\` moves all into an empty one`,
    );
  } catch (error) {
    log.info({ reason: messageOf(error) }, 'the other store could not be checked for conversations');
  }
}

async function inFiles(data: string): Promise<string[]> {
  try {
    return await composeInspector(data).conversations();
  } catch (error) {
    if (hasCode(error, 'USAGE_NO_DATA')) return [];
    throw error;
  }
}

async function inStreams({ config, log, server }: Composition): Promise<string[]> {
  const { address } = await server();
  const connection = await openNats({ ...address, name: 'parleyd-look' });
  try {
    const watch = watchConnection(connection, log, () => undefined);
    const source = await openStreamSource({ connection, watch, names: createSubjects(config.subjectPrefix) });
    return await source.archive.conversations();
  } catch (error) {
    if (hasCode(error, 'MIGRATION_NO_SOURCE')) return [];
    throw error;
  } finally {
    await closeConnection(connection);
  }
}
