import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Model, Toolbox } from '../agents/index.ts';
import { type Bus, createSubjects, decodeRequest, statusOf } from '../bus/index.ts';
import {
  afterLeaderElection,
  closeConnection,
  createNatsBus,
  enforceReplicas,
  type NatsOptions,
  openNats,
  requireReplicas,
  urlWithoutSecrets,
  watchConnection,
} from '../bus/nats/index.ts';
import {
  locateNatsServer,
  type ManagedLog,
  type ManagedServer,
  startManagedServer,
} from '../bus/nats/managed/index.ts';
import { type Config, type HttpToken, type ModelConfig, revealed } from '../config/index.ts';
import type { Entry } from '../conversation/index.ts';
import type { Gateway } from '../gateway/index.ts';
import { createIdSource, messageOf, ParleyError, type Releasers, VERSION } from '../kernel/index.ts';
import { createRemoteModel, createScriptedModel, loadScript, type RemoteModel } from '../models/index.ts';
import type { ConversationStore, StoreInspector } from '../persistence/index.ts';
import { openJetStreamStore } from '../persistence/jetstream/index.ts';
import {
  checkFormat,
  holdDirectory,
  inspectFiles,
  keepAside,
  nodeLogFiles,
  onFullDisk,
  openFileStore,
  readerPaths,
  readLogFile,
  refuseFile,
  refuseUnfinishedMigration,
  storePaths,
} from '../persistence/jsonl/index.ts';
import {
  type Conversations,
  createBuiltInTools,
  createToolbox,
  type Enclose,
  LONGEST_CALL_MS,
} from '../tools/index.ts';
import type { Watchers } from './api/watchers.ts';
import { fingerprintOf } from './cluster/config-fingerprint.ts';
import { Share } from './cluster/share.ts';
import { hideData, openAcceptedTools } from './compose-enclosure.ts';
import type { Log } from './runtime.ts';

export { checkJetStream } from '../bus/nats/index.ts';

/**
 * The only file that names an adapter: which store, which bus, which models a configuration means. What stands on large
 * packages (providers, tool servers, HTTP) is loaded by a daemon that is configured to have it.
 */

/** For one call of a tool: longer than any tool allows itself, so that its own words about it are heard. */
const TOOL_TIMEOUT_MS = LONGEST_CALL_MS + 30_000;
/** How long a provider may be silent: until its first delta, and then between deltas. */
const MODEL_TIMEOUT_MS = 120_000;

/** Built beside the compiled source; the same place from `src/` and from `dist/`. */
const CONSOLE_FOLDER = fileURLToPath(new URL('../../dist/console', import.meta.url));

/** What is composed for one daemon. */
export interface Composition {
  readonly config: Config;
  readonly log: Log;
  readonly releasers: Releasers;
  /** Aborted when nothing may be waited for any longer. */
  readonly shutdown: AbortSignal;
  /** The server that all of it uses: started when it is first asked for. */
  readonly server: () => Promise<ComposedServer>;
}

export interface ComposedServer {
  /** As it may be shown: without credentials; several with commas. */
  readonly url: string;
  /** How others reach the same server. */
  readonly address: NatsOptions & { readonly url: string };
}

/** `mayInstall`: a nats-server that is missing, for `managed`. */
export function compose(
  config: Config,
  log: Log,
  releasers: Releasers,
  shutdown: AbortSignal,
  mayInstall: boolean,
): Composition {
  let server: Promise<ComposedServer> | null = null;
  return {
    config,
    log,
    releasers,
    shutdown,
    server: () => {
      server ??= composeServer(config, log, releasers, mayInstall);
      return server;
    },
  };
}

