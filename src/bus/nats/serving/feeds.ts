import type { NatsConnection } from 'nats';
import { type Entry, NAME_PATTERN, SLUG_PATTERN } from '../../../conversation/index.ts';
import { encodeAudit, packEntries } from '../../envelopes.ts';
import type { LiveChunk } from '../../port.ts';
import type { Subjects } from '../../subjects.ts';

const encoder = new TextEncoder();

/** The best-effort publishes (B3): what cannot be sent is dropped, and followers see the gap in `index` or `n`. */
export interface Feeds {
  publishEntries(conversation: string, entries: readonly Entry[]): void;
  publishLive(conversation: string, agent: string, chunk: LiveChunk): void;
  publishAudit(conversation: string, record: Readonly<Record<string, unknown>>): void;
}

export function createFeeds(connection: NatsConnection, subjects: Subjects, maxPayload: () => number): Feeds {
  const send = (subject: string, payload: Uint8Array) => {
    try {
      connection.publish(subject, payload);
    } catch {
      // Closed, draining or too large: dropped, as B3 allows.
    }
  };
  return {
    publishEntries(conversation, entries) {
      if (!NAME_PATTERN.test(conversation)) return;
      for (const message of packEntries(entries, maxPayload())) send(subjects.log(conversation), message);
    },
    publishLive(conversation, agent, chunk) {
      if (!NAME_PATTERN.test(conversation) || !SLUG_PATTERN.test(agent)) return;
      send(subjects.live(conversation, agent), encoder.encode(JSON.stringify(chunk)));
    },
    publishAudit(conversation, record) {
      if (!NAME_PATTERN.test(conversation)) return;
      send(subjects.audit(conversation), encodeAudit(record, maxPayload()));
    },
  };
}
