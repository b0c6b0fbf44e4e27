import { setTimeout as pause } from 'node:timers/promises';
import type { JetStreamManager, MsgHdrs, StoredMsg } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { Delivery } from '../../post.ts';
import type { Subjects } from '../../subjects.ts';
import { apiErrorCode, MESSAGE_NOT_FOUND, STREAM_NOT_FOUND } from '../streams/broker-error.ts';
import { findMessage } from '../streams/streams.ts';
import type { IngressSources } from './ingress-sources.ts';

/** Posts as the ingress stream stores them, and reading single ones by their sequence. */

/** A message of a stream, read by a consumer or by its sequence. */
export interface StreamMessage {
  readonly sequence: number;
  /** When the stream stored it: nanoseconds since the epoch. */
  readonly time: bigint;
  readonly subject: string;
  readonly data: Uint8Array;
  /** The size of its body in bytes, also where `data` is empty because only headers were read. */
  readonly size: number;
  /** The header `Nats-Msg-Id`, if any. */
  readonly messageId: string | null;
  /** The header `traceparent`, if any. */
  readonly traceparent: string | null;
}

function messageFrom({ seq, subject, data, header, timestamp }: StoredMsg): StreamMessage {
  const time = nanosecondsOf(timestamp) ?? 0n;
  return { sequence: seq, time, subject, data, size: data.length, ...headersOf(header) };
}

/** What a publisher may set. */
export function headersOf(header: MsgHdrs | undefined): Pick<StreamMessage, 'messageId' | 'traceparent'> {
  return { messageId: header?.get('Nats-Msg-Id') || null, traceparent: header?.get('traceparent') || null };
}

/** Nanoseconds since the epoch of a server time such as `2026-11-21T23:27:07.3957029Z`; null if invalid. */
export function nanosecondsOf(time: string): bigint | null {
  const match = /^([^.Z]+)(?:\.(\d{1,9}))?Z$/.exec(time);
  const milliseconds = match ? Date.parse(`${match[1]}Z`) : Number.NaN;
  if (!match || Number.isNaN(milliseconds)) return null;
  return BigInt(milliseconds) * 1_000_000n + BigInt((match[2] ?? '').padEnd(9, '0'));
}

type Sender = Pick<Delivery, 'publisher' | 'conversation'>;

/** The stream's subject filter guarantees two tokens. The decoder refuses names that are not legal. */
export function senderOf(subjects: Subjects, { subject }: Pick<StreamMessage, 'subject'>): Sender {
  return subjects.parseIn(subject) ?? { publisher: '', conversation: '' };
}

/** `stream`: its creation time. */
export function deliveryOf(
  stream: string,
  sender: Sender,
  { sequence, time, data, messageId, traceparent }: StreamMessage,
): Delivery {
  return {
    position: { stream, sequence },
    takenAt: Number(time / 1_000_000n),
    fallbackId: `in-${sequence}-${time.toString(36)}`,
    ...sender,
    body: data,
    messageId,
    ...(traceparent !== null && { traceparent }),
  };
}

const PAUSE_MS = 100;
const CONNECTION_TIMEOUT_MS = 2_000;
/** A server that shuts down answers "not found" for a moment. One that does so for longer cannot read its disk. */
const READ_TIMEOUT_MS = 60_000;

/** Retries until the server answers. Null: removed, or unreadable for the server. Rejects when the reader stops. */
export async function fetchPost(
  { manager, subjects, log, watch }: Pick<IngressSources, 'manager' | 'subjects' | 'log' | 'watch'>,
  sequence: number,
  stopping: AbortSignal,
): Promise<StreamMessage | null> {
  const { ingressStream: stream } = subjects;
  let unreadSince: number | null = null;
  for (let hasReported = false; !stopping.aborted; ) {
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
      await pause(PAUSE_MS, undefined, { signal: stopping }).catch(() => undefined);
      await watch.connected(CONNECTION_TIMEOUT_MS, stopping);
    }
  }
  throw new Error('stopping');
}

/** The post with this sequence of the stream with this creation time; null: the stream does not have it. */
export async function readDelivery(
  { manager, subjects }: Pick<IngressSources, 'manager' | 'subjects'>,
  life: string,
  sequence: number,
): Promise<Delivery | null> {
  const stored = await findMessage(manager, subjects.ingressStream, { seq: sequence });
  return stored && deliveryOf(life, senderOf(subjects, stored), messageFrom(stored));
}

/** When the stream stored a message, in nanoseconds; null: the stream does not have it. */
export async function timeOf(
  manager: JetStreamManager,
  stream: string,
  sequence: number,
): Promise<bigint | null> {
  const stored = await findMessage(manager, stream, { seq: sequence });
  return stored && nanosecondsOf(stored.timestamp);
}

/** The sequence of the newest message whose subject matches; 0: there is none. */
export async function lastSequence(
  manager: JetStreamManager,
  stream: string,
  filter: string,
): Promise<number> {
  return (await findMessage(manager, stream, { last_by_subj: filter }))?.seq ?? 0;
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