export async function composeStore(composition: Composition): Promise<ConversationStore> {
  const { config, log } = composition;
  const report = (event: { readonly type: string }) => log.warn(event, `the store reports: ${event.type}`);
  if (config.daemon.store === 'file') {
    const files = config.fullDisk === null ? nodeLogFiles : onFullDisk(nodeLogFiles, config.fullDisk);
    return openFileStore(config.daemon.data, { log: report, files });
  }
  const { releasers, shutdown } = composition;
  const directory = await holdDirectory(config.daemon.data); // before its server, which another daemon may be using
  releasers.add('data directory', () => directory.release());
  const { address } = await composition.server();
  const connection = await openNats({ ...address, name: 'parleyd-store', waitForServer: false });
  releasers.add('nats-store', () => closeConnection(connection));
  requireReplicas(connection, config.replicas);
  const options = {
    connection,
    watch: watchConnection(connection, log, () => undefined),
    names: createSubjects(config.subjectPrefix),
    isFenced: config.isFenced,
    log: report,
    signal: shutdown,
  };
  return afterLeaderElection(connection, () => openJetStreamStore(options));
}

export async function composeBus(composition: Composition): Promise<Bus> {
  const { config, log, releasers } = composition;
  const { address } = await composition.server();
  const options = { ...address, name: 'parleyd', waitForServer: false };
  // Each for release as soon as it is there: what comes next may fail, and an open connection keeps the process alive.
  const connection = await openNats(options);
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
  await afterLeaderElection(connection, () => enforceReplicas(connection, subjects, config.replicas, log)); // behind the store: all are there
  return bus;
}

/** Null: the logs are this daemon's alone. */
export function composeShare(config: Config, store: ConversationStore, bus: Bus, log: Log): Share | null {
  if (store.shared === null) return null;
  const daemon = createIdSource()();
  const { silenceMs } = config.sharing;
  return new Share({ daemon, bus, logs: store.shared, silenceMs, likeness: fingerprintOf(config), log });
}

async function composeServer(
  config: Config,
  log: Log,
  releasers: Releasers,
  mayInstall: boolean,
): Promise<ComposedServer> {
  const managed = await startServer(config, log, mayInstall);
  if (managed) releasers.add('nats-server', () => managed.stop());
  const address = addressOf(config, managed);
  return { url: urlWithoutSecrets(address.url), address };
}

async function startServer(config: Config, log: Log, mayInstall: boolean): Promise<ManagedServer | null> {
  if (config.daemon.nats.kind !== 'managed') return null;
  const say: ManagedLog = (level, message, fields) => log[level](fields ?? {}, message);
  const { data, natsBinary } = config.daemon;
  const env = natsBinary ? { NATS_BIN: natsBinary } : {};
  const { path } = await locateNatsServer({ env, log: say, mayInstall });
  return startManagedServer({ directory: join(data, 'nats'), log: say, binary: path });
}

function addressOf(config: Config, managed: ManagedServer | null): ComposedServer['address'] {
  if (managed) return { url: managed.url, nkey: managed.nkey, managed: true };
  const { nats } = config.daemon;
  if (nats.kind === 'managed') throw new ParleyError('INTERNAL', 'the managed server was not started');
  return revealed(nats);
}

/** One model for each configured name. */
export async function composeModels(config: Config): Promise<ReadonlyMap<string, Model>> {
  const models = new Map<string, Model>();
  for (const [name, model] of Object.entries(config.models)) models.set(name, await composeModel(model));
  return models;
}

async function composeModel(model: ModelConfig): Promise<Model> {
  if (model.provider === 'scripted') return createScriptedModel(await loadScript(model.script ?? undefined));
  const { createOpenAiModel } = await import('../models/openai/index.ts');
  return createOpenAiModel({
    baseURL: model.baseURL,
    apiKey: model.apiKey?.reveal(),
    timeoutMs: MODEL_TIMEOUT_MS,
  });
}

/** One model for all agents that live in other processes. */
export function composeRemoteModel({ remoteAgents }: Config, bus: Bus, watchers: Watchers): RemoteModel {
  const openChannel = (agent: string) =>
    bus.openTurn(agent, (conversation, chunk) => watchers.tell(conversation, { kind: 'live', agent, chunk }));
  return createRemoteModel({ openChannel, ...remoteAgents });
}

