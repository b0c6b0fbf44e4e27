import type { NewestAppend, SharedLogs } from '../port.ts';
import { requireConversationId } from '../rules.ts';
import { standingOf } from './append-message.ts';
import type { Broker } from './broker.ts';
import { lastMessage, readRange } from './reader.ts';
import { ANY, type StoreNames } from './streams.ts';

/** Whose each conversation is and whether it owes something, as the last message of each subject says. */
export function createSharedLogs(broker: Broker, names: StoreNames): SharedLogs {
  const stream = names.logStream;
  return {
    async newest(conversation) {
      requireConversationId(conversation);
      const last = await lastMessage(broker, stream, names.log(conversation));
      return last && { standing: standingOf(last.headers), sequence: last.sequence };
    },
    async all() {
      const found = new Map<string, NewestAppend>();
      const filter = names.log(ANY);
      const before = filter.length - ANY.length;
      await readRange(broker, { stream, filter, headersOnly: true }, ({ subject, headers, sequence }) => {
        found.set(subject.slice(before), { standing: standingOf(headers), sequence });
        return true;
      });
      return found;
    },
  };
}
