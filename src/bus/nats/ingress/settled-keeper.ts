import { setTimeout as pause } from 'node:timers/promises';
import type { NatsConnection, StreamInfo } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { StreamPosition } from '../../post.ts';
import {
  isAhead,
  type Owner,
  parseSettledRecord,
  type SeenPost,
  type Settled,
  type SettledRecord,
} from '../../settled.ts';
import type { Subjects } from '../../subjects.ts';
import { apiErrorCode, brokerError, isForbidden, WRONG_LAST_SEQUENCE } from '../streams/broker-error.ts';
import { findMessage } from '../streams/streams.ts';
import { type IngressSources, timeOf } from './stored-posts.ts';

/**
 * Keeps the record of settled posts on the server (`../settled.ts`), as the only message of its own stream.
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
export interface Progress {
  readonly stream: string;
  readonly settled: Settled;
  readonly last: SeenPost | null;
}

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
  #before: { readonly stream: string; readonly settled: Settled | null } | null = null;
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

  begin(stream: string, settled: Settled | null): void {
    this.#before = { stream, settled };
  }

  async read(): Promise<void> {
    const { record, sequence } = await newest(this.#sources);
    const isFit = sequence !== this.#unfit;
    this.#known = { record: isFit ? record : null, sequence, reader: record?.reader ?? null };
  }

  /** KEEPER-6. The rest of the record stays. False: another daemon wrote meanwhile. */
  async claim(stream: string, own: StreamPosition | null): Promise<boolean> {
    const { record } = this.#known;
    const upTo = own?.stream === stream ? own.sequence : 0;
    const unknown = { by: this.#owner, settled: { upTo, open: [] }, before: null, last: null };
    const known = record?.stream === stream ? record : { stream, ...unknown };
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

  /** KEEPER-5. Whether the stream lost its end since the record was written. Rejects when the server does not answer. */
  async hasLostEnd(info: StreamInfo): Promise<boolean> {
    const { record } = this.#known;
    if (record?.stream !== info.created || (await isIntact(record, this.#sources, info))) return false;
    this.forget();
    this.#unfit = this.#known.sequence;
    this.#known = { ...this.#known, record: null };
    this.#before = null;
    return true;
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
      await pause(wait, undefined, { signal }).catch(() => undefined);
    }
  }

  async #writeNewest(): Promise<void> {
    const newest = this.#newest;
    if (newest === null) return;
    const losses = this.#losses;
    this.#newest = null;
    try {
      const progress = newest();
      const before = this.#before?.stream === progress.stream ? this.#before.settled : null;
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

/** False: the stream lost its end in a crash, and its sequences may belong to other posts now. */
async function isIntact(
  { settled, last }: SettledRecord,
  { manager, subjects }: IngressSources,
  { state }: StreamInfo,
): Promise<boolean> {
  if (Math.max(settled.upTo, last?.sequence ?? 0) > state.last_seq) return false;
  const time = last && (await timeOf(manager, subjects.ingressStream, last.sequence));
  return last === null || time === null || `${time}` === last.time; // null: purged
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
