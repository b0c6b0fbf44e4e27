import type { JetStreamManager, NatsConnection } from 'nats';
import { type Owner, parseSettledRecord } from '../../settled.ts';
import type { Subjects } from '../../subjects.ts';
import {
  apiErrorCode,
  brokerError,
  CONSUMER_NOT_FOUND,
  MESSAGE_NOT_FOUND,
  STREAM_NOT_FOUND,
  WRONG_LAST_SEQUENCE,
} from '../streams/broker-error.ts';
import { SHARED_CONSUMER } from './ingress-sources.ts';

const MOST_TRIES = 5;

/**
 * Transfers the record of settled posts (`../settled.ts`) from `from` to `to` after a migration of the logs, by
 * compare-and-set. Without it the posts of these logs would count as settled elsewhere.
 */
export async function transferSettledRecord(
  connection: NatsConnection,
  subjects: Subjects,
  from: string,
  to: Owner,
): Promise<void> {
  try {
    const manager = await connection.jetstreamManager({ checkAPI: false });
    await renameConsumer(manager, subjects, from, to.id);
    for (let tries = 1; ; tries++) {
      const found = await newest(manager, subjects);
      const record = found && parseSettledRecord(Buffer.from(found.data).toString());
      if (record?.by.id !== from) return;
      const expect = { lastSubjectSequence: found?.seq ?? 0 };
      try {
        const next = JSON.stringify({ ...record, by: to });
        await connection.jetstream().publish(subjects.settled, next, { expect });
        return;
      } catch (error) {
        if (!WRONG_LAST_SEQUENCE.has(apiErrorCode(error) ?? 0) || tries === MOST_TRIES) throw error;
      }
    }
  } catch (error) {
    throw brokerError(error, `write to stream ${subjects.settledStream}`);
  }
}

/** KEEPER-3: the description of the consumer is the id of the logs that it reads for. */
async function renameConsumer(
  manager: JetStreamManager,
  { ingressStream }: Subjects,
  from: string,
  to: string,
): Promise<void> {
  try {
    const { config } = await manager.consumers.info(ingressStream, SHARED_CONSUMER);
    if (config.description === from)
      await manager.consumers.update(ingressStream, SHARED_CONSUMER, { description: to });
  } catch (error) {
    if (![CONSUMER_NOT_FOUND, STREAM_NOT_FOUND].includes(apiErrorCode(error) ?? 0)) throw error;
  }
}

async function newest(manager: JetStreamManager, { settled, settledStream }: Subjects) {
  try {
    return await manager.streams.getMessage(settledStream, { last_by_subj: settled });
  } catch (error) {
    if ([MESSAGE_NOT_FOUND, STREAM_NOT_FOUND].includes(apiErrorCode(error) ?? 0)) return null;
    throw error;
  }
}
