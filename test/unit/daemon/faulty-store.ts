import type { AppendOutcome, ConversationLog, ConversationStore } from '../../../src/persistence/index.ts';

/** What the next append is to do instead: throw, or answer with another outcome. */
export type Fault = Error | AppendOutcome;

/** A store whose next appends fail as listed, and that records the others. */
export function faultyStore(
  store: ConversationStore,
  faults: Fault[],
  appends: number[],
  happened: string[],
): ConversationStore {
  const faulty = (log: ConversationLog): ConversationLog => ({
    get conversation() {
      return log.conversation;
    },
    get length() {
      return log.length;
    },
    get newestSequence() {
      return log.newestSequence ?? 0;
    },
    async append(expected, entries, status) {
      const fault = faults.shift();
      if (fault instanceof Error) throw fault;
      if (fault) return fault;
      appends.push(entries.length);
      happened.push(`appended ${entries.map(({ type }) => type).join(' ')}`);
      return log.append(expected, entries, status);
    },
    read: (from, to) => log.read(from, to),
    close: () => log.close(),
  });
  return new Proxy(store, {
    get(target, name) {
      if (name === 'open') {
        return async (id: string) => {
          const opened = await target.open(id);
          return { ...opened, log: faulty(opened.log) };
        };
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
