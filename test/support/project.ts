import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { isServerProcess } from '../../src/bus/nats/managed/directory.ts';
import { systemHost } from '../../src/bus/nats/managed/host.ts';
import { connect, type ParleyClient, readConnectionFile } from '../../src/client/index.ts';
import { type CliOutcome, launcher, strangersEnvironment } from './cli.ts';
import { type FakeProvider, startFakeProvider } from './fake-provider.ts';
import { runCommand } from './in-process.ts';
import { endChild, perTest, shared } from './lifetime.ts';
import { startNatsServer, type TestNatsServer, type TestNatsServerOptions } from './nats-server.ts';

/** A project folder on disk, in which daemons run as separate processes from the command line. */
export interface Project {
  readonly root: string;
  readonly data: string;
  readonly config: string;
  /** Starts a daemon (`parley up --json`) and waits for its ready line. */
  up(...args: readonly string[]): Promise<RunningDaemon>;
  /** Runs one command (`runCommand`) against this project's data directory, or against the server that `--nats` names. */
  parley(...args: readonly string[]): Promise<CliOutcome>;
  parleyWithInput(input: string, ...args: readonly string[]): Promise<CliOutcome>;
  /** The newest daemon here. */
  readonly daemon: RunningDaemon;
  /** The address of its HTTP server. */
  readonly http: string;
  /** A new client of the newest daemon here. */
  connect(): Promise<ParleyClient>;
  /** The first of them. */
  readonly client: ParleyClient;
  /** The nats-server and the provider that were started for this project. */
  readonly nats: TestNatsServer;
  readonly provider: FakeProvider;
  /** The process id of the managed nats-server of this data directory. */
  natsServerProcess(): Promise<number>;
  /** The lines of a conversation's log file. */
  logFile(conversation: string): Promise<string>;
  /** Runs when the project is closed, last in, first out. */
  defer(cleanup: () => unknown): void;
  /** Ends every process that was started here or for this project, by its id, and deletes the directory. */
  close(): Promise<void>;
}

export interface RunningDaemon {
  readonly ready: {
    event: string;
    pid: number;
    nats: string;
    http: string | null;
    agents: string[];
    store: string;
    daemon?: string;
  };
  readonly pid: number;
  /** Its stdout after the ready line, line by line. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the output as a script does
  events(): any[];
  /** Stops reading its stdout and closes it. */
  closeStdout(): void;
  /** The same of its stderr, as when Ctrl-C ends `tee` first. */
  closeStderr(): void;
  /** Its stderr so far. */
  stderr(): string;
  signal(name: NodeJS.Signals): void;
  /** Resolves with the exit code (null: by a signal). */
  readonly exited: Promise<number | null>;
  /** SIGKILL. Resolves when it has ended. */
  kill9(): Promise<void>;
  /** SIGTERM. Returns the exit code. */
  stop(): Promise<number | null>;
}

type Settings = Readonly<Record<string, unknown>>;

export interface ProjectOptions {
  /** For each daemon, added to the caller's environment. HTTP needs no token unless this sets one. */
  readonly env?: Readonly<Record<string, string>>;
  /** A program that starts the daemon given as its last arguments, and becomes it. */
  readonly under?: readonly string[];
  /** The url of a running server, or one to start (`{}`); otherwise each daemon starts a managed one. */
  readonly nats?: string | TestNatsServerOptions;
  /** A provider to start, which answers in this way: its settings are added to `providerSettings`. */
  readonly model?: Parameters<typeof startFakeProvider>[0];
  /** The rules of a scripted model, or its `script.yaml`: `settings` are added to `scriptedSettings`. */
  readonly script?: readonly object[] | string;
  /** With HTTP on a free port. */
  readonly http?: boolean;
  /** A configuration to start from, instead of the shipped one. */
  readonly folder?: string;
  /** `parley.yaml` as an object (JSON is YAML), or made for the `model`. Absent: the shipped configuration, offline. */
  readonly settings?: Settings | ((providerUrl: string) => Settings);
  /** Front matter and persona by slug. */
  readonly agents?: Readonly<Record<string, string>>;
  /** Further files by path in the configuration folder. An object is written as JSON, which is YAML. */
  readonly files?: Readonly<Record<string, string | object>>;
}

const SHIPPED = fileURLToPath(new URL('../../config', import.meta.url));

