import { headers, nuid } from 'nats';
import type { Documents } from '../documents.ts';
import type { AuditRecord } from '../port.ts';
import type { AuditLog } from '../storage.ts';
import { type Broker, publish, storeError } from './broker.ts';
import { maxBody } from './documents.ts';
import { lastMessage, readRange } from './reader.ts';
import type { StoreNames } from './streams.ts';

/**
 * Records of tool calls: a record is one message on `parley.audit.<conversation>`.
 *
 * STREAM-AUDIT-1 A record that is too large for a message is a document, which its message names.
 * STREAM-AUDIT-2 A record whose acknowledgement was lost may be stored twice. `append` resolves only if it is stored.
 */

const BODY_HEADER = 'Parley-Body';

export function createStreamAudit(broker: Broker, names: StoreNames, documents: Documents): AuditLog {
  const stream = names.auditStream;

  async function messageOf(conversation: string, record: AuditRecord) {
    const json = JSON.stringify(record);
    const made = headers();
    if (Buffer.byteLength(json) <= maxBody(broker)) return { body: Buffer.from(json), headers: made };
    const id = nuid.next();
    await documents.put(`record.${conversation}.${id}`, json, 'durable');
    made.set(BODY_HEADER, id);
    const { arguments: _, result: __, ...short } = record;
    return { body: Buffer.from(JSON.stringify({ ...short, truncated: true })), headers: made };
  }

  return {
    async append(conversation, records) {
      // All are prepared before the first is sent: a large one takes longer, and would be stored after later ones.
      const messages = await Promise.all(records.map((record) => messageOf(conversation, record)));
      const outcomes = await Promise.all(
        messages.map((message) =>
          publish(broker, stream, { subject: names.audit(conversation), ...message }),
        ),
      );
      for (const outcome of outcomes) {
        if (outcome.kind === 'stored') continue;
        const cause = outcome.kind === 'conflict' ? new Error('the server saw a conflict') : outcome.cause;
        throw storeError(cause, `record a tool call of conversation ${conversation}`);
      }
    },
    async read(conversation) {
      const filter = names.audit(conversation);
      const last = await lastMessage(broker, stream, filter);
      if (last === null) return [];
      const found: { readonly text: string; readonly kept: string }[] = [];
      await readRange(broker, { stream, filter, from: 1, to: last.sequence }, (message) => {
        const text = Buffer.from(message.body).toString();
        found.push({ text, kept: message.headers?.get(BODY_HEADER) ?? '' });
        return true;
      });
      const texts: string[] = [];
      for (const { text, kept } of found)
        texts.push(kept === '' ? text : String(await documents.get(`record.${conversation}.${kept}`)));
      return texts;
    },
  };
}
