import { CLUSTER_SERVER, startCluster } from '../../test/support/cluster.ts';
import { startNatsServer } from '../../test/support/nats-server.ts';

/** The nats-server or the cluster of three of a benchmark. */
export interface BenchServers {
  readonly kind: 'one server' | 'cluster of three';
  /** Of the daemon with this number; the first server of the list is another one for each. */
  url(daemon: number): string;
  /** Of each stream. */
  readonly replicas: number;
  stop(): Promise<void>;
}

export async function startOne(): Promise<BenchServers> {
  const server = await startNatsServer();
  return { kind: 'one server', url: () => server.url, replicas: 1, stop: () => server.stop() };
}

/** Null: no nats-server is installed that can keep replicas. */
export async function startThree(): Promise<BenchServers | null> {
  if (CLUSTER_SERVER === null) return null;
  const cluster = await startCluster(CLUSTER_SERVER);
  const urls = cluster.url.split(',');
  const url = (daemon: number) => urls.map((_, at) => urls[(daemon + at) % urls.length]).join(',');
  return { kind: 'cluster of three', url, replicas: 3, stop: () => cluster.stop() };
}