/** Three agents: `pm` answers by default, `dev` in phase execute, `qa` when named. */
export const TEAM: Readonly<Record<string, string>> = {
  pm: '---\nname: Pam\ndescription: plans\nphases: [chat, plan]\n---\nPERSONA OF PAM',
  dev: '---\nname: Dev\ndescription: builds\nphases: [execute]\n---\nPERSONA OF DEV',
  qa: '---\nname: Quinn\ndescription: checks\nphases: [verification]\n---\nPERSONA OF QUINN',
};

/** One agent, which answers every message with "noted". */
export const NOTING = {
  agents: { lead: '---\nname: Lead\n---\nYou lead.' },
  script: [{ reply: { text: 'noted' } }],
};

/** The model of a provider on loopback. */
export const modelAt = (baseURL: string) => ({
  ...{ provider: 'openai', baseURL, apiKey: 'sk-test', model: 'fake-model' },
});

/** Settings for a provider on loopback, with short delays. */
export function providerSettings(baseURL: string, more: object = {}): Readonly<Record<string, unknown>> {
  return {
    defaultAgent: 'pm',
    models: { default: modelAt(baseURL) },
    retry: { attempts: 3, baseMs: 5, maxMs: 20 },
    shutdown: { graceMs: 5_000 },
    ...more,
  };
}

/** Settings for a model that answers by `script.yaml`, which is among the project's `files`. */
export function scriptedSettings(more: object = {}): Readonly<Record<string, unknown>> {
  return {
    defaultAgent: 'lead',
    models: { default: { provider: 'scripted', script: 'script.yaml' } },
    shutdown: { graceMs: 5_000 },
    ...more,
  };
}

export async function openProject(options: ProjectOptions = {}): Promise<Project> {
  const root = await mkdtemp(join(tmpdir(), 'parley-e2e-'));
  const data = join(root, 'data');
  const cleanups: (() => unknown)[] = [];
  const close = async () => {
    for (let cleanup = cleanups.pop(); cleanup; cleanup = cleanups.pop()) await cleanup();
  };
  const own: {
    nats?: TestNatsServer;
    provider?: FakeProvider;
    daemon?: RunningDaemon;
    client?: ParleyClient;
  } = {};
  const the = <K extends keyof typeof own>(what: K) => {
    const found = own[what];
    if (!found) throw new Error(`this project has no ${what}`);
    return found;
  };
  cleanups.push(() => rm(root, { recursive: true, force: true, maxRetries: 5 }));
  if (typeof options.nats === 'object') {
    own.nats = await startNatsServer(options.nats);
    cleanups.push(() => the('nats').stop());
  }
  if (options.model) {
    own.provider = await startFakeProvider(options.model);
    cleanups.push(() => the('provider').close());
  }
  const config = await writeConfiguration(root, options, settled(options, own.provider?.url)).catch(
    async (error) => {
      await close();
      throw error;
    },
  );
  cleanups.push(() => endNatsServer(data));
  const server = own.nats?.url ?? options.nats;
  const standing = [
    ...['--config', config, '--data', data, '--http', options.http ? '127.0.0.1:0' : 'off'],
    ...(typeof server === 'string' ? ['--nats', server] : []),
  ];
  const inProject = (args: readonly string[]) => (args.includes('--nats') ? args : [...args, '--data', data]);
  return {
    root,
    data,
    config,
    get daemon() {
      return the('daemon');
    },
    get http() {
      return `${the('daemon').ready.http}`;
    },
    get client() {
      return the('client');
    },
    get nats() {
      return the('nats');
    },
    get provider() {
      return the('provider');
    },
    async up(...args) {
      const child = spawnDaemon([...standing, ...args], root, options);
      cleanups.push(() => endChild(child));
      own.daemon = await whenReady(child);
      return own.daemon;
    },
    parley: (...args) => runCommand(inProject(args), { workingDirectory: root }),
    parleyWithInput: (input, ...args) => runCommand(inProject(args), { workingDirectory: root, input }),
    async connect() {
      const address = await readConnectionFile(data);
      if (!address) throw new Error(`no daemon has left its address in ${data}`);
      const client = await connect({ ...address, requests: { timeoutMs: 10_000 } });
      cleanups.push(() => client.close());
      own.client ??= client;
      return client;
    },
    natsServerProcess: async () => Number(await readFile(join(data, 'nats', 'server.pid'), 'utf8')),
    logFile: (conversation) => readFile(join(data, 'conversations', conversation, 'log.jsonl'), 'utf8'),
    defer: (cleanup) => void cleanups.push(cleanup),
    close,
  };
}

