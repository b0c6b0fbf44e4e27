import type { Entry } from '../../src/conversation/index.ts';
import type { ConversationLog } from '../../src/persistence/index.ts';
import { serialiseBatch } from '../../src/persistence/rules.ts';
import type { Documents, Storage } from '../../src/persistence/storage.ts';

/** Waits for its turn, before each step of one process. */
export type Step = () => Promise<void>;

/**
 * What several daemons share, in memory: documents with compare-and-set, logs that name the expected sequence, contents with a name
 * of their own. Each process reads and writes it in steps, so that a test decides their order.
 */
export class SharedMemory {
  #sequence = 0;
  readonly documents = new Map<string, { readonly json: string; readonly sequence: number }>();
  readonly contents = new Map<string, Uint8Array>();
  readonly logs = new Map<string, { readonly sequence: number; readonly entries: readonly Entry[] }[]>();

  storage(step: Step): Storage {
    return {
      ...{ id: 'shared', isFeed: false },
      documents: this.#documents(step),
      blobs: this.#contents(step),
      audit: { append: async () => undefined, read: async () => [] },
      shared: {
        newest: async () => null,
        origin: async () => null,
        all: async () => new Map(),
        extent: async (conversation) => {
          await step();
          const last = this.#log(conversation).at(-1)?.sequence ?? 0;
          await step();
          const [first] = this.#log(conversation);
          const id = first?.entries[0]?.id;
          return { last, first: first && id ? { id, sequence: first.sequence } : null };
        },
      },
      openLog: async (conversation, onClosed) => {
        await step();
        const entries = this.entries(conversation);
        return { log: this.#open(conversation, step, onClosed), entries, tornTail: null };
      },
      hasLog: async (conversation) => this.#log(conversation).length > 0,
      conversations: async () => [...this.logs.keys()],
      remove: async (conversation, newest) => {
        await step();
        const later = this.#log(conversation).filter(({ sequence }) => sequence > newest);
        const isSame = later[0] !== undefined && later[0].entries[0]?.index !== 0;
        this.logs.set(conversation, isSame ? [] : later);
        return { records: 0, outputs: 0 };
      },
      close: async () => undefined,
    };
  }

  entries(conversation: string): Entry[] {
    return this.#log(conversation).flatMap(({ entries }) => entries);
  }

  #log(conversation: string) {
    return this.logs.get(conversation) ?? [];
  }

  #open(conversation: string, step: Step, onClosed: () => void): ConversationLog {
    let known = this.#log(conversation).at(-1)?.sequence ?? 0;
    let { length } = this.entries(conversation);
    const all = () => this.entries(conversation);
    return {
      conversation,
      get length() {
        return length;
      },
      append: async (expected, entries) => {
        serialiseBatch(conversation, expected, entries);
        await step();
        const log = this.#log(conversation);
        if (expected !== length || (log.at(-1)?.sequence ?? 0) !== known)
          return { kind: 'conflict', length: all().length };
        known = ++this.#sequence;
        this.logs.set(conversation, [...log, { sequence: known, entries }]);
        length += entries.length;
        return { kind: 'appended', length };
      },
      read: async (from, to) => all().slice(from, to),
      close: async () => onClosed(),
    };
  }

  #contents(step: Step): Storage['blobs'] {
    return {
      put: async (_, content) => {
        const pieces: Uint8Array[] = [];
        for await (const piece of content) pieces.push(piece);
        await step();
        const name = `content-${++this.#sequence}`;
        this.contents.set(name, Buffer.concat(pieces));
        return name;
      },
      read: async (name) => {
        await step();
        const found = this.contents.get(name);
        return found === undefined
          ? null
          : (async function* () {
              yield found;
            })();
      },
      remove: async (name) => {
        await step();
        this.contents.delete(name);
      },
      list: async () => [...this.contents.keys()],
      storedAt: async (name) => (this.contents.has(name) ? '2026-01-01T00:00:00.000Z' : null),
    };
  }

  #documents(step: Step): Documents {
    const { documents } = this;
    const value = (key: string): unknown => JSON.parse(documents.get(key)?.json ?? 'null');
    const put = (key: string, next: unknown) =>
      void documents.set(key, { json: JSON.stringify(next), sequence: ++this.#sequence });
    const rests = (start: string) =>
      [...documents.keys()].flatMap((key) => (key.startsWith(start) ? [key.slice(start.length)] : []));
    return {
      get: async (key) => {
        await step();
        return value(key);
      },
      put: async (key, next) => {
        await step();
        put(key, next);
      },
      change: async (key, next) => {
        for (;;) {
          await step();
          const seen = documents.get(key)?.sequence;
          const changed = next(value(key));
          if (changed === null) return;
          await step();
          if (documents.get(key)?.sequence === seen) return put(key, changed);
        }
      },
      remove: async (key) => {
        await step();
        documents.delete(key);
      },
      removeIf: async (key, when) => {
        await step();
        const seen = documents.get(key)?.sequence;
        if (seen === undefined || !when(value(key))) return;
        await step();
        if (documents.get(key)?.sequence === seen) documents.delete(key);
      },
      removeAll: async (start) => {
        for (const rest of rests(start)) documents.delete(start + rest);
      },
      keys: async (start) => {
        await step();
        return rests(start);
      },
      entries: async (start) => {
        await step();
        return new Map(rests(start).map((rest) => [rest, value(start + rest)]));
      },
      flush: async () => undefined,
    };
  }
}
