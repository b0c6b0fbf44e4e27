import type { StreamInfo } from 'nats';
import type { StreamPosition } from '../../deliveries.ts';
import { markOf, type Owner, type SeenPost, type Settled, type Start, startOf } from '../../settled.ts';
import { apiErrorCode, brokerError, CONSUMER_NOT_FOUND } from '../streams/broker-error.ts';
import { type IngressSources, SHARED_CONSUMER } from './ingress-sources.ts';
import { SettledKeeper } from './settled-keeper.ts';
import { timeOf } from './stored-posts.ts';

/** Finds the position at which a daemon starts to read posts, from the record of settled posts (`../settled.ts`). */

const CONNECTION_TIMEOUT_MS = 5_000;
const SHARED_NAME = 'daemons with --store jetstream';
export const LOST_END =
  'the ingress stream lost its newest posts when its server crashed, and other posts have their sequences now: reading it from its start';

export interface BeginningOptions {
  readonly owner: Owner;
  /** The store's own position. */
  readonly after: StreamPosition | null;
  readonly isReplay?: boolean;
  /** Reads by the consumer that daemons share (KEEPER-3). */
  readonly isShared: boolean;
}

export interface Beginning {
  readonly start: Start;
  readonly keeper: SettledKeeper;
  /** Logs the number of posts that are skipped, if any. */
  warnOfSkipped(): Promise<void>;
}

/** Reads the record of settled posts and derives the start position. Rejects when the server does not answer. */
export async function beginReading(sources: IngressSources, options: BeginningOptions): Promise<Beginning> {
  const { owner, after: own, isReplay = false, isShared } = options;
  const keeper = new SettledKeeper(sources, owner);
  await sources.watch.connected(CONNECTION_TIMEOUT_MS);
  const info = await sources.stream();
  await keeper.read();
  const hasLostEnd = await keeper.hasLostEnd(info);
  if (hasLostEnd) sources.log.warn({ stream: info.config.name }, LOST_END);
  if (!isShared)
    await takeOverShared(sources, keeper, info, hasLostEnd).catch((error: unknown) => {
      if (!keeper.disableIfForbidden(error)) throw error;
    });
  const { record } = keeper;
  const stream = { created: info.created, last: info.state.last_seq };
  // The store's own position may be in the lost part; ids suppress repeated posts.
  const known = hasLostEnd ? { stream: info.created, sequence: 0 } : own;
  const start = startOf({ own: known, owner, record, isReplay, stream });
  keeper.begin(info.created, start.before);
  return { start, keeper, warnOfSkipped: () => warnOfElsewhere(sources, start) };
}

/**
 * KEEPER-3. The record is durable before the consumer is deleted. It names the logs that the consumer read for and the posts
 * that these skipped, so that their store can continue later.
 */
async function takeOverShared(
  sources: IngressSources,
  keeper: SettledKeeper,
  { created, state }: StreamInfo,
  hasLostEnd: boolean,
): Promise<void> {
  const { manager, subjects } = sources;
  const name = subjects.ingressStream;
  try {
    const { ack_floor, config } = await manager.consumers.info(name, SHARED_CONSUMER);
    const floor = ack_floor.stream_seq;
    const record = keeper.record?.stream === created ? keeper.record : null;
    const known = record?.settled ?? null;
    if (!hasLostEnd && floor > (known ? markOf(known) : 0) && floor <= state.last_seq) {
      const by: Owner = { id: config.description || SHARED_CONSUMER, name: SHARED_NAME };
      const open = known?.open.filter((sequence) => sequence > floor) ?? [];
      const settled: Settled = { upTo: Math.max(floor, known?.upTo ?? 0), open };
      const before = record?.by.id === by.id ? record.before : known;
      const last = await lastOf(sources, settled.upTo);
      await keeper.write({ stream: created, by, settled, before, last });
    }
    await manager.consumers.delete(name, SHARED_CONSUMER);
  } catch (error) {
    if (apiErrorCode(error) !== CONSUMER_NOT_FOUND)
      throw brokerError(error, `copy the position of consumer ${SHARED_CONSUMER} of stream ${name}`);
  }
}

/** The sequence and time of a post, for a record; null: the stream no longer has it. */
export async function lastOf(
  { manager, subjects }: IngressSources,
  sequence: number,
): Promise<SeenPost | null> {
  const time = await timeOf(manager, subjects.ingressStream, sequence);
  return time === null ? null : { sequence, time: `${time}` };
}

async function warnOfElsewhere({ manager, subjects, log }: IngressSources, start: Start): Promise<void> {
  if (start.elsewhere === null) return;
  const { after, settled, by } = start.elsewhere;
  const { state } = await manager.streams.info(subjects.ingressStream, { deleted_details: true });
  const first = Math.max(after + 1, state.first_seq);
  const missing = new Set([...settled.open, ...(state.deleted ?? [])]);
  const among = [...missing].filter((sequence) => sequence >= first && sequence <= settled.upTo).length;
  const posts = Math.max(0, settled.upTo - first + 1 - among);
  if (posts === 0) return;
  log.warn(
    { posts, by, stream: subjects.ingressStream },
    'these posts were settled with another data directory or store and are not answered again; to answer them, start `parley up --replay`',
  );
}
