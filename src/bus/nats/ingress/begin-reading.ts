import type { StreamInfo } from 'nats';
import type { BusLog, IngressStart, ReadingStore } from '../../port.ts';
import type { OldPosts, RefusedRuns, SkippedPosts, SkipUntil, StreamPosition } from '../../post.ts';
import { covers, type Settled, type SettledRecord, type Start, startOf } from '../../settled.ts';
import { brokerError } from '../streams/broker-error.ts';
import { SettledKeeper } from './settled-keeper.ts';
import { type IngressSources, StreamConsumer, type StreamMessage, senderOf } from './stored-posts.ts';

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

/** Posts that are requested at once. */
const PAGE = 1_000;

/** Reads the posts without their bodies. */
export async function unsettledUntil(
  sources: IngressSources,
  store: ReadingStore,
  until: SkipUntil,
): Promise<SkippedPosts | null> {
  const { connection, manager, subjects } = sources;
  const { info, start, keeper } = await survey(sources, store);
  const { reader } = keeper;
  const probe = reader !== null && connection.request(subjects.control(reader, 'probe'), '{}');
  if (probe && (await probe.catch(() => null)) !== null) return null;
  const { created: stream, state } = info;
  const { position, skip } = start;
  const isSettled = skip ? covers(skip) : () => false;
  const posts = new Map<string, RefusedRuns>();
  let end = position?.stream === stream ? position.sequence : 0;
  let isOver = false;
  const take = (message: StreamMessage) => {
    isOver ||= isAfter(message, until) || message.sequence > state.last_seq;
    if (isOver) return;
    end = message.sequence;
    if (isSettled(end)) return;
    const { publisher } = senderOf(subjects, message);
    posts.set(publisher, withPost(posts.get(publisher), stream, message));
  };
  const consumer = await StreamConsumer.open(connection, manager, subjects.ingressStream, end + 1, {
    isHeadersOnly: true,
  });
  try {
    while (consumer.pending > 0 && !isOver) {
      const pull = await consumer.pull(Math.min(PAGE, consumer.pending), take);
      if (pull.kind === 'broken')
        throw brokerError(new Error(pull.reason), `read stream ${info.config.name}`);
    }
  } finally {
    consumer.close();
  }
  return { position: { stream, sequence: end }, posts };
}

function isAfter({ sequence, time }: StreamMessage, until: SkipUntil): boolean {
  if (until.kind === 'sequence') return sequence > until.sequence;
  return until.kind === 'time' && Number(time / 1_000_000n) > until.time;
}

function withPost(known: RefusedRuns | undefined, stream: string, message: StreamMessage): RefusedRuns {
  const { sequence, size } = message;
  const to = Number(message.time / 1_000_000n);
  const { count, bytes, from, runs } = known ?? { count: 0, bytes: 0, from: to, runs: [] };
  const first = runs[0]?.[0] ?? sequence;
  return { stream, count: count + 1, bytes: bytes + size, from, to, runs: [[first, sequence]] };
}
