import { access, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createSubjects } from '../../src/bus/index.ts';
import { closeConnection, openNats } from '../../src/bus/nats/index.ts';
import { locateNatsServer } from '../../src/bus/nats/managed/index.ts';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import { isAtLeast, ParleyError, Releasers } from '../../src/kernel/index.ts';
import { DaemonActor } from './actors/daemon.ts';
import { createDiskActor, type DiskActor } from './actors/disk.ts';
import { createModelActor, type ModelActor } from './actors/model.ts';
import { createClusterActors, createServerActor, type ServerActor } from './actors/nats-server.ts';
import { createProxyActor, type ProxyActor } from './actors/proxy.ts';
import { createToolServerActor, type ToolServerActor } from './actors/tool-server.ts';
import { type Violation, violation } from './findings.ts';
import { AGENTS, LOOK, persona, WRITE } from './scenario.ts';

/** All processes and files of a run, on loopback and in one directory; all are removed at the end. */
export interface Environment {
  readonly root: string;
  readonly config: string;
  /** One, or those of a cluster. */
  readonly servers: readonly ServerActor[];
  /** The leader of the stream of logs, or of the ingress stream if logs are files; null: there is none now. */
  leader(): Promise<ServerActor | null>;
  /** With more than one, their logs are shared. */
  readonly daemons: readonly DaemonActor[];
  readonly model: ModelActor;
  readonly tools: ToolServerActor;
  readonly disk: DiskActor;
  /** The proxies between the server and each daemon (in order), and between the server and all publishers. */
  readonly proxies: { readonly daemons: readonly ProxyActor[]; readonly publishers: ProxyActor };
  /** The server without a proxy, so that faults do not disturb the observer. */
  readonly client: ParleyClient;
  /** Returns what could not be released. */
  close(): Promise<string[]>;
}

export interface EnvironmentOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly say: (line: string) => void;
  /** The command of the daemon; default: the command line of this package. */
  readonly launcher?: string;
  /** One by default. */
  readonly daemons?: number;
  /** One by default. More are a cluster, which keeps a replica on each. */
  readonly servers?: number;
  /** Where the logs are: by default a separate disk; a stream if several daemons share them. */
  readonly store?: 'file' | 'jetstream';
  /** The failure timeout after which other daemons take over; default: the product default. */
  readonly failureTimeoutMs?: number;
}

export async function createEnvironment(options: EnvironmentOptions): Promise<Environment> {
  const releasers = new Releasers();
  try {
    return await build(options, releasers);
  } catch (error) {
    await releasers.release();
    throw error;
  }
}

async function build(options: EnvironmentOptions, releasers: Releasers): Promise<Environment> {
  const { env, say, daemons: count = 1, servers: size = 1 } = options;
  const { path: binary, version } = await locateNatsServer({ env, log: (_level, message) => say(message) });
  if (size > 1) requireCluster(version);
  const root = await mkdtemp(join(tmpdir(), 'parley-chaos-'));
  releasers.add('directory', () => rm(root, { recursive: true, force: true, maxRetries: 5 }));
  const disk = await createDiskActor(join(root, 'disk'));
  releasers.add('disk', () => disk.close());

  const model = await createModelActor();
  releasers.add('model', () => model.close());
  const tools = await createToolServerActor();
  releasers.add('tool server', () => tools.close());
  const servers =
    size > 1 ? await createClusterActors(binary, root, size) : [await createServerActor(binary, root)];
  releasers.add('nats-server', () => Promise.all(servers.map((server) => server.end('SIGTERM'))));
  await Promise.all(servers.map((server) => server.start()));
  const serverPorts = servers.map(({ port }) => port);
  const ways: ProxyActor[] = [];
  for (let place = 0; place <= count; place++) ways.push(await createProxyActor(...serverPorts));
  releasers.add('proxies', () => Promise.all(ways.map((way) => way.close())));
  const [publishers, ...toDaemons] = ways as [ProxyActor, ...ProxyActor[]];

  const config = join(root, 'config');
  await writeConfiguration(config, model.url, tools.url, {
    failureTimeoutMs: options.failureTimeoutMs,
    replicas: size,
  });
  const daemons = toDaemons.map((way, place) => createDaemon(options, { root, config, disk, way, place }));
  for (const daemon of daemons) releasers.add('daemon', () => daemon.stopForGood());
  const requests = { attempts: 1, timeoutMs: 5_000 };
  const url = serverPorts.map((port) => `nats://127.0.0.1:${port}`);
  const client = await connect({ url, waitForServer: true, requests });
  releasers.add('client', () => client.close());
  await Promise.all(daemons.map((daemon) => daemon.start()));
  const proxies = { daemons: toDaemons, publishers };
  return {
    root,
    config,
    servers,
    leader: () => leaderOf(servers, options.store),
    daemons,
    model,
    tools,
    disk,
    proxies,
    client,
    close: () => releasers.release(),
  };
}

/** The ingress limit: small, so that settled posts are purged often during faults. */
const INGRESS_BYTES = 64 * 1_024;

interface Place {
  readonly root: string;
  readonly config: string;
  readonly disk: DiskActor;
  readonly way: ProxyActor;
  readonly place: number;
}

const FULL_DISK = fileURLToPath(new URL('../support/full-disk.mjs', import.meta.url));

