import type { NatsConnection, StreamInfo } from 'nats';
import { apiErrorCode, messageOf, sleep, WRONG_LAST_SEQUENCE } from '../../../kernel/index.ts';
import type { BusLog, IngressStart, ReadingStore } from '../../port.ts';
import type { OldPosts, RefusedRuns, SkippedPosts, SkipUntil, StreamPosition } from '../../post.ts';
import {
  covers,
  isAhead,
  type Owner,
  parseSettledRecord,
  type Settled,
  type SettledRecord,
  type Start,
  startOf,
} from '../../settled.ts';
import type { Subjects } from '../../subjects.ts';
import { brokerError, isForbidden } from '../streams/broker-error.ts';
import { findMessage } from '../streams/streams.ts';
import { type IngressSources, StreamConsumer, type StreamMessage, senderOf, timeOf } from './stored-posts.ts';

/**
 * The record of settled posts on the server (`../settled.ts`): keeps it, as the only message of its own stream, and finds by it the
 * position at which a daemon begins to read.
 *
 * KEEPER-1  Each write is a compare-and-set on the previous one, so that two daemons never overwrite each other's record.
 * KEEPER-2  The record is written within `EVERY_MS` of a change, and when reading stops. After a crash another store answers
 *           the posts of that time again. A failed write is retried and logged once.
 * KEEPER-5  The record of a stream that lost its end (SETTLED-2) is ignored, so that the next write replaces it. Progress
 *           that was computed before the loss was detected is discarded.
 * KEEPER-6  Where daemons share the logs, the record names the one that reads the stream: its claim. Each write keeps it, so
 *           after the claim of another daemon no write of this one succeeds (KEEPER-1). A clean stop removes it.
 */

const EVERY_MS = 250;
const RETRY_MS = 1_000;
const LAST_WRITE_MS = 2_000;
const MOST_TRIES = 5;
/** Keeps the record below 32 KiB. */
export const MOST_OPEN = 1_000;

/** The posts that a daemon has settled so far. */
type Progress = Pick<SettledRecord, 'stream' | 'settled' | 'last'>;

/** KEEPER-6. One of the daemons that share the logs. */
interface Reader {
  readonly daemon: string;
  /** Another daemon has the claim. Called once. */
  readonly onLost: () => void;
}

class ClaimLost extends Error {}

