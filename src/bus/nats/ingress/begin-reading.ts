import type { LackedPosts, RefusedRuns, SkippedPosts, SkipUntil } from '../../deliveries.ts';
import type { BusLog, IngressStart, ReadingStore } from '../../port.ts';
import { covers, knowsStream, type Settled, type Start, startOf, upToRecord } from '../../settled.ts';
import { brokerError } from '../streams/broker-error.ts';
import type { IngressSources } from './ingress-sources.ts';
import { SettledKeeper } from './settled-keeper.ts';
import { StreamConsumer } from './stream-consumer.ts';
import { type StreamMessage, senderOf } from './stream-message.ts';

/** Finds the position at which a daemon starts to read posts, from the record of settled posts (`../settled.ts`). */

const CONNECTION_TIMEOUT_MS = 5_000;
const LOST_END =
  'the ingress stream lost its newest posts when its server crashed, and other posts have their sequences now: reading it from its start';

export interface BeginningOptions extends ReadingStore {
  readonly isReplay?: boolean;
}

export interface Beginning {
  readonly start: Start;
  readonly keeper: SettledKeeper;
  /** Logs the number of posts that are skipped, if any. */
  warnOfSkipped(): Promise<void>;
}

/** Reads the record of settled posts and derives the start position. Rejects when the server does not answer. */
export async function beginReading(
  sources: IngressSources,
  { owner, after: own, isReplay = false }: BeginningOptions,
  keeper = new SettledKeeper(sources, owner),
): Promise<Beginning> {
  await sources.watch.connected(CONNECTION_TIMEOUT_MS);
  const info = await sources.stream();
  await keeper.read();
  const hasLostEnd = await keeper.hasLostEnd(info);
  if (hasLostEnd) sources.log.warn({ stream: info.config.name }, LOST_END);
  const { record } = keeper;
  const stream = { created: info.created, last: info.state.last_seq };
  // The store's own position may be in the lost part; ids suppress repeated posts.
  const known = hasLostEnd
    ? { stream: info.created, sequence: 0 }
    : upToRecord({ own, owner, record, stream });
  const start = startOf({ own: known, owner, record, isReplay, stream });
  keeper.begin(info.created, start.before);
  return { start, keeper, warnOfSkipped: () => warnOfElsewhere(sources, start) };
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

/** `beginReading` reports the problems of the record. */
const QUIET: BusLog = { info: () => undefined, warn: () => undefined, error: () => undefined };
/** Posts that are requested at once. */
const PAGE = 1_000;

/** SETTLED-7, SETTLED-9. Changes nothing. */
export async function ingressStart(
  sources: IngressSources,
  store: ReadingStore & { readonly isBackup?: boolean },
): Promise<IngressStart> {
  const found = await survey(sources, store);
  const { info, isKnown } = found;
  const life = info.created;
  const { messages: count, first_ts, last_ts, last_seq: last } = info.state;
  if (isKnown || count === 0) {
    const isOwnStream = store.isBackup === true && store.after?.stream === life;
    return { life, old: null, lacked: isOwnStream ? await lackedPosts(sources, found) : null };
  }
  const [from, to] = [Date.parse(`${first_ts}`), Date.parse(`${last_ts}`)];
  return { life, old: { stream: info.config.name, count, from, to, last }, lacked: null };
}

/** SETTLED-9. Without a record, any post after the position of the backup may be settled. */
async function lackedPosts(
  sources: IngressSources,
  { info, own, record, position }: Awaited<ReturnType<typeof survey>>,
): Promise<LackedPosts | null> {
  const { created, config, state } = info;
  const known = record?.stream === created ? record : null;
  const everything: Settled = { upTo: state.last_seq, open: [] };
  const settled = known?.settled ?? everything;
  const by = known?.by.name ?? null;
  const count = await countSettled(sources, { after: own?.sequence ?? 0, settled });
  const from = by === null ? state.last_seq : position.sequence;
  return count === 0 ? null : { stream: config.name, count, by, from };
}

/** Reads the posts without their bodies. */
export async function unsettledUntil(
  sources: IngressSources,
  store: ReadingStore,
  until: SkipUntil,
): Promise<SkippedPosts | null> {
  const { connection, manager, subjects } = sources;
  const { info, position, skip, reader } = await survey(sources, store);
  const probe = reader !== null && connection.request(subjects.control(reader, 'probe'), '{}');
  if (probe && (await probe.catch(() => null)) !== null) return null;
  const { created: stream, state } = info;
  const isSettled = skip ? covers(skip) : () => false;
  const posts = new Map<string, RefusedRuns>();
  let end = position.sequence;
  let isOver = false;
  const take = (message: StreamMessage) => {
    isOver ||= isAfter(message, until) || message.sequence > state.last_seq;
    if (isOver) return;
    end = message.sequence;
    if (isSettled(end)) return;
    const { publisher } = senderOf(subjects, message);
    posts.set(publisher, withPost(posts.get(publisher), stream, message));
  };
  const from = position.sequence + 1;
  const consumer = await StreamConsumer.open(connection, manager, subjects.ingressStream, from, {
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

/** `position`: where the store would begin to read. */
async function survey(sources: IngressSources, { owner, after: own }: ReadingStore) {
  const { watch } = sources;
  const keeper = new SettledKeeper({ ...sources, log: QUIET }, owner);
  await watch.connected(CONNECTION_TIMEOUT_MS);
  const info = await sources.stream();
  await keeper.read();
  const { record } = keeper;
  const stream = { created: info.created, last: info.state.last_seq };
  const start = { stream: info.created, sequence: 0 };
  const known = (await keeper.hasLostEnd(info)) ? start : upToRecord({ own, owner, record, stream });
  const { position, skip } = startOf({ own: known, owner, record: keeper.record, isReplay: false, stream });
  const isKnown = knowsStream({ own, owner, record, stream });
  const from = position?.stream === info.created ? position : start;
  return { info, own, record, position: from, skip, isKnown, reader: keeper.reader };
}