/** Each daemon has its own directory, as on separate machines. */
function createDaemon(
  { env, store, launcher }: EnvironmentOptions,
  { root, config, disk, way, place }: Place,
): DaemonActor {
  return new DaemonActor({
    config,
    data: join(root, 'disk', place === 0 ? 'data' : `data-${place + 1}`),
    natsUrl: way.url,
    workingDirectory: root,
    env: {
      ...cleanEnvironment(env),
      ...(disk.kind === 'simulated' && { NODE_OPTIONS: `--import ${FULL_DISK}`, FULL_DISK: disk.flag }),
    },
    ...(store === undefined ? {} : { store }),
    ...(launcher === undefined ? {} : { launcher }),
  });
}

/** The environment without variables that configure Parley or contain keys. */
function cleanEnvironment(env: EnvironmentOptions['env']): EnvironmentOptions['env'] {
  const others = Object.entries(env).filter(([name]) => !/^(PARLEY_|OPENAI_|NATS_|NODE_)/.test(name));
  return { ...Object.fromEntries(others), NO_COLOR: '1' };
}

async function writeConfiguration(
  folder: string,
  modelUrl: string,
  toolsUrl: string,
  {
    failureTimeoutMs,
    replicas,
  }: { readonly failureTimeoutMs: number | undefined; readonly replicas: number },
): Promise<void> {
  const settings = {
    defaultAgent: 'pm',
    models: {
      default: {
        provider: 'openai',
        baseURL: modelUrl,
        apiKey: 'none',
        model: 'chaos',
        contextTokens: 2_000_000,
      },
    },
    limits: { turnSeconds: 20 },
    retry: { attempts: 3, baseMs: 50, maxMs: 500 },
    shutdown: { graceMs: 2_000 },
    ingress: { maxBytes: INGRESS_BYTES },
    publishers: { default: { postsPerMinute: null, openConversations: null } },
    ...(failureTimeoutMs !== undefined && { sharing: { failureTimeoutMs } }),
    ...(replicas > 1 && { jetstream: { replicas } }),
    // The one approver also gives results, whose words later calls of the turn answer (PERSON-4).
    approvals: { approvers: ['judge'], ownRequests: true },
    tools: {
      mcpServers: { world: { url: toolsUrl, trustReadOnlyHint: true } },
      policy: [{ tool: WRITE, allow: true }],
    },
  };
  await mkdir(join(folder, 'agents'), { recursive: true });
  await writeFile(join(folder, 'parley.yaml'), JSON.stringify(settings)); // JSON is YAML
  for (const [place, agent] of AGENTS.entries()) {
    const phases = place === 0 ? ['chat'] : ['execute'];
    const tools = JSON.stringify(['handoff', 'delegate', LOOK, WRITE]);
    const front = `---\nname: ${agent.toUpperCase()}\nphases: ${JSON.stringify(phases)}\ntools: ${tools}\n---\n`;
    await writeFile(join(folder, 'agents', `${agent}.md`), `${front}${persona(agent)}\n`);
  }
}

/** Of a cluster: whether there may be one, and which server leads it. */

const OLDEST = [2, 10, 27] as const;

function requireCluster(version: string): void {
  if (isAtLeast(version, OLDEST)) return;
  throw new ParleyError('SERVER_TOO_OLD', `chaos with several servers cannot use nats-server ${version}`, {
    hint: `name nats-server ${OLDEST.join('.')} or later in NATS_BIN, or leave out --servers`,
  });
}

/** Of the stream of logs, or of posts if logs are files. */
async function leaderOf(
  servers: readonly ServerActor[],
  store: 'file' | 'jetstream' = 'file',
): Promise<ServerActor | null> {
  const { logStream, ingressStream } = createSubjects();
  const stream = store === 'jetstream' ? logStream : ingressStream;
  try {
    const connection = await openNats({ url: servers.map(({ port }) => `nats://127.0.0.1:${port}`) });
    try {
      const manager = await connection.jetstreamManager({ checkAPI: false });
      const { cluster } = await manager.streams.info(stream);
      return servers.find(({ name }) => name === cluster?.leader) ?? null;
    } finally {
      await closeConnection(connection);
    }
  } catch {
    return null; // an election is under way
  }
}

/** Counts the open descriptors of an idle daemon, and what is left after its end. Requires /proc. */

/** Sockets, logs and descriptors of Node. Each conversation in memory holds its log. */
const BASE_DESCRIPTORS = 80;

/** Null: they cannot be counted here. */
export async function countDescriptors(pid: number): Promise<number | null> {
  return readdir(`/proc/${pid}/fd`).then(
    (names) => names.length,
    () => null,
  );
}

export function checkDescriptors(count: number | null, conversations: number): Violation[] {
  const most = BASE_DESCRIPTORS + 2 * conversations;
  if (count === null || count <= most) return [];
  return [
    violation(
      'leftovers',
      null,
      null,
      `the daemon holds ${count} descriptors when idle; expected at most ${most}`,
    ),
  ];
}

/** Processes besides this one whose command line names the run's directory. */
export async function processesIn(root: string): Promise<string[]> {
  const names = await readdir('/proc').catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .map(async (pid) => {
        const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
        return line.includes(root) ? `${pid}: ${line.replaceAll('\0', ' ').trim()}` : null;
      }),
  );
  return found.filter((line) => line !== null);
}

/** After the daemon's last stop. `expected`: how it should end. */
export async function checkEnd(data: string, exitCode: number | null): Promise<Violation[]> {
  const found: Violation[] = [];
  if (exitCode !== 0) found.push(violation('leftovers', null, null, `the last stop ended with ${exitCode}`));
  const address = await access(join(data, 'connection.json')).then(
    () => true,
    () => false,
  );
  if (address) found.push(violation('leftovers', null, null, 'connection.json was not removed'));
  return found;
}
