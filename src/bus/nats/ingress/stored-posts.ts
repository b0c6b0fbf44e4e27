import { setTimeout as pause } from 'node:timers/promises';
import type { JetStreamManager } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { BusLog } from '../../log.ts';
import type { Subjects } from '../../subjects.ts';
import type { ConnectionWatch } from '../connection/connection-life.ts';
import { apiErrorCode, brokerError, MESSAGE_NOT_FOUND, STREAM_NOT_FOUND } from '../streams/broker-error.ts';
import { messageFrom, nanosecondsOf, type StreamMessage } from './stream-message.ts';

/** Posts that the ingress stream holds, one by one, by their place. */

const PAUSE_MS = 100;
const CONNECTION_PATIENCE_MS = 2_000;
/** A server that stops says for a moment that it has no message; one that says so for longer cannot read it. */
const READ_PATIENCE_MS = 60_000;

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

  /** For as long as it takes; null: it is no more, or the server cannot read it. Rejects when the reader stops. */
  async fetch(sequence: number): Promise<StreamMessage | null> {
    const { manager, subjects, log, watch } = this.#sources;
    const { ingressStream: stream } = subjects;
    let unreadSince: number | null = null;
    for (let told = false; !this.#stopping.aborted; ) {
      try {
        return messageFrom(await manager.streams.getMessage(stream, { seq: sequence }));
      } catch (error) {
        const isMissing = apiErrorCode(error) === MESSAGE_NOT_FOUND;
        const gone = isMissing ? await isGone(manager, stream, sequence).catch(() => null) : null;
        if (gone === true) {
          log.warn({ sequence }, 'a post that waited was removed from the stream by somebody');
          return null;
        }
        unreadSince = gone === false ? (unreadSince ?? performance.now()) : null;
        if (unreadSince !== null && performance.now() - unreadSince > READ_PATIENCE_MS) {
          log.error(
            { sequence },
            'the server has a post that it cannot read: it is left out; check its disk',
          );
          return null;
        }
        if (!told)
          log.warn({ sequence, reason: messageOf(error) }, 'a post that waits cannot be read; trying again');
        told = true;
        await pause(PAUSE_MS, undefined, { signal: this.#stopping }).catch(() => undefined);
        await watch.connected(CONNECTION_PATIENCE_MS, this.#stopping);
      }
    }
    throw new Error('stopping');
  }
}

/** When the stream took a message, in nanoseconds; null: it is not there. */
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

/** Of the newest message whose subject matches; 0: the stream holds none. */
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
 * Whether a message that the server does not find is no more. It says the same when it fails to read one that it has, while
 * it stops for example; what it counts as deleted it knows without reading. Rejects when it does not answer.
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
