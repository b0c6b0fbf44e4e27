import {
  AckPolicy,
  type ConsumerInfo,
  DeliverPolicy,
  type MsgHdrs,
  type MsgRequest,
  nanos,
  nuid,
  ReplayPolicy,
} from 'nats';
import { type Broker, isNotFound, read, requireConnection, storeError } from './broker.ts';

/**
 * Reads and removes what a stream holds on one subject or on several.
 *
 * JETSTREAM-READER-1 Reads are paged: at most one page of messages is in flight.
 * JETSTREAM-READER-2 Messages arrive in order and without a gap, or the read fails.
 * JETSTREAM-READER-3 The end of a read is fixed when it begins, so that continuous appends cannot keep it running.
 * JETSTREAM-READER-4 A given end is reached, unless it was removed: a consumer is on one server of a cluster, which may lag
 *                    the leader.
 */

export interface StoredMessage {
  readonly subject: string;
  readonly sequence: number;
  readonly headers: MsgHdrs | undefined;
  readonly body: Uint8Array;
  /** ISO 8601; absent where it is not needed. */
  readonly time?: string;
}

interface Range {
  readonly stream: string;
  /** A subject, or a pattern of them. */
  readonly filter: string;
  /** The first sequence; absent: only the last message of each subject. */
  readonly from?: number;
  /** The last sequence; absent: the stream's last one when the read begins (JETSTREAM-READER-3). */
  readonly to?: number;
  /** Without bodies. */
  readonly headersOnly?: boolean;
}

const PAGE = 64;
/** Headers are small, and a page costs a round trip. */
const PAGE_OF_HEADERS = 1_024;
/** After this, the server removes the consumer of a daemon that was killed. */
const INACTIVE_MS = 30_000;

/** The last message on a subject; null: there is none. */
export function lastMessage(broker: Broker, stream: string, subject: string): Promise<StoredMessage | null> {
  return messageOf(broker, stream, { last_by_subj: subject });
}

/** The first message on a subject after a sequence; null: there is none. */
export function firstAfter(
  broker: Broker,
  stream: string,
  subject: string,
  sequence: number,
): Promise<StoredMessage | null> {
  return messageOf(broker, stream, { seq: sequence + 1, next_by_subj: subject });
}

async function messageOf(
  broker: Broker,
  stream: string,
  query: MsgRequest | { readonly seq: number; readonly next_by_subj: string },
): Promise<StoredMessage | null> {
  try {
    const found = await read(broker, stream, () => broker.manager.streams.getMessage(stream, query));
    const { subject, seq: sequence, header, data: body, time } = found;
    return { subject, sequence, headers: header, body, time: time.toISOString() };
  } catch (error) {
    if (isNotFound(error)) return null;
    throw storeError(error, `read stream ${stream}`);
  }
}

/** Passes each message to `onMessage`, oldest first, until that returns false. */
export async function readRange(
  broker: Broker,
  range: Range,
  onMessage: (message: StoredMessage) => boolean,
): Promise<void> {
  const { stream } = range;
  const name = `parley-store-${nuid.next()}`;
  const { manager } = broker;
  const addConsumer = () =>
    manager.consumers.add(stream, {
      name,
      ack_policy: AckPolicy.None,
      replay_policy: ReplayPolicy.Instant,
      filter_subject: range.filter,
      headers_only: range.headersOnly === true,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanos(INACTIVE_MS),
      ...(range.from === undefined
        ? { deliver_policy: DeliverPolicy.LastPerSubject }
        : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: Math.max(1, range.from) }),
    });
  try {
    const made = await read(broker, stream, addConsumer);
    if (made.num_pending === 0 && range.to === undefined) return;
    const to = range.to ?? (await lastSequence(broker, stream));
    await readPages(broker, { ...range, to }, made, range.to !== undefined, onMessage);
  } catch (error) {
    throw storeError(error, `read stream ${stream}`);
  } finally {
    // Not awaited, and a failure does not matter: the server removes an unused consumer by itself.
    manager.consumers.delete(stream, name).catch(() => undefined);
  }
}

/** Call after the consumer is created: it has then counted no message after this one (JETSTREAM-READER-3). */
async function lastSequence(broker: Broker, stream: string): Promise<number> {
  const { state } = await read(broker, stream, () => broker.manager.streams.info(stream));
  return state.last_seq;
}

/** A page continues after a reconnect. */
async function readPages(
  broker: Broker,
  { stream, to, headersOnly }: Range & { readonly to: number },
  made: ConsumerInfo,
  isFirm: boolean,
  onMessage: (message: StoredMessage) => boolean,
): Promise<void> {
  const { jetstream, timeoutMs } = broker;
  const consumer = jetstream.consumers.getPullConsumerFor(made);
  const pageSize = headersOnly ? PAGE_OF_HEADERS : PAGE;
  let missing = made.num_pending;
  let delivered = 0;
  while (missing > 0 || (isFirm && (await holds(broker, stream, to)))) {
    const before = delivered;
    const page = await consumer.fetch({
      max_messages: missing > 0 ? Math.min(pageSize, missing) : pageSize,
      expires: Math.max(1_000, timeoutMs),
    });
    for await (const message of page) {
      delivered += 1;
      if (message.info.deliverySequence !== delivered) throw new Error('a message was lost in transit');
      missing = message.info.pending;
      const { subject, seq: sequence, headers, data: body } = message;
      const wantsMore = onMessage({ subject, sequence, headers, body });
      if (!wantsMore || sequence >= to) return page.stop();
    }
    if (delivered > before) continue;
    const isHere = isFirm && (await holds(broker, stream, to));
    if (isHere || (await pendingOf(broker, made)) > 0) throw new Error('the server stopped sending');
    return; // the missing messages were removed: their conversation was deleted
  }
}

/** Messages that the consumer has not delivered yet. */
async function pendingOf(broker: Broker, { stream_name: stream, name }: ConsumerInfo): Promise<number> {
  const { num_pending: pending } = await read(broker, stream, () =>
    broker.manager.consumers.info(stream, name),
  );
  return pending;
}

/** False: the message was removed (JETSTREAM-READER-4). */
async function holds(broker: Broker, stream: string, sequence: number): Promise<boolean> {
  return (await messageOf(broker, stream, { seq: sequence })) !== null;
}

/** The subjects that hold a message, in no order. */
export async function subjectsOf(broker: Broker, stream: string, filter: string): Promise<string[]> {
  const { manager } = broker;
  try {
    const { state } = await read(broker, stream, () =>
      manager.streams.info(stream, { subjects_filter: filter }),
    );
    return Object.keys(state.subjects ?? {});
  } catch (error) {
    throw storeError(error, `read stream ${stream}`);
  }
}

/** Removes the messages of a subject, all or up to a sequence. Returns how many. */
export async function purgeSubject(
  broker: Broker,
  stream: string,
  filter: string,
  upTo?: number,
): Promise<number> {
  const { manager } = broker;
  try {
    await requireConnection(broker);
    const { purged } = await manager.streams.purge(
      stream,
      upTo === undefined ? { filter } : { filter, seq: upTo + 1 },
    );
    return purged;
  } catch (error) {
    throw storeError(error, `purge stream ${stream}`);
  }
}