/** A project with a daemon and a client of it. */
export async function startProject(
  options: ProjectOptions = {},
  ...args: readonly string[]
): Promise<Project> {
  const project = await openProject(options);
  try {
    await project.up(...args);
    await project.connect();
    return project;
  } catch (error) {
    await project.close();
    throw error;
  }
}

/** A project with a nats-server and a daemon, which the tests of this file or `describe` share. */
export const sharedProject = (options: ProjectOptions) =>
  shared(() => startProject({ nats: {}, ...options }));

/** The same, new for each test. */
export const projectPerTest = (options: ProjectOptions) =>
  perTest(() => startProject({ nats: {}, ...options }));

/** The settings, with those of the model that is named. */
function settled(options: ProjectOptions, providerUrl = ''): Settings | undefined {
  const { agents = TEAM, script, model } = options;
  const settings = typeof options.settings === 'function' ? options.settings(providerUrl) : options.settings;
  if (model) return providerSettings(providerUrl, settings);
  return script ? scriptedSettings({ defaultAgent: Object.keys(agents)[0], ...settings }) : settings;
}

async function writeConfiguration(
  root: string,
  { folder = SHIPPED, agents, script, files }: ProjectOptions,
  settings: Settings | undefined,
): Promise<string> {
  const config = join(root, 'config');
  await cp(folder, config, { recursive: true });
  if (settings) await writeFile(join(config, 'parley.yaml'), JSON.stringify(settings));
  if (settings || agents) {
    await rm(join(config, 'agents'), { recursive: true, force: true });
    await rm(join(config, 'workflows'), { recursive: true, force: true }); // Their nodes name the shipped agents.
    await mkdir(join(config, 'agents'));
    for (const [slug, text] of Object.entries(agents ?? TEAM)) {
      await writeFile(join(config, 'agents', `${slug}.md`), `${text}\n`);
    }
  }
  const rules = script && { 'script.yaml': typeof script === 'string' ? script : { rules: script } };
  for (const [path, content] of Object.entries({ ...rules, ...files })) {
    await mkdir(dirname(join(config, path)), { recursive: true });
    await writeFile(join(config, path), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return config;
}

function spawnDaemon(
  args: readonly string[],
  workingDirectory: string,
  { env, under = [] }: ProjectOptions,
): ChildProcess {
  const [program = '', ...rest] = [...under, process.execPath, launcher, 'up', '--json', ...args];
  return spawn(program, rest, {
    cwd: workingDirectory,
    env: { ...strangersEnvironment(), PARLEY_HTTP_TOKEN: 'none', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function whenReady(child: ChildProcess): Promise<RunningDaemon> {
  let errors = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const said: string[] = [];
  lines.on('line', (line) => said.push(line));
  const first = once(lines, 'line').then(([line]) => String(line));
  const line = await Promise.race([
    first,
    exited.then((code) => {
      throw new Error(`the daemon ended with ${code} before it was ready:\n${errors}`);
    }),
  ]);
  const ready = JSON.parse(line);
  if (ready.event !== 'ready') throw new Error(`the daemon did not start: ${line}\n${errors}`);
  const signal = (name: NodeJS.Signals) => void child.kill(name);
  return {
    ready,
    pid: child.pid ?? 0,
    events: () => said.slice(1).map((one) => JSON.parse(one)),
    closeStdout() {
      lines.close();
      child.stdout?.destroy();
    },
    closeStderr: () => void child.stderr?.destroy(),
    stderr: () => errors,
    signal,
    exited,
    async kill9() {
      signal('SIGKILL');
      await exited;
    },
    stop() {
      signal('SIGTERM');
      return exited;
    },
  };
}

/** Ends the server that a killed daemon left running, by its process id. */
async function endNatsServer(data: string): Promise<void> {
  const pid = Number(await readFile(join(data, 'nats', 'server.pid'), 'utf8').catch(() => '0'));
  if (!(await servesNats(data, pid))) return;
  process.kill(pid, 'SIGKILL');
  while (await servesNats(data, pid)) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Whether this process is the nats-server of that data directory. */
export function servesNats(data: string, pid: number): Promise<boolean> {
  if (!(pid > 0)) return Promise.resolve(false);
  return isServerProcess(pid, join(data, 'nats', 'nats-server.conf'), systemHost());
}