export class SettledKeeper {
  readonly #sources: IngressSources;
  readonly #owner: Owner;
  readonly #self: Reader | null;
  readonly #stopping = new AbortController();
  /** The record on the server, and its sequence there. */
  #known: {
    readonly record: SettledRecord | null;
    readonly sequence: number;
    readonly reader: string | null;
  } = { ...NOTHING, reader: null };
  #claim: 'none' | 'held' | 'lost' = 'none';
  #before: { readonly created: string; readonly settled: Settled | null } | null = null;
  /** KEEPER-5. How often the stream lost its end, and the sequence of the record that is invalid since. */
  #losses = 0;
  #unfit: number | null = null;
  #newest: (() => Progress) | null = null;
  #writing: Promise<void> | null = null;
  #isTold = false;

  constructor(sources: IngressSources, owner: Owner, self: Reader | null = null) {
    this.#sources = sources;
    this.#owner = owner;
    this.#self = self;
  }

  get record(): SettledRecord | null {
    return this.#known.record;
  }

  /** As it was read last; null: no daemon has claimed the stream. */
  get reader(): string | null {
    return this.#known.reader;
  }

  begin(created: string, settled: Settled | null): void {
    this.#before = { created, settled };
  }

  async read(): Promise<void> {
    const { record, sequence } = await newest(this.#sources);
    const isFit = sequence !== this.#unfit;
    this.#known = { record: isFit ? record : null, sequence, reader: record?.reader ?? null };
  }

  /** KEEPER-6. The rest of the record stays. False: another daemon wrote meanwhile. */
  async claim(created: string, own: StreamPosition | null): Promise<boolean> {
    const { record } = this.#known;
    const upTo = own?.stream === created ? own.sequence : 0;
    const unknown = { by: this.#owner, settled: { upTo, open: [] }, before: null, last: null };
    const known = record?.stream === created ? record : { stream: created, ...unknown };
    try {
      await this.#put({ ...known, reader: this.#self?.daemon ?? null });
    } catch (error) {
      if (WRONG_LAST_SEQUENCE.has(apiErrorCode(error) ?? 0)) return false;
      await this.#sources.ensureStreams(); // the stream may be missing: the next claim finds it
      throw brokerError(error, `write to stream ${this.#sources.subjects.settledStream}`);
    }
    this.#claim = 'held';
    return true;
  }

  /** KEEPER-6. Notices whether another daemon has the claim. */
  async check(): Promise<void> {
    if (this.#claim === 'held' && (await newest(this.#sources)).record?.reader !== this.#self?.daemon)
      this.#loseClaim();
  }

  #loseClaim(): void {
    if (this.#claim === 'lost') return;
    this.#claim = 'lost';
    this.#newest = null;
    this.#self?.onLost();
  }

  /** False: the stream lost its end in a crash, and its sequences may belong to other posts now. */
  async #isIntact({ settled, last }: SettledRecord, { state }: StreamInfo): Promise<boolean> {
    if (Math.max(settled.upTo, last?.sequence ?? 0) > state.last_seq) return false;
    const time = last && (await timeOf(this.#sources, last.sequence));
    return last === null || time === null || `${time}` === last.time; // null: purged
  }

  /** KEEPER-5. Whether the stream lost its end since the record was written. Rejects when the server does not answer. */
  async hasLostEnd(info: StreamInfo): Promise<boolean> {
    const { record } = this.#known;
    if (record?.stream !== info.created || (await this.#isIntact(record, info))) return false;
    this.forget();
    this.#unfit = this.#known.sequence;
    this.#known = { ...this.#known, record: null };
    this.#before = null;
    return true;
  }

  /** SETTLED-2. Takes the record over if it is of this stream. Returns the creation time that the stream had before, or null. */
  async takeOver(info: StreamInfo): Promise<string | null> {
    const { record } = this.#known;
    if (!record?.last || record.stream === info.created) return null;
    const time = await timeOf(this.#sources, record.last.sequence);
    if (`${time}` !== record.last.time) return null;
    this.#known = { ...this.#known, record: { ...record, stream: info.created } };
    return record.stream;
  }

  /** KEEPER-5. Discards unwritten progress, which belongs to another stream or to its lost end. */
  forget(): void {
    this.#losses += 1;
    this.#newest = null;
  }

  /** Schedules a write. `progress` is called when the record is written (KEEPER-2). */
  note(progress: () => Progress): void {
    if (this.#claim === 'lost') return;
    this.#newest = progress;
    this.#writing ??= this.#writeSoon().finally(() => {
      this.#writing = null;
      if (this.#newest !== null && !this.#stopping.signal.aborted) this.note(this.#newest);
    });
  }

  /** Writes pending progress, unless the server is unreachable. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#writing;
    const { watch, log } = this.#sources;
    const isDue = this.#newest !== null || this.#claim === 'held';
    if (!isDue || !(await watch.connected(LAST_WRITE_MS))) return;
    try {
      await this.#writeNewest();
      const { record } = this.#known;
      if (this.#claim === 'held' && record) await this.#put({ ...record, reader: null });
    } catch (error) {
      if (!(error instanceof ClaimLost))
        log.warn({ reason: messageOf(error) }, 'the record of settled posts was not saved on the server');
    }
  }

  async #writeSoon(): Promise<void> {
    const { signal } = this.#stopping;
    const { watch, log } = this.#sources;
    while (this.#newest !== null && !signal.aborted) {
      let wait = EVERY_MS;
      try {
        if (await watch.connected(RETRY_MS, signal)) await this.#writeNewest();
        this.#isTold = false;
      } catch (error) {
        if (error instanceof ClaimLost) return;
        wait = RETRY_MS;
        if (!this.#isTold)
          log.warn(
            { reason: messageOf(error) },
            'the record of settled posts cannot be saved on the server; retrying',
          );
        this.#isTold = true;
      }
      await sleep(wait, signal);
    }
  }

  async #writeNewest(): Promise<void> {
    const newest = this.#newest;
    if (newest === null) return;
    const losses = this.#losses;
    this.#newest = null;
    try {
      const progress = newest();
      const before = this.#before?.created === progress.stream ? this.#before.settled : null;
      await this.#write({ ...progress, by: this.#owner, before, reader: this.#self?.daemon ?? null });
    } catch (error) {
      if (losses === this.#losses) this.#newest ??= newest;
      throw error;
    }
  }

  /** KEEPER-1. Does nothing if the record on the server is as new. */
  async #write(record: SettledRecord): Promise<void> {
    const { subjects, ensureStreams } = this.#sources;
    const losses = this.#losses;
    for (let tries = 1; losses === this.#losses && isAhead(record, this.#known.record); tries++) {
      if (this.#self && this.#known.reader !== this.#self.daemon) this.#loseClaim();
      if (this.#claim === 'lost') throw new ClaimLost();
      try {
        return await this.#put(record);
      } catch (error) {
        const isOutrun = WRONG_LAST_SEQUENCE.has(apiErrorCode(error) ?? 0);
        if (tries >= (isOutrun ? MOST_TRIES : 2) || isForbidden(error))
          throw brokerError(error, `write to stream ${subjects.settledStream}`);
        if (!isOutrun) await ensureStreams(); // the stream may be missing, and the error does not always say so
        await this.read();
      }
    }
  }

  async #put(record: SettledRecord): Promise<void> {
    const { connection, subjects } = this.#sources;
    const losses = this.#losses;
    const options = { expect: { lastSubjectSequence: this.#known.sequence }, timeout: LAST_WRITE_MS };
    const { seq } = await connection.jetstream().publish(subjects.settled, JSON.stringify(record), options);
    const isFit = losses === this.#losses;
    if (!isFit) this.#unfit = seq;
    this.#known = { record: isFit ? record : null, sequence: seq, reader: record.reader };
  }
}

const NOTHING = { record: null, sequence: 0 } as const;

/** The record and its sequence. */
async function newest({ manager, subjects }: Pick<IngressSources, 'manager' | 'subjects'>) {
  const { settled, settledStream } = subjects;
  const stored = await findMessage(manager, settledStream, { last_by_subj: settled });
  if (stored === null) return NOTHING;
  return { record: parseSettledRecord(Buffer.from(stored.data).toString()), sequence: stored.seq };
}

const MOST_TRANSFER_TRIES = 5;

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
    for (let tries = 1; ; tries++) {
      const { record, sequence } = await newest({ manager, subjects });
      if (record?.by.id !== from) return;
      try {
        const text = JSON.stringify({ ...record, by: to });
        const expect = { lastSubjectSequence: sequence };
        await connection.jetstream().publish(subjects.settled, text, { expect });
        return;
      } catch (error) {
        if (!WRONG_LAST_SEQUENCE.has(apiErrorCode(error) ?? 0) || tries === MOST_TRANSFER_TRIES) throw error;
      }
    }
  } catch (error) {
    throw brokerError(error, `write to stream ${subjects.settledStream}`);
  }
}

const CONNECTION_TIMEOUT_MS = 5_000;
const LOST_END =
  'the ingress stream lost its newest posts when its server crashed, and other posts have their sequences now: reading it from its start';

export interface Beginning {
  readonly info: StreamInfo;
  /** As the server has it. */
  readonly record: SettledRecord | null;
  /** The store's own position. */
  readonly own: StreamPosition | null;
  readonly start: Start;
  readonly keeper: SettledKeeper;
  /** Call it when reading has begun. Logs the number of posts that are skipped, if any. */
  report(onPosition: (position: StreamPosition) => void): Promise<void>;
}

/** Reads the record of settled posts and derives the start position. Rejects when the server does not answer. */
export async function beginReading(
  sources: IngressSources,
  { owner, after, isReplay = false }: ReadingStore & { readonly isReplay?: boolean },
  keeper = new SettledKeeper(sources, owner),
): Promise<Beginning> {
  await sources.watch.connected(CONNECTION_TIMEOUT_MS);
  const info = await sources.stream();
  await keeper.read();
  const earlier = await keeper.takeOver(info);
  const own = earlier !== null && after?.stream === earlier ? { ...after, stream: info.created } : after;
  const { record } = keeper;
  const hasLostEnd = await keeper.hasLostEnd(info);
  if (hasLostEnd) sources.log.warn({ stream: info.config.name }, LOST_END);
  const stream = { created: info.created, last: info.state.last_seq };
  const start = startOf({ own, owner, record, hasLostEnd, isReplay, stream });
  keeper.begin(info.created, start.before);
  const { position } = start;
  const report: Beginning['report'] = (onPosition) => {
    if (position && position !== after) onPosition(position);
    return warnOfElsewhere(sources, start);
  };
  return { info, record, own, start, keeper, report };
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
  const { created, config, state } = found.info;
  const { messages: count, first_ts, last_ts, last_seq: last } = state;
  const isOwnStream = found.own?.stream === created;
  const after = isOwnStream ? found.own : { stream: created, sequence: 0 };
  if (found.start.isKnown || count === 0) {
    const isCopy = store.isBackup === true && isOwnStream;
    return { after, old: isCopy ? await lackedPosts(sources, after.sequence, found) : null };
  }
  const [from, to] = [Date.parse(`${first_ts}`), Date.parse(`${last_ts}`)];
  return { after, old: { name: config.name, count, last, time: { from, to }, by: null } };
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
  return count === 0 ? null : { name: config.name, count, last, time: null, by: known?.by.name ?? null };
}

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
  const { created, state } = info;
  const { position, skip } = start;
  const isSettled = skip ? covers(skip) : () => false;
  const posts = new Map<string, RefusedRuns>();
  let end = position?.stream === created ? position.sequence : 0;
  let isOver = false;
  const take = (message: StreamMessage) => {
    isOver ||= isAfter(message, until) || message.sequence > state.last_seq;
    if (isOver) return;
    end = message.sequence;
    if (isSettled(end)) return;
    const { publisher } = senderOf(subjects, message);
    posts.set(publisher, withPost(posts.get(publisher), created, message));
  };
  const consumer = await StreamConsumer.open(connection, manager, subjects.ingressStream, end + 1, {
    isHeadersOnly: true,
  });
  try {
    await consumer.toEnd(take, () => isOver);
  } finally {
    consumer.close();
  }
  return { position: { stream: created, sequence: end }, posts };
}

function isAfter({ sequence, time }: StreamMessage, until: SkipUntil): boolean {
  if (until.kind === 'sequence') return sequence > until.sequence;
  return until.kind === 'time' && Number(time / 1_000_000n) > until.time;
}

function withPost(known: RefusedRuns | undefined, created: string, message: StreamMessage): RefusedRuns {
  const { sequence, size } = message;
  const to = Number(message.time / 1_000_000n);
  const { count, bytes, from, runs } = known ?? { count: 0, bytes: 0, from: to, runs: [] };
  const first = runs[0]?.[0] ?? sequence;
  return { stream: created, count: count + 1, bytes: bytes + size, from, to, runs: [[first, sequence]] };
}
