import type { NatsConnection } from 'nats';
import { VERSION } from '../../kernel/index.ts';
import type { BusLog } from '../log.ts';
import type { Subjects } from '../subjects.ts';
import { startService } from './service.ts';

/**
 * Keeps daemons away from a server and prefix: throws `DAEMON_ALREADY_SERVING` if one serves there, and until the
 * release whoever starts one is told the same.
 */
export async function holdSubjects(
  connection: NatsConnection,
  subjects: Subjects,
  log: BusLog,
): Promise<{ release(): Promise<void> }> {
  const maxPayload = () => connection.info?.max_payload ?? 0;
  const service = await startService({
    connection,
    subjects,
    log,
    version: VERSION,
    maxPayload,
    store: 'file',
  });
  try {
    await service.claim();
  } catch (error) {
    await service.stop();
    throw error;
  }
  return { release: () => service.stop() };
}
