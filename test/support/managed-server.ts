import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { type NatsConnection, openNats } from '../../src/bus/nats/index.ts';
import { isLockFree, isServerProcess } from '../../src/bus/nats/managed/directory.ts';
import { systemHost } from '../../src/bus/nats/managed/host.ts';
import {
  locateNatsServer,
  type ManagedServer,
  type ManagedServerOptions,
  startManagedServer,
} from '../../src/bus/nats/managed/index.ts';

/** One directory for a real managed server in a test, and everything that was started in it. */
export interface ServerFolder {
  readonly root: string;
  readonly directory: string;
  /** The real nats-server. */
  readonly binary: string;
  /** `level: message` for each log line of the servers here. */
  readonly logged: string[];
  /** Runs when the folder is closed, last in, first out. */
  defer(cleanup: () => Promise<unknown>): void;
  start(options?: Partial<ManagedServerOptions>): Promise<ManagedServer>;
  open(server: Pick<ManagedServer, 'url' | 'nkey'>): Promise<NatsConnection>;
  /** Connects with the files in the directory, as another program on the host does. */
  openByFiles(): Promise<NatsConnection>;
  /** A process that starts the server and that the test kills; `pid` is the server's. */
  daemon(): Promise<{ child: ChildProcess; pid: number }>;
  /** A program that prints the `--version` of a nats-server. */
  fakeServer(version: string, body: string): Promise<string>;
  json(name: string): Promise<Record<string, unknown>>;
  lockIsFree(): Promise<boolean>;
  /** Whether that process is this directory's server (a zombie is not). */
  runs(pid: number): Promise<boolean>;
  close(): Promise<void>;
}

export async function openServerFolder(): Promise<ServerFolder> {
  const { path: binary } = await locateNatsServer({ env: process.env, log: () => undefined });
  const root = await realpath(await mkdtemp(join(tmpdir(), 'parley-managed-')));
  const directory = join(root, 'nats');
  const logged: string[] = [];
  const cleanups: (() => Promise<unknown>)[] = [
    () => rm(root, { recursive: true, force: true }),
    () => endLeftServer(directory),
  ];
  const defer = (cleanup: () => Promise<unknown>): void => void cleanups.push(cleanup);
  const json = async (name: string) => JSON.parse(await readFile(join(directory, name), 'utf8'));
  const open = async (server: Pick<ManagedServer, 'url' | 'nkey'>): Promise<NatsConnection> => {
    const connection = await openNats({ url: server.url, nkey: server.nkey });
    defer(() => connection.close());
    return connection;
  };
  return {
    root,
    directory,
    binary,
    logged,
    defer,
    open,
    json,
    start: async (options = {}) => {
      const log = (level: string, message: string): void => void logged.push(`${level}: ${message}`);
      const server = await startManagedServer({ directory, binary, log, ...options });
      defer(() => server.stop());
      return server;
    },
    openByFiles: async () => {
      const { port } = await json('endpoint.json');
      return open({ url: `nats://127.0.0.1:${port}`, nkey: join(directory, 'user.nk') });
    },
    daemon: () => startDaemon(root, directory, binary, defer),
    fakeServer: (version, text) => writeFake(root, version, text),
    lockIsFree: () => isLockFree(join(directory, 'LOCK')),
    runs: (pid) => isServerProcess(pid, join(directory, 'nats-server.conf'), systemHost()),
    close: async () => {
      for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    },
  };
}

async function startDaemon(
  root: string,
  directory: string,
  binary: string,
  defer: ServerFolder['defer'],
): Promise<{ child: ChildProcess; pid: number }> {
  const script = join(await mkdtemp(join(root, 'daemon-')), 'daemon.mts');
  const entry = pathToFileURL(join(process.cwd(), 'src/bus/nats/managed/index.ts')).href;
  await writeFile(
    script,
    `import { startManagedServer } from ${JSON.stringify(entry)};
     const server = await startManagedServer({ directory: process.argv[2], binary: process.argv[3], log() {} });
     console.log(JSON.stringify({ pid: server.pid }));
     setInterval(() => {}, 1000);`,
  );
  const child = spawn(process.execPath, ['--import', 'tsx', script, directory, binary], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true, // Its own process group, which is killed as a whole.
  });
  defer(() => kill(child));
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return { child, pid: JSON.parse(line).pid };
}

/** Ends the server that a killed daemon left after a failed test. */
async function endLeftServer(directory: string): Promise<void> {
  const configuration = join(directory, 'nats-server.conf');
  const pid = Number(await readFile(join(directory, 'server.pid'), 'utf8').catch(() => '0'));
  if (pid > 1 && (await isServerProcess(pid, configuration, systemHost()))) process.kill(pid, 'SIGKILL');
}

/** Kills the daemon's process group with SIGKILL. Resolves when it has ended. */
export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  await exited;
}

async function writeFake(root: string, version: string, body: string): Promise<string> {
  const path = join(await mkdtemp(join(root, 'fake-')), 'nats-server');
  const answer = `[ "$1" = --version ] && echo "nats-server: v${version}" && exit 0`;
  await writeFile(path, `#!/bin/sh\n${answer}\n${body}\n`);
  await chmod(path, 0o755);
  return path;
}

export async function post(connection: NatsConnection, text: string): Promise<void> {
  const manager = await connection.jetstreamManager();
  await manager.streams.add({ name: 'KEPT', subjects: ['kept.>'] });
  await connection.jetstream().publish('kept.one', text);
}

export async function firstKept(connection: NatsConnection): Promise<string> {
  const manager = await connection.jetstreamManager();
  return (await manager.streams.getMessage('KEPT', { seq: 1 })).string();
}

/** Resolves when this server runs in another process. */
export async function restarted(server: ManagedServer): Promise<void> {
  const { pid } = server;
  while (server.pid === pid) await sleep(20);
}

export const portOf = (server: ManagedServer): number => Number(new URL(server.url).port);
