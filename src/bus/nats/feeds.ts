import type { NatsConnection } from 'nats';
import { type Entry, NAME_PATTERN, SLUG_PATTERN } from '../../conversation/index.ts';
import { jsonBytes } from '../../kernel/index.ts';
import type { Bus } from '../port.ts';
import type { Subjects } from '../subjects.ts';

/**
 * The best-effort publishes (BUS-PORT-3): failed ones are dropped, and followers see the gap in `index` or `n`. What is
 * published in one turn of the event loop is written together: each write to a socket takes as long as several publishes.
 */
interface Feeds extends Pick<Bus, 'publishEntries' | 'publishLive' | 'publishAudit'> {
  /** Before the connection is closed. */
  flush(): void;
}

export function createFeeds(connection: NatsConnection, subjects: Subjects, maxPayload: () => number): Feeds {
  let waiting: { readonly subject: string; readonly payload: Uint8Array }[] = [];
  const flush = () => {
    const messages = waiting;
    waiting = [];
    for (const { subject, payload } of messages) {
      try {
        connection.publish(subject, payload);
      } catch {
        // Closed, draining or too large: dropped, as BUS-PORT-3 allows.
      }
    }
  };
  const send = (subject: string, payload: Uint8Array) => {
    if (waiting.push({ subject, payload }) === 1) setImmediate(flush);
  };
  return {
    publishEntries(conversation, entries) {
      if (!NAME_PATTERN.test(conversation)) return;
      for (const message of packEntries(entries, maxPayload())) send(subjects.log(conversation), message);
    },
    publishLive(conversation, agent, chunk) {
      if (!NAME_PATTERN.test(conversation) || !SLUG_PATTERN.test(agent)) return;
      send(subjects.live(conversation, agent), jsonBytes(chunk));
    },
    publishAudit(conversation, record) {
      if (!NAME_PATTERN.test(conversation)) return;
      send(subjects.audit(conversation), encodeAudit(record, maxPayload()));
    },
    flush,
  };
}

/**
 * The messages `{"entries":[…]}` that carry these entries in order, each within `maxBytes`. An entry that does not
 * fit alone is left out: followers see the gap in `index` and ask the `entries` verb.
 */
export function packEntries(entries: readonly Entry[], maxBytes: number): Uint8Array[] {
  const frame = '{"entries":[]}'.length;
  const messages: Uint8Array[] = [];
  let batch: string[] = [];
  let size = frame;
  const flush = () => {
    if (batch.length > 0) messages.push(Buffer.from(`{"entries":[${batch.join(',')}]}`));
    batch = [];
    size = frame;
  };
  for (const entry of entries) {
    const json = JSON.stringify(entry);
    const bytes = Buffer.byteLength(json) + 1;
    if (frame + bytes > maxBytes) continue;
    if (size + bytes > maxBytes) flush();
    batch.push(json);
    size += bytes;
  }
  flush();
  return messages;
}

/** The fields of an audit record that can be long. */
const LONG_FIELDS: readonly string[] = ['arguments', 'result'];
/** A record of the audit log within `maxBytes`; else without its long fields, and `truncated`. */
export function encodeAudit(record: Readonly<Record<string, unknown>>, maxBytes: number): Uint8Array {
  const whole = jsonBytes(record);
  if (whole.length <= maxBytes) return whole;
  const short = Object.entries(record).filter(([name]) => !LONG_FIELDS.includes(name));
  return jsonBytes({ ...Object.fromEntries(short), truncated: true });
}
