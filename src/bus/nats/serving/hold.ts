import type { NatsConnection } from 'nats';
import { VERSION } from '../../../kernel/index.ts';
import type { BusLog } from '../../log.ts';
import type { Subjects } from '../../subjects.ts';
import { startService } from './service.ts';

/**
 * Keeps daemons and other migrations away from a server and prefix. Throws `DAEMON_ALREADY_SERVING` if a daemon serves there,
 * and `MIGRATION_RUNNING` if another migration holds it. Until the release each of them is refused with the latter.
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
    work: 'migration',
  });
  try {
    await service.claim();
  } catch (error) {
    await service.stop();
    throw error;
  }
  return { release: () => service.stop() };
}
