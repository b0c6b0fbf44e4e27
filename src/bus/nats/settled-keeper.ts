import { setTimeout as pause } from 'node:timers/promises';
import type { StreamInfo } from 'nats';
import { messageOf } from '../../kernel/index.ts';
import type { StreamPosition } from '../deliveries.ts';
import {
  isAhead,
  markOf,
  type Owner,
  parseSettledRecord,
  type SeenPost,
  type Settled,
  type SettledRecord,
  type Start,
  startOf,
} from '../settled.ts';
import {
  apiErrorCode,
  brokerError,
  CONSUMER_NOT_FOUND,
  isForbidden,
  MESSAGE_NOT_FOUND,
  STREAM_NOT_FOUND,
  WRONG_LAST_SEQUENCE,
} from './broker-error.ts';
import { type IngressSources, SHARED_CONSUMER } from './ingress-sources.ts';
import { nanosecondsOf } from './stream-message.ts';

/**
 * Keeps the record of settled posts on the server (`../settled.ts`): the only message of a stream of its own.
 *
 * KEEPER-1  Each write names the write before it (compare-and-set), so two daemons never take each other's record back.
 * KEEPER-2  The record is written within `EVERY_MS` of a change, and when reading stops. A crash loses that much: another
 *           store then answers those posts again. A failed write is repeated, and reported once.
 * KEEPER-3  The consumer of daemons that share their logs has a position of its own. A daemon with its own logs copies
 *           that into the record and deletes the consumer: it would keep handing out what is settled elsewhere.
 * KEEPER-4  A user that lacks the rights to the record works without it, as daemons did before there was one. One
 *           warning names the command that grants them. They are tried again at the next start.
 */

const EVERY_MS = 250;
/** Building a record of many posts may take at most this share of the time. */
const MOST_BUSY = 1 / 50;
const MOST_MS = 2_000;
const RETRY_MS = 1_000;
const LAST_WRITE_MS = 2_000;
const MOST_TRIES = 5;
const CONNECTION_PATIENCE_MS = 5_000;
/** As one message, the record stays below 32 KiB. */
export const MOST_OPEN = 1_000;

const SHARED_OWNER: Owner = { id: SHARED_CONSUMER, name: 'daemons with --store jetstream' };

const FORBIDDEN =
  'the NATS user of this daemon has no rights to the record of settled posts: without it, another data directory or store answers them again; render the permissions again with `parley nats-config`, reload the server and restart the daemon';

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
  /** Reports what is passed over, if anything is. */
  warn(): Promise<void>;
}

/** What is known of the settled posts when a daemon begins to read. Rejects when the server does not say it. */
export async function beginReading(sources: IngressSources, options: BeginningOptions): Promise<Beginning> {
  const { owner, after: own, isReplay = false, isShared } = options;
  const keeper = new SettledKeeper(sources, owner);
  await sources.watch.connected(CONNECTION_PATIENCE_MS);
  const info = await sources.stream();
  await keeper.read();
  if (!isShared)
    await takeOverShared(sources, keeper, info).catch((error: unknown) => {
      if (!keeper.leavesOut(error)) throw error;
    });
  const record = (await isOfThisStream(sources, keeper.record, info)) ? keeper.record : null;
  const stream = { created: info.created, last: info.state.last_seq };
  const start = startOf({ own, owner, record, isReplay, stream });
  keeper.begin(info.created, start.before);
  return { start, keeper, warn: () => warnOfElsewhere(sources, start) };
}

/** What a daemon has settled so far. */
export interface Progress {
  readonly stream: string;
  readonly settled: Settled;
  readonly last: SeenPost | null;
}

