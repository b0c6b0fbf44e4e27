import type { MsgHdrs } from 'nats';
import type { NewestAppend, SharedLogs } from '../port.ts';
import { requireConversationId } from '../rules.ts';
import { appendOf, statusOf } from './append-message.ts';
import type { Broker } from './broker.ts';
import type { Documents } from './documents.ts';
import { lastMessage, readRange } from './reader.ts';
import { ANY, type StoreNames } from './streams.ts';

const MARK = 'attempts';

/** Owners and outstanding work of conversations, from the last message of each subject; marks for attempts on posts. */
export function createSharedLogs(broker: Broker, names: StoreNames, documents: Documents): SharedLogs {
  const stream = names.logStream;
  return {
    async newest(conversation) {
      requireConversationId(conversation);
      const filter = names.log(conversation);
      const last = await lastMessage(broker, stream, filter);
      if (last === null || appendOf(last.headers) !== null) return newestOf(last);
      let newest: NewestAppend | null = null; // the last message is not an append: search for one
      await readRange(
        broker,
        { stream, filter, from: 1, to: last.sequence, headersOnly: true },
        (message) => {
          if (appendOf(message.headers) !== null) newest = newestOf(message);
          return true;
        },
      );
      return newest;
    },
    async all() {
      const found = new Map<string, NewestAppend>();
      const filter = names.log(ANY);
      const before = filter.length - ANY.length;
      await readRange(broker, { stream, filter, headersOnly: true }, ({ subject, headers, sequence }) => {
        const length = appendOf(headers)?.length ?? null;
        found.set(subject.slice(before), { status: statusOf(headers), sequence, length });
        return true;
      });
      return found;
    },
    async forgetRow(conversation) {
      for (const kind of ['row', 'state']) await documents.remove(`${kind}.${conversation}`);
    },
    async attempts({ stream, sequence }) {
      const mark = (await documents.get(`${MARK}.${sequence}`)) as { stream: string; begun: number } | null;
      return mark?.stream === stream ? mark.begun : null;
    },
    async saveAttempts({ stream, sequence }, begun) {
      const key = `${MARK}.${sequence}`;
      await (begun === null ? documents.remove(key) : documents.put(key, { stream, begun }));
    },
  };
}

function newestOf(
  message: { readonly headers: MsgHdrs | undefined; readonly sequence: number } | null,
): NewestAppend | null {
  if (message === null) return null;
  const { headers, sequence } = message;
  return { status: statusOf(headers), sequence, length: appendOf(headers)?.length ?? null };
}
