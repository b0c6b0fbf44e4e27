import { createSubjects } from '../../bus/index.ts';
import { closeConnection, openNats } from '../../bus/nats/index.ts';
import { isAtLeast, ParleyError } from '../../kernel/index.ts';
import type { ServerActor } from './nats-server.ts';

/** Of a cluster: whether there may be one, and which server leads it. */

const OLDEST = [2, 10, 27] as const;

export function requireCluster(version: string): void {
  if (isAtLeast(version, OLDEST)) return;
  throw new ParleyError('SERVER_TOO_OLD', `chaos with several servers cannot use nats-server ${version}`, {
    hint: `name nats-server ${OLDEST.join('.')} or later in NATS_BIN, or leave out --servers`,
  });
}

/** Of the stream of logs, or of that of posts where logs are files. */
export async function leaderOf(
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
