import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServers } from '../../scripts/nats-servers.ts';
import { isAtLeast } from '../../src/kernel/index.ts';
import { createClusterActors, type ServerActor } from '../chaos/actors/nats-server.ts';

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

export async function startCluster(binary: string, size = 3): Promise<TestCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-cluster-'));
  const servers = await createClusterActors(binary, directory, size);
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