/** What one request may hold: no more than the broker carries by default. */
const MAX_BODY_BYTES = 1_048_576;

/** Proxies end a connection that is silent for a minute. */
const HEARTBEAT_MS = 15_000;

export async function composeGateway(config: Config, log: Log, own?: HttpToken): Promise<Gateway | null> {
  const { http } = config.daemon;
  if (http === null) return null;
  const { startGateway } = await import('../gateway/index.ts');
  return startGateway({
    host: http.host,
    port: http.port,
    tokens: [...http.tokens, ...(own ? [own] : [])].map(({ secret, ...token }) => ({
      ...token,
      secret: secret.reveal(),
    })),
    ownToken: own?.secret.reveal() ?? null,
    known: { hosts: http.hosts, origins: http.origins, publicUrl: http.publicUrl },
    maxBodyBytes: MAX_BODY_BYTES,
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

/** Reads a conversation's log where no daemon is needed; takes no lock and changes nothing. */
export async function composeLogReader(
  dataDirectory: string,
  conversation: string,
): Promise<readonly Entry[]> {
  await checkFormat(dataDirectory);
  await refuseUnfinishedMigration(dataDirectory);
  const { entries } = await readLogFile((await readerPaths(dataDirectory)).log(conversation));
  return entries;
}

/** Looks at a data directory; takes no lock and changes nothing. */
export function composeInspector(dataDirectory: string): StoreInspector {
  return inspectFiles(dataDirectory);
}

/** Keeps a file that was refused, once per content; answers where. */
export async function composeQuarantine(
  dataDirectory: string,
  name: string,
  content: Buffer,
): Promise<string> {
  await refuseFile(dataDirectory);
  return keepAside(join(dataDirectory, 'quarantine'), name, content);
}

/** The store of a data directory that no daemon has, for work without one. */
export function composeOwnStore(dataDirectory: string): Promise<ConversationStore> {
  return openFileStore(dataDirectory).catch((error: unknown) => {
    if (!(error instanceof ParleyError) || error.code !== 'DATA_DIRECTORY_IN_USE') throw error;
    throw new ParleyError(error.code, error.message, {
      hint: 'this command changes files that a running daemon owns: stop that daemon first',
      cause: error,
    });
  });
}

/** What tools ask while calls run. */
export interface ToolGround extends Conversations {
  readonly store?: ConversationStore;
  readonly enclose?: Enclose;
}

/** What needs no process of its own: enough to say what a request was made of, even where no conversation is open. */
export function composeBuiltInTools(config: Config, log?: Log, ground?: ToolGround): Toolbox {
  const { data, store: kind } = config.daemon;
  const outputs = storePaths(data).output;
  const records = kind === 'file' ? undefined : ground?.store?.toolRecords;
  const storedOutput = records && ((...named: [string, string]) => records.readOutput(...named));
  const { project, environment, protected: names } = config.tools;
  const protection = { names, folders: [config.directory] };
  const given = { project, environment, outputs, storedOutput, closed: [data], protection, log };
  return createBuiltInTools({ ...given, conversations: ground, enclose: ground?.enclose });
}

/** Everything that the agents of this configuration can be given. */
export async function composeToolbox(config: Config, log: Log, ground: ToolGround): Promise<Toolbox> {
  const { mcpServers, project, environment, risk } = config.tools;
  const enclose = await hideData(config, log);
  const parts = [composeBuiltInTools(config, log, { ...ground, enclose })];
  if (Object.keys(mcpServers).length > 0) {
    const { createMcpTools } = await import('../tools/mcp/index.ts');
    const accepted = await openAcceptedTools(config.daemon.data, log);
    const servers = createMcpTools({ servers: mcpServers, project, environment, enclose, accepted, log });
    servers.start();
    await servers.settled(); // a call that a log owes must find its tool
    parts.push(servers);
  }
  return createToolbox(parts, { risk, timeoutMs: TOOL_TIMEOUT_MS, log });
}
