import type { MsgHdrs, StoredMsg } from 'nats';
import type { Delivery } from '../../deliveries.ts';
import type { Subjects } from '../../subjects.ts';

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

export function messageFrom({ seq, subject, data, header, timestamp }: StoredMsg): StreamMessage {
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
