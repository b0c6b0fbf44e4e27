import type { NatsConnection } from 'nats';
import { NAME_PATTERN, SLUG_PATTERN } from '../../../conversation/index.ts';
import { encodeAudit, packEntries } from '../../envelopes.ts';
import type { Bus } from '../../port.ts';
import type { Subjects } from '../../subjects.ts';

/**
 * The best-effort publishes (BUS-PORT-3): failed ones are dropped, and followers see the gap in `index` or `n`. What is
 * published in one turn of the event loop is written together: each write to a socket takes as long as several publishes.
 */
export interface Feeds extends Pick<Bus, 'publishEntries' | 'publishLive' | 'publishAudit'> {
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
      send(subjects.live(conversation, agent), Buffer.from(JSON.stringify(chunk)));
    },
    publishAudit(conversation, record) {
      if (!NAME_PATTERN.test(conversation)) return;
      send(subjects.audit(conversation), encodeAudit(record, maxPayload()));
    },
    flush,
  };
}
