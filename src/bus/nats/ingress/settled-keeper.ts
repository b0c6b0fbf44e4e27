import { setTimeout as pause } from 'node:timers/promises';
import type { JetStreamManager, NatsConnection, StreamInfo } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import {
  isAhead,
  type Owner,
  parseSettledRecord,
  type SeenPost,
  type Settled,
  type SettledRecord,
} from '../../settled.ts';
import type { Subjects } from '../../subjects.ts';
import {
  apiErrorCode,
  brokerError,
  CONSUMER_NOT_FOUND,
  isForbidden,
  MESSAGE_NOT_FOUND,
  STREAM_NOT_FOUND,
  WRONG_LAST_SEQUENCE,
} from '../streams/broker-error.ts';
import { type IngressSources, SHARED_CONSUMER } from './ingress-sources.ts';
import { timeOf } from './stored-posts.ts';

/**
 * Keeps the record of settled posts on the server (`../settled.ts`), as the only message of its own stream.
 *
 * KEEPER-1  Each write is a compare-and-set on the previous one, so that two daemons never overwrite each other's record.
 * KEEPER-2  The record is written within `EVERY_MS` of a change, and when reading stops. After a crash another store answers
 *           the posts of that time again. A failed write is retried and logged once.
 * KEEPER-3  The consumer of daemons that share their logs has its own position. A daemon with its own logs copies it into
 *           the record (`begin-reading.ts`) and deletes the consumer, which would deliver posts that are settled elsewhere.
 * KEEPER-4  A daemon whose user lacks the rights to the record works without it. One warning names the command that grants
 *           them. The next start tries again.
 * KEEPER-5  The record of a stream that lost its end (SETTLED-2) is ignored, so that the next write replaces it. Progress
 *           that was computed before the loss was detected is discarded.
 */

const EVERY_MS = 250;
/** Building the record may take at most this share of the time. */
const MOST_BUSY = 1 / 50;
const MOST_MS = 2_000;
const RETRY_MS = 1_000;
const LAST_WRITE_MS = 2_000;
const MOST_TRIES = 5;
/** Keeps the record below 32 KiB. */
export const MOST_OPEN = 1_000;

const FORBIDDEN =
  'the NATS user of this daemon has no rights to the record of settled posts: without it, a daemon with another data directory or store answers them again. Render the permissions again with `parley nats-config`, reload the server and restart the daemon';

/** The posts that a daemon has settled so far. */
export interface Progress {
  readonly stream: string;
  readonly settled: Settled;
  readonly last: SeenPost | null;
}

export class SettledKeeper {
  readonly #sources: IngressSources;
  readonly #owner: Owner;
  readonly #stopping = new AbortController();
  /** The record on the server, and its sequence there. */
  #known: { readonly record: SettledRecord | null; readonly sequence: number } = {
    record: null,
    sequence: 0,
  };
  #before: { readonly stream: string; readonly settled: Settled | null } | null = null;
  /** KEEPER-5. How often the stream lost its end, and the record that is invalid since. */
  #losses = 0;
  #unfit: string | null = null;
  #newest: (() => Progress) | null = null;
  #writing: Promise<void> | null = null;
  #builtInMs = 0;
  #isTold = false;
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

  /** KEEPER-4. Returns false for an error with another cause. */
  disableIfForbidden(error: unknown): boolean {
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
      const record = parseSettledRecord(Buffer.from(data).toString());
      this.#known = { record: JSON.stringify(record) === this.#unfit ? null : record, sequence: seq };
    } catch (error) {
      const code = apiErrorCode(error);
      if (code !== MESSAGE_NOT_FOUND && code !== STREAM_NOT_FOUND && !this.disableIfForbidden(error))
        throw brokerError(error, `read stream ${subjects.settledStream}`);
      this.#known = { record: null, sequence: 0 };
    }
  }

  /** KEEPER-5. Whether the stream lost its end since the record was written. Rejects when the server does not answer. */
  async hasLostEnd(info: StreamInfo): Promise<boolean> {
    const { record } = this.#known;
    if (record?.stream !== info.created || (await isIntact(record, this.#sources, info))) return false;
    this.forget();
    this.#unfit = JSON.stringify(record);
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
    if (this.#isForbidden) return;
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
    if (this.#newest === null || !(await watch.connected(LAST_WRITE_MS))) return;
    await this.#writeNewest().catch((error: unknown) =>
      log.warn({ reason: messageOf(error) }, 'the record of settled posts was not saved on the server'),
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
        if (this.disableIfForbidden(error)) return;
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
      const began = performance.now();
      const progress = newest();
      this.#builtInMs = performance.now() - began;
      const before = this.#before?.stream === progress.stream ? this.#before.settled : null;
      await this.write({ ...progress, by: this.#owner, before });
    } catch (error) {
      if (losses === this.#losses) this.#newest ??= newest;
      throw error;
    }
  }

  /** KEEPER-1. Does nothing if the record on the server is as new. */
  async write(record: SettledRecord): Promise<void> {
    const { connection, subjects, ensureStreams } = this.#sources;
    const losses = this.#losses;
    for (let tries = 1; losses === this.#losses && isAhead(record, this.#known.record); tries++) {
      try {
        const expect = { lastSubjectSequence: this.#known.sequence };
        const options = { expect, timeout: LAST_WRITE_MS };
        const { seq } = await connection
          .jetstream()
          .publish(subjects.settled, JSON.stringify(record), options);
        const isFit = losses === this.#losses;
        if (!isFit) this.#unfit = JSON.stringify(record);
        this.#known = { record: isFit ? record : null, sequence: seq };
        return;
      } catch (error) {
        const isOutrun = WRONG_LAST_SEQUENCE.has(apiErrorCode(error) ?? 0);
        if (tries >= (isOutrun ? MOST_TRIES : 2) || isForbidden(error))
          throw brokerError(error, `write to stream ${subjects.settledStream}`);
        if (!isOutrun) await ensureStreams(); // the stream may be missing, and the error does not always say so
        await this.read();
      }
    }
  }
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
        if (!WRONG_LAST_SEQUENCE.has(apiErrorCode(error) ?? 0) || tries === MOST_TRANSFER_TRIES) throw error;
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
