import type { StreamInfo } from 'nats';
import type { OldPosts, SkipUntil, StreamPosition } from '../../deliveries.ts';
import type { BusLog, IngressStart, ReadingStore } from '../../port.ts';
import { type Settled, type SettledRecord, type Start, startOf, union } from '../../settled.ts';
import { isForbidden } from '../streams/broker-error.ts';
import type { IngressSources } from './ingress-sources.ts';
import { SettledKeeper } from './settled-keeper.ts';
import { StreamConsumer } from './stream-consumer.ts';

/** Finds the position at which a daemon starts to read posts, from the record of settled posts (`../settled.ts`). */

const CONNECTION_TIMEOUT_MS = 5_000;
const LOST_END =
  'the ingress stream lost its newest posts when its server crashed, and other posts have their sequences now: reading it from its start';

export interface Beginning {
  readonly info: StreamInfo;
  /** As the server has it. */
  readonly record: SettledRecord | null;
  readonly start: Start;
  readonly keeper: SettledKeeper;
  /** Call it when reading has begun. Logs the number of posts that are skipped, if any. */
  report(onPosition: (position: StreamPosition) => void): Promise<void>;
}

/** Reads the record of settled posts and derives the start position. Rejects when the server does not answer. */
export async function beginReading(
  sources: IngressSources,
  { owner, after: own, isReplay = false }: ReadingStore & { readonly isReplay?: boolean },
  keeper = new SettledKeeper(sources, owner),
): Promise<Beginning> {
  await sources.watch.connected(CONNECTION_TIMEOUT_MS);
  const info = await sources.stream();
  await keeper.read();
  const { record } = keeper;
  const hasLostEnd = await keeper.hasLostEnd(info);
  if (hasLostEnd) sources.log.warn({ stream: info.config.name }, LOST_END);
  const stream = { created: info.created, last: info.state.last_seq };
  const start = startOf({ own, owner, record, hasLostEnd, isReplay, stream });
  keeper.begin(info.created, start.before);
  const { position } = start;
  const report: Beginning['report'] = (onPosition) => {
    if (position && position !== own) onPosition(position);
    return warnOfElsewhere(sources, start);
  };
  return { info, record, start, keeper, report };
}

async function warnOfElsewhere(sources: IngressSources, start: Start): Promise<void> {
  if (start.elsewhere === null) return;
  const { by } = start.elsewhere;
  const posts = await countSettled(sources, start.elsewhere);
  if (posts === 0) return;
  sources.log.warn(
    { posts, by, stream: sources.subjects.ingressStream },
    'these posts were settled with another data directory or store and are not answered again; to answer them, start `parley up --replay`',
  );
}

/** The posts after a position that are settled and that the stream still has. */
async function countSettled(
  { manager, subjects }: IngressSources,
  { after, settled }: { readonly after: number; readonly settled: Settled },
): Promise<number> {
  const { state } = await manager.streams.info(subjects.ingressStream, { deleted_details: true });
  const first = Math.max(after + 1, state.first_seq);
  const missing = new Set([...settled.open, ...(state.deleted ?? [])]);
  const among = [...missing].filter((sequence) => sequence >= first && sequence <= settled.upTo).length;
  return Math.max(0, settled.upTo - first + 1 - among);
}

/** As `beginReading`, which reports the problems of the record when reading begins. Changes nothing. */
function survey(sources: IngressSources, store: ReadingStore): Promise<Beginning> {
  const log: BusLog = { info: () => undefined, warn: () => undefined, error: () => undefined };
  return beginReading({ ...sources, log }, store);
}

/** By the record on the server, and by what this store knows (SETTLED-7, SETTLED-9). */
export async function ingressStart(
  sources: IngressSources,
  store: ReadingStore & { readonly isBackup?: boolean },
): Promise<IngressStart> {
  const found = await survey(sources, store);
  const { created: life, config, state } = found.info;
  const { messages: count, first_ts, last_ts, last_seq: last } = state;
  if (found.start.isKnown || count === 0) {
    const isOwnStream = store.isBackup === true && store.after?.stream === life;
    return { life, old: isOwnStream ? await lackedPosts(sources, store.after.sequence, found) : null };
  }
  const [from, to] = [Date.parse(`${first_ts}`), Date.parse(`${last_ts}`)];
  return { life, old: { stream: config.name, count, last, time: { from, to }, by: null } };
}

/** SETTLED-9. Without a record, any post after the position of the backup may be settled. */
async function lackedPosts(
  sources: IngressSources,
  after: number,
  { info: { created, config, state }, record, start }: Beginning,
): Promise<OldPosts | null> {
  const known = record?.stream === created ? record : null;
  const settled: Settled = known?.settled ?? { upTo: state.last_seq, open: [] };
  const count = await countSettled(sources, { after, settled });
  const last = known === null ? state.last_seq : (start.position?.sequence ?? 0);
  return count === 0 ? null : { stream: config.name, count, last, time: null, by: known?.by.name ?? null };
}

/** The record says it, too, as it says of posts that another store settled (SETTLED-3): the store's own position may be lost. */
export async function skipUntil(
  sources: IngressSources,
  store: ReadingStore,
  until: SkipUntil,
): Promise<StreamPosition | null> {
  const { connection, subjects } = sources;
  const { info, start, keeper } = await survey(sources, store);
  const { reader } = keeper;
  const probe = reader !== null && connection.request(subjects.control(reader, 'probe'), '{}');
  if (probe && (await probe.catch(() => null)) !== null) return null;
  const { created: stream } = info;
  const known = start.position?.stream === stream ? start.position.sequence : 0;
  const sequence = Math.max(known, await lastUntil(sources, until, info.state.last_seq));
  const settled = union({ upTo: sequence, open: [] }, start.skip);
  keeper.begin(stream, settled);
  await keeper.settle({ stream, settled, last: null }).catch((error: unknown) => {
    if (!isForbidden(error)) throw error; // then there is no record, and the store's own position holds
  });
  return { stream, sequence };
}

/** The last post up to there; `newest`: of the stream. */
async function lastUntil(
  { connection, manager, subjects }: IngressSources,
  until: SkipUntil,
  newest: number,
): Promise<number> {
  if (until.kind === 'now') return newest;
  if (until.kind === 'sequence') return Math.min(until.sequence, newest);
  const options = { isHeadersOnly: true, since: new Date(until.time + 1) };
  const later = await StreamConsumer.open(connection, manager, subjects.ingressStream, 1, options);
  try {
    let first = newest + 1;
    if (later.pending > 0) await later.pull(1, ({ sequence }) => (first = sequence));
    return first - 1;
  } finally {
    later.close();
  }
}
