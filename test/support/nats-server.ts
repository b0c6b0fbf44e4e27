import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A temporary nats-server with JetStream, on loopback and a free port, in its own directory. */
export interface TestNatsServer {
  readonly url: string;
  /** Holds the store; deleted by `stop`. */
  readonly directory: string;
  /** SIGKILL, as in a crash; the store stays. */
  kill9(): Promise<void>;
  /** SIGSTOP: the server keeps its connections and answers nothing until it is resumed or ended. */
  freeze(): void;
  thaw(): void;
  /** Starts the server again on the same port and store (ends it first if it runs). */
  restart(): Promise<void>;
  /** Ends the server and deletes its directory. May be repeated. */
  stop(): Promise<void>;
}

export interface TestNatsServerOptions {
  /** Further lines of its configuration file, e.g. `max_payload: 65536`. */
  readonly config?: string;
  /** JetStream's storage, e.g. `24MB`. */
  readonly maxFile?: string;
  /** Disables JetStream. */
  readonly plain?: boolean;
}

export async function startNatsServer(options: TestNatsServerOptions = {}): Promise<TestNatsServer> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-nats-'));
  const port = await freePort();
  const configuration = join(directory, 'nats.conf');
  const limit = options.maxFile === undefined ? '' : `, max_file: ${options.maxFile}`;
  const where = JSON.stringify(join(directory, 'store'));
  const store = options.plain ? '' : `jetstream { store_dir: ${where}${limit} }\n`;
  await writeFile(configuration, `host: 127.0.0.1\nport: ${port}\n${store}${options.config ?? ''}\n`);
  let child: ChildProcess | null = await launch(configuration);

  const end = async (signal: NodeJS.Signals) => {
    const ending = child;
    child = null;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = once(ending, 'exit');
    ending.kill(signal);
    ending.kill('SIGCONT'); // A stopped process receives no other signal.
    await exited;
  };
  return {
    url: `nats://127.0.0.1:${port}`,
    directory,
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    kill9: () => end('SIGKILL'),
    restart: async () => {
      await end('SIGTERM');
      child = await launch(configuration);
    },
    stop: async () => {
      await end('SIGTERM');
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The server under test: `NATS_BIN`, as for Parley itself, otherwise the first one in PATH. */
export const NATS_SERVER_BINARY = process.env.NATS_BIN || 'nats-server';

/** Resolves when the server accepts connections. */
async function launch(configuration: string): Promise<ChildProcess> {
  const child = spawn(NATS_SERVER_BINARY, ['-c', configuration], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/local/sbin` },
  });
  const endWithUs = () => child.kill('SIGKILL'); // No server outlives the tests.
  process.once('exit', endWithUs);
  child.once('exit', () => process.removeListener('exit', endWithUs));
  await new Promise<void>((resolve, reject) => {
    let output = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      if (output.includes('Server is ready')) return; // Keep reading, so that its pipe never fills.
      output += chunk.toString();
      if (output.includes('Server is ready')) resolve();
    });
    child.once('error', (cause) => reject(new Error('nats-server cannot be started', { cause })));
    child.once('exit', () => reject(new Error(`nats-server ended before it was ready:\n${output}`)));
  });
  return child;
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
