import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { systemHost } from '../../src/bus/nats/managed/host.ts';
import { isServerProcess } from '../../src/bus/nats/managed/process.ts';
import { connect, type Entry, type ParleyClient, readConnectionFile } from '../../src/client/index.ts';
import { type CliOutcome, launcher, runCli, strangersEnvironment } from './cli.ts';

/** A directory in which daemons run as separate processes from the command line. */
export interface Site {
  readonly root: string;
  readonly data: string;
  readonly config: string;
  /** Starts a daemon (`parley up --json`) and waits for its ready line. */
  up(...args: readonly string[]): Promise<RunningDaemon>;
  /** Runs one command against this site's data directory, or against the server that `--nats` names. */
  parley(...args: readonly string[]): Promise<CliOutcome>;
  parleyWithInput(input: string, ...args: readonly string[]): Promise<CliOutcome>;
  /** A client of the newest daemon here. */
  client(): Promise<ParleyClient>;
  /** The process id of the managed nats-server of this data directory. */
  natsServerProcess(): Promise<number>;
  /** The lines of a conversation's log file. */
  logFile(conversation: string): Promise<string>;
  /** Runs when the site is closed, last in, first out. */
  defer(cleanup: () => unknown): void;
  /** Ends every process that was started here, by its id, and deletes the directory. */
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

export interface SiteOptions {
  /** For each daemon, added to the caller's environment. HTTP needs no token unless this sets one. */
  readonly env?: Readonly<Record<string, string>>;
  /** A program that starts the daemon given as its last arguments, and becomes it. */
  readonly under?: readonly string[];
  /** A running server; otherwise each daemon starts a managed one. */
  readonly nats?: string;
  /** A configuration to start from, instead of the shipped one. */
  readonly folder?: string;
  /** `parley.yaml` as an object (JSON is YAML). Absent: the shipped configuration, offline. */
  readonly settings?: Readonly<Record<string, unknown>>;
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

/** Settings for a provider on loopback, with short delays. */
export function providerSettings(baseURL: string, more: object = {}): Readonly<Record<string, unknown>> {
  return {
    defaultAgent: 'pm',
    models: { default: { provider: 'openai', baseURL, apiKey: 'sk-test', model: 'fake-model' } },
    retry: { attempts: 3, baseMs: 5, maxMs: 20 },
    shutdown: { graceMs: 5_000 },
    ...more,
  };
}

/** Settings for a model that answers by `script.yaml`, which is among the site's `files`. */
export function scriptedSettings(more: object = {}): Readonly<Record<string, unknown>> {
  return {
    defaultAgent: 'lead',
    models: { default: { provider: 'scripted', script: 'script.yaml' } },
    shutdown: { graceMs: 5_000 },
    ...more,
  };
}

export async function openSite(options: SiteOptions = {}): Promise<Site> {
  const root = await mkdtemp(join(tmpdir(), 'parley-e2e-'));
  const data = join(root, 'data');
  const config = await writeConfiguration(root, options);
  const cleanups: (() => unknown)[] = [
    () => rm(root, { recursive: true, force: true, maxRetries: 5 }),
    () => endNatsServer(data),
  ];
  const nats = options.nats ? ['--nats', options.nats] : [];
  const inSite = (args: readonly string[]) => (args.includes('--nats') ? args : [...args, '--data', data]);
  return {
    root,
    data,
    config,
    async up(...args) {
      const child = spawnDaemon(
        ['--config', config, '--data', data, '--http', 'off', ...nats, ...args],
        root,
        options,
      );
      cleanups.push(() => endChild(child));
      return whenReady(child);
    },
    parley: (...args) => runCli(inSite(args), { workingDirectory: root }),
    parleyWithInput: (input, ...args) => runCli(inSite(args), { workingDirectory: root, input }),
    async client() {
      const address = await readConnectionFile(data);
      if (!address) throw new Error(`no daemon has left its address in ${data}`);
      const client = await connect({ ...address, requests: { timeoutMs: 10_000 } });
      cleanups.push(() => client.close());
      return client;
    },
    natsServerProcess: async () => Number(await readFile(join(data, 'nats', 'server.pid'), 'utf8')),
    logFile: (conversation) => readFile(join(data, 'conversations', conversation, 'log.jsonl'), 'utf8'),
    defer: (cleanup) => void cleanups.push(cleanup),
    async close() {
      for (let cleanup = cleanups.pop(); cleanup; cleanup = cleanups.pop()) await cleanup();
    },
  };
}

async function writeConfiguration(root: string, options: SiteOptions): Promise<string> {
  const { folder = SHIPPED, settings, agents, files } = options;
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
  for (const [path, content] of Object.entries(files ?? {})) {
    await mkdir(dirname(join(config, path)), { recursive: true });
    await writeFile(join(config, path), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return config;
}

function spawnDaemon(
  args: readonly string[],
  workingDirectory: string,
  { env, under = [] }: SiteOptions,
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

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
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

/** The whole log, read through the request API. */
export async function entriesOf(client: ParleyClient, conversation: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (;;) {
    const page = await client.request('entries', { conversation, from: entries.length });
    entries.push(...page.entries);
    if (entries.length >= page.length) return entries;
  }
}

/** Follows the log until its entries satisfy the condition. Returns all of them. */
export async function followUntil(
  client: ParleyClient,
  conversation: string,
  condition: (entries: readonly Entry[]) => boolean,
): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const event of client.follow(conversation, { from: 0, live: false })) {
    if (event.kind !== 'entry') continue;
    entries.push(event.entry);
    if (condition(entries)) return entries;
  }
  throw new Error('the following ended');
}

/** Whether this many turns have ended, and none runs. */
export function turnsEnded(count: number): (entries: readonly Entry[]) => boolean {
  return (entries) => {
    const ended = new Set(
      entries.filter((entry) => entry.type === 'turn-ended').map((entry) => entry.turnId),
    );
    const begun = new Set(
      entries.filter((entry) => entry.type === 'turn-started').map((entry) => entry.turnId),
    );
    return ended.size >= count && begun.size === ended.size;
  };
}
