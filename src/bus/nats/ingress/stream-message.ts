import type { MsgHdrs, StoredMsg } from 'nats';
import { NAME_PATTERN } from '../../../conversation/index.ts';
import type { Delivery, StreamPosition } from '../../deliveries.ts';
import type { Subjects } from '../../subjects.ts';

/** Names the daemon that received the post over HTTP or the API and waits for its result. */
export const ORIGIN_HEADER = 'Parley-Origin';

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
}

export function messageFrom({ seq, subject, data, header, timestamp }: StoredMsg): StreamMessage {
  const messageId = header?.get('Nats-Msg-Id') || null;
  return { sequence: seq, time: nanosecondsOf(timestamp) ?? 0n, subject, data, size: data.length, messageId };
}

/** Nanoseconds since the epoch of a server time such as `2026-11-21T23:27:07.3957029Z`; null if invalid. */
export function nanosecondsOf(time: string): bigint | null {
  const match = /^([^.Z]+)(?:\.(\d{1,9}))?Z$/.exec(time);
  const milliseconds = match ? Date.parse(`${match[1]}Z`) : Number.NaN;
  if (!match || Number.isNaN(milliseconds)) return null;
  return BigInt(milliseconds) * 1_000_000n + BigInt((match[2] ?? '').padEnd(9, '0'));
}

interface StoredPost {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly headers: MsgHdrs | undefined;
  readonly timestamp: string;
}

/** The delivery of a post that was read by its sequence, with the same fallback id as from a consumer. */
export function deliveryOf(
  subjects: Subjects,
  position: StreamPosition,
  { subject, body, headers, timestamp }: StoredPost,
): Delivery {
  const time = nanosecondsOf(timestamp) ?? 0n;
  const names = subjects.parseIn(subject) ?? { publisher: '', conversation: '' };
  const origin = headers?.get(ORIGIN_HEADER) ?? '';
  return {
    position,
    takenAt: Number(time / 1_000_000n),
    fallbackId: `in-${position.sequence}-${time.toString(36)}`,
    ...names,
    body,
    messageId: headers?.get('Nats-Msg-Id') || null,
    origin: NAME_PATTERN.test(origin) ? origin : null,
  };
}
