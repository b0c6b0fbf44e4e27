import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServers } from '../../scripts/nats-servers.ts';
import { isAtLeast } from '../../src/kernel/index.ts';
import { createClusterActors, type ServerActor } from '../chaos/actors/nats-server.ts';
import { freePort } from './nats-server.ts';
import { ROOT } from './pages.ts';

/**
 * A nats-server on which replicas are safe: that of `NATS_BIN`, otherwise the newest installed one. If null, there is
 * none, and the tests that need one are skipped.
 */
export const CLUSTER_SERVER: string | null = await findClusterServer();

async function findClusterServer(): Promise<string | null> {
  const { NATS_BIN, NATS_BINS: _, ...others } = process.env;
  const named = NATS_BIN ? await findServers({ ...others, NATS_BINS: NATS_BIN }) : [];
  const found = NATS_BIN ? named : await findServers(process.env);
  return found.filter(({ version }) => isAtLeast(version, [2, 10, 27])).at(-1)?.path ?? null;
}

export interface TestCluster {
  readonly servers: readonly ServerActor[];
  /** Separated by commas. */
  readonly url: string;
  stop(): Promise<void>;
}

export async function startCluster(binary: string): Promise<TestCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-cluster-'));
  const servers = await createClusterActors(binary, directory, 3);
  await Promise.all(servers.map((server) => server.start()));
  return {
    servers,
    url: servers.map(({ port }) => `nats://127.0.0.1:${port}`).join(','),
    async stop() {
      await Promise.all(servers.map((server) => server.end('SIGTERM')));
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The servers of `deploy/compose.cluster.yaml`, with files of `prepare.mjs` and addresses of this machine. */
export interface DeployedCluster {
  readonly folder: string;
  readonly ports: readonly number[];
  readonly routePorts: readonly number[];
  /** Starts server 0, 1 or 2. `change` edits the text of each configuration file. */
  start(binary: string, at: number, change?: (conf: string) => string): Promise<ChildProcess>;
}

export async function prepareDeployed(folder: string): Promise<DeployedCluster> {
  const all = await Promise.all(Array.from({ length: 6 }, () => freePort()));
  const [ports, routePorts] = [all.slice(0, 3), all.slice(3)];
  const deploy = join(ROOT, 'deploy', 'nats');
  const made = spawnSync(process.execPath, [
    join(deploy, 'prepare.mjs'),
    folder,
    ...ports.map(() => '127.0.0.1'),
  ]);
  if (made.status !== 0) throw new Error(made.stderr.toString());
  return {
    folder,
    ports,
    routePorts,
    async start(binary, at, change = (conf) => conf) {
      const own = join(folder, `nats-${at + 1}`);
      const routes = join(own, 'routes');
      await mkdir(routes, { recursive: true });
      const copy = async (from: string, to: string, here: (conf: string) => string) =>
        writeFile(join(own, to), change(here(await readFile(from, 'utf8'))));
      await copy(join(folder, 'nats.conf'), 'nats.conf', (conf) =>
        conf
          .replace('0.0.0.0:4222', `127.0.0.1:${ports[at]}`)
          .replace('"/data"', JSON.stringify(join(own, 'data'))),
      );
      await copy(join(folder, 'secrets/routes/routes.conf'), 'routes/routes.conf', (conf) =>
        routePorts
          .reduce((text, port) => text.replace('@127.0.0.1:6222', `@127.0.0.1:${port}`), conf)
          .replaceAll('/etc/nats/routes', join(folder, 'secrets/routes')),
      );
      await copy(join(deploy, 'cluster.conf'), 'cluster.conf', (conf) =>
        conf.replace('0.0.0.0:6222', `127.0.0.1:${routePorts[at]}`),
      );
      const env = { ...process.env, HOSTNAME: `nats-${at + 1}` };
      return spawn(binary, ['-c', join(own, 'cluster.conf')], { env, stdio: 'ignore' });
    },
  };
}