export class SettledKeeper {
  readonly #sources: IngressSources;
  readonly #owner: Owner;
  readonly #stopping = new AbortController();
  /** As the server has it, and its place there. */
  #known: { readonly record: SettledRecord | null; readonly sequence: number } = {
    record: null,
    sequence: 0,
  };
  #before: { readonly stream: string; readonly settled: Settled | null } | null = null;
  #newest: (() => Progress) | null = null;
  #writing: Promise<void> | null = null;
  #builtInMs = 0;
  #isTold = false;
  /** KEEPER-4 */
  #isForbidden = false;

  constructor(sources: IngressSources, owner: Owner) {
    this.#sources = sources;
    this.#owner = owner;
  }

  get record(): SettledRecord | null {
    return this.#known.record;
  }

  begin(stream: string, settled: Settled | null): void {
    this.#before = { stream, settled };
  }

  /** KEEPER-4. False: the error has another cause. */
  leavesOut(error: unknown): boolean {
    if (!isForbidden(error)) return false;
    if (!this.#isForbidden) this.#sources.log.warn({ reason: messageOf(error) }, FORBIDDEN);
    this.#isForbidden = true;
    this.#newest = null;
    return true;
  }

  async read(): Promise<void> {
    const { manager, subjects } = this.#sources;
    try {
      const { seq, data } = await manager.streams.getMessage(subjects.settledStream, {
        last_by_subj: subjects.settled,
      });
      this.#known = { record: parseSettledRecord(Buffer.from(data).toString()), sequence: seq };
    } catch (error) {
      const code = apiErrorCode(error);
      if (code !== MESSAGE_NOT_FOUND && code !== STREAM_NOT_FOUND && !this.leavesOut(error))
        throw brokerError(error, `read stream ${subjects.settledStream}`);
      this.#known = { record: null, sequence: 0 };
    }
  }

  /** Something was settled. `progress` is called when it is written (KEEPER-2). */
  note(progress: () => Progress): void {
    if (this.#isForbidden) return;
    this.#newest = progress;
    this.#writing ??= this.#writeSoon().finally(() => {
      this.#writing = null;
      if (this.#newest !== null && !this.#stopping.signal.aborted) this.note(this.#newest);
    });
  }

  /** Writes what is pending, unless the server is away. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#writing;
    const { watch, log } = this.#sources;
    if (this.#newest === null || !(await watch.connected(LAST_WRITE_MS))) return;
    await this.#writeNewest().catch((error: unknown) =>
      log.warn({ reason: messageOf(error) }, 'which posts are settled was not saved on the server'),
    );
  }

  async #writeSoon(): Promise<void> {
    const { signal } = this.#stopping;
    const { watch, log } = this.#sources;
    while (this.#newest !== null && !signal.aborted) {
      let wait = EVERY_MS;
      try {
        if (await watch.connected(RETRY_MS, signal)) await this.#writeNewest();
        wait = Math.max(EVERY_MS, Math.min(this.#builtInMs / MOST_BUSY, MOST_MS));
        this.#isTold = false;
      } catch (error) {
        if (this.leavesOut(error)) return;
        wait = RETRY_MS;
        if (!this.#isTold)
          log.warn(
            { reason: messageOf(error) },
            'which posts are settled cannot be saved on the server; trying again',
          );
        this.#isTold = true;
      }
      await pause(wait, undefined, { signal }).catch(() => undefined);
    }
  }

  async #writeNewest(): Promise<void> {
    const newest = this.#newest;
    if (newest === null) return;
    this.#newest = null;
    try {
      const began = performance.now();
      const progress = newest();
      this.#builtInMs = performance.now() - began;
      const before = this.#before?.stream === progress.stream ? this.#before.settled : null;
      await this.write({ ...progress, by: this.#owner, before });
    } catch (error) {
      this.#newest ??= newest;
      throw error;
    }
  }

  /** KEEPER-1. What is not ahead of the record on the server is left out. */
  async write(record: SettledRecord): Promise<void> {
    const { connection, subjects, ensureStreams } = this.#sources;
    for (let tries = 1; isAhead(record, this.#known.record); tries++) {
      try {
        const expect = { lastSubjectSequence: this.#known.sequence };
        const options = { expect, timeout: LAST_WRITE_MS };
        const { seq } = await connection
          .jetstream()
          .publish(subjects.settled, JSON.stringify(record), options);
        this.#known = { record, sequence: seq };
        return;
      } catch (error) {
        const isOutrun = WRONG_LAST_SEQUENCE.has(apiErrorCode(error) ?? 0);
        if (tries >= (isOutrun ? MOST_TRIES : 2) || isForbidden(error))
          throw brokerError(error, `write to stream ${subjects.settledStream}`);
        if (!isOutrun) await ensureStreams(); // it may be gone; where others listen, the server does not say so
        await this.read();
      }
    }
  }
}

/** KEEPER-3. The record is durable before the consumer goes. */
async function takeOverShared(
  { manager, subjects }: IngressSources,
  keeper: SettledKeeper,
  { created, state }: StreamInfo,
): Promise<void> {
  const name = subjects.ingressStream;
  try {
    const { ack_floor } = await manager.consumers.info(name, SHARED_CONSUMER);
    const floor = ack_floor.stream_seq;
    const { record } = keeper;
    const known = record?.stream === created ? record.settled : null;
    if (floor > (known ? markOf(known) : 0) && floor <= state.last_seq) {
      const open = known?.open.filter((sequence) => sequence > floor) ?? [];
      const settled = { upTo: Math.max(floor, known?.upTo ?? 0), open };
      await keeper.write({ stream: created, by: SHARED_OWNER, settled, before: null, last: null });
    }
    await manager.consumers.delete(name, SHARED_CONSUMER);
  } catch (error) {
    if (apiErrorCode(error) !== CONSUMER_NOT_FOUND)
      throw brokerError(error, `take over the position of consumer ${SHARED_CONSUMER} of stream ${name}`);
  }
}

/** A stream that lost its end in a crash gives the same sequences to other posts. */
async function isOfThisStream(
  { manager, subjects }: IngressSources,
  record: SettledRecord | null,
  { state }: StreamInfo,
): Promise<boolean> {
  if (record?.last == null) return true;
  const { sequence: seq, time } = record.last;
  if (seq > state.last_seq) return false;
  try {
    const { timestamp } = await manager.streams.getMessage(subjects.ingressStream, { seq });
    return `${nanosecondsOf(timestamp)}` === time;
  } catch (error) {
    if (apiErrorCode(error) === MESSAGE_NOT_FOUND) return true; // purged
    throw brokerError(error, `read stream ${subjects.ingressStream}`);
  }
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
    'these posts were settled elsewhere and are not answered again here; `parley up --replay` answers them',
  );
}
