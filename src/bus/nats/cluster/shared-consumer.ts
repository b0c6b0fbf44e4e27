import { AckPolicy, type ConsumerConfig, DeliverPolicy, nanos, ReplayPolicy } from 'nats';
import type { IngressLag } from '../../port.ts';
import { type IngressSources, SHARED_CONSUMER } from '../ingress/ingress-sources.ts';
import { timeOf } from '../ingress/stored-posts.ts';
import { brokerError } from '../streams/broker-error.ts';

const MOST_PENDING = 50_000;

export interface SharedConsumerOptions {
  /** The id of the logs that it reads for (`begin-reading.ts`). */
  readonly logs: string;
  /** A post without acknowledgement or keep-alive is delivered again after this time. */
  readonly failureTimeoutMs: number;
  /** A new consumer starts after this sequence. */
  readonly behind: number;
}

/**
 * Creates the consumer that daemons share if it is missing (then returns true). A consumer beyond the end of the stream has
 * survived posts that the stream lost. It would skip the posts that reuse their sequences, so it is created again.
 */
export async function ensureSharedConsumer(
  { manager, subjects, stream }: IngressSources,
  { logs, failureTimeoutMs, behind }: SharedConsumerOptions,
): Promise<boolean> {
  const config: Partial<ConsumerConfig> = {
    durable_name: SHARED_CONSUMER,
    description: logs,
    ack_policy: AckPolicy.Explicit,
    replay_policy: ReplayPolicy.Instant,
    ack_wait: nanos(failureTimeoutMs),
    max_deliver: -1,
    max_ack_pending: MOST_PENDING,
  };
  const name = subjects.ingressStream;
  let known = await manager.consumers.info(name, SHARED_CONSUMER).catch(() => null);
  try {
    const { state } = await stream(); // read after the consumer, so that its end is not older
    if (known !== null && known.delivered.stream_seq > state.last_seq) {
      await manager.consumers.delete(name, SHARED_CONSUMER);
      known = null;
    }
    // The daemon that created it chose its start. `ack_wait` may change.
    if (known === null) {
      const from = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: behind + 1 };
      await manager.consumers.add(name, { ...config, ...from });
      return true;
    }
    if (known.config.ack_wait !== config.ack_wait || known.config.description !== config.description)
      await manager.consumers.update(name, SHARED_CONSUMER, config);
  } catch (error) {
    const isThere = await manager.consumers.info(name, SHARED_CONSUMER).catch(() => null);
    if (isThere === null) throw brokerError(error, `read stream ${name}`);
  }
  return false;
}

/** The posts that no daemon has acknowledged. */
export async function sharedLag({ manager, subjects }: IngressSources): Promise<IngressLag> {
  const name = subjects.ingressStream;
  const { num_pending, num_ack_pending, ack_floor } = await manager.consumers.info(name, SHARED_CONSUMER);
  const messages = num_pending + num_ack_pending;
  const time = messages === 0 ? null : await timeOf(manager, name, ack_floor.stream_seq + 1);
  return { messages, oldestTakenAt: time === null ? null : Number(time / 1_000_000n) };
}
