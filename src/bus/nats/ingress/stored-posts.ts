import { setTimeout as pause } from 'node:timers/promises';
import type { JetStreamManager } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { BusLog, Delivery } from '../../port.ts';
import type { Subjects } from '../../subjects.ts';
import type { ConnectionWatch } from '../connection/connection-life.ts';
import { apiErrorCode, brokerError, MESSAGE_NOT_FOUND, STREAM_NOT_FOUND } from '../streams/broker-error.ts';
import { deliveryOf, messageFrom, nanosecondsOf, type StreamMessage, senderOf } from './stream-message.ts';

/** Reads single posts of the ingress stream by their sequence. */

const PAUSE_MS = 100;
const CONNECTION_TIMEOUT_MS = 2_000;
/** A server that shuts down answers "not found" for a moment. One that does so for longer cannot read its disk. */
const READ_TIMEOUT_MS = 60_000;

export interface StoredPostsSources {
  readonly manager: JetStreamManager;
  readonly subjects: Subjects;
  readonly log: BusLog;
  readonly watch: ConnectionWatch;
}

export class StoredPosts {
  readonly #sources: StoredPostsSources;
  readonly #stopping: AbortSignal;

  constructor(sources: StoredPostsSources, stopping: AbortSignal) {
    this.#sources = sources;
    this.#stopping = stopping;
  }

  /** Retries until the server answers. Null: removed, or unreadable for the server. Rejects when the reader stops. */
  async fetch(sequence: number): Promise<StreamMessage | null> {
    const { manager, subjects, log, watch } = this.#sources;
    const { ingressStream: stream } = subjects;
    let unreadSince: number | null = null;
    for (let hasReported = false; !this.#stopping.aborted; ) {
      try {
        return messageFrom(await manager.streams.getMessage(stream, { seq: sequence }));
      } catch (error) {
        const isMissing = apiErrorCode(error) === MESSAGE_NOT_FOUND;
        const gone = isMissing ? await isGone(manager, stream, sequence).catch(() => null) : null;
        if (gone === true) {
          log.warn({ sequence }, 'an unprocessed post was removed from the ingress stream');
          return null;
        }
        unreadSince = gone === false ? (unreadSince ?? performance.now()) : null;
        if (unreadSince !== null && performance.now() - unreadSince > READ_TIMEOUT_MS) {
          log.error(
            { sequence },
            'nats-server cannot read a post of its ingress stream; the post is skipped. Check the disk of the server',
          );
          return null;
        }
        if (!hasReported)
          log.warn({ sequence, reason: messageOf(error) }, 'a post of the backlog cannot be read; retrying');
        hasReported = true;
        await pause(PAUSE_MS, undefined, { signal: this.#stopping }).catch(() => undefined);
        await watch.connected(CONNECTION_TIMEOUT_MS, this.#stopping);
      }
    }
    throw new Error('stopping');
  }
}

/** The delivery that a query of the stream with this creation time finds; null: none up to `upTo`. */
export async function readDelivery(
  { manager, subjects }: Pick<StoredPostsSources, 'manager' | 'subjects'>,
  life: string,
  query: { readonly seq: number; readonly next_by_subj?: string },
  upTo: number,
): Promise<Delivery | null> {
  try {
    const stored = await manager.streams.getMessage(subjects.ingressStream, query);
    if (stored.seq > upTo) return null;
    return deliveryOf(life, senderOf(subjects, stored), messageFrom(stored));
  } catch (error) {
    const code = apiErrorCode(error);
    if (code === MESSAGE_NOT_FOUND || code === STREAM_NOT_FOUND) return null;
    throw brokerError(error, `read stream ${subjects.ingressStream}`);
  }
}

/** When the stream stored a message, in nanoseconds; null: the stream does not have it. */
export async function timeOf(
  manager: JetStreamManager,
  stream: string,
  sequence: number,
): Promise<bigint | null> {
  try {
    return nanosecondsOf((await manager.streams.getMessage(stream, { seq: sequence })).timestamp);
  } catch (error) {
    if (apiErrorCode(error) === MESSAGE_NOT_FOUND) return null;
    throw brokerError(error, `read stream ${stream}`);
  }
}

/** The sequence of the newest message whose subject matches; 0: there is none. */
export async function lastSequence(
  manager: JetStreamManager,
  stream: string,
  filter: string,
): Promise<number> {
  try {
    return (await manager.streams.getMessage(stream, { last_by_subj: filter })).seq;
  } catch (error) {
    if (apiErrorCode(error) === MESSAGE_NOT_FOUND) return 0;
    throw error;
  }
}

/**
 * Whether the stream no longer has a message. "Not found" alone does not prove it: the server also answers that when it
 * cannot read the message, for example during its shutdown. Rejects when the server does not answer.
 */
export async function isGone(manager: JetStreamManager, stream: string, sequence: number): Promise<boolean> {
  try {
    const { state } = await manager.streams.info(stream, { deleted_details: true });
    const { first_seq: first, last_seq: last, deleted = [] } = state;
    return sequence < first || sequence > last || deleted.includes(sequence);
  } catch (error) {
    if (apiErrorCode(error) === STREAM_NOT_FOUND) return true;
    throw error;
  }
}
