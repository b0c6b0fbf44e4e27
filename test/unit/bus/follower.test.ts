import { describe, expect, it } from 'vitest';
import { type Arrival, Follower } from '../../../src/bus/follower.ts';
import type { Entry, Received } from '../../../src/conversation/index.ts';

function note(index: number, content = 'x'): Entry {
  const author = { kind: 'system', id: 'parley', name: 'Parley' } as const;
  return { index, id: `n${index}`, createdAt: '', type: 'note', author, content };
}

/** A log in memory, and a feed that the test controls. */
function createLog(length: number) {
  const entries = Array.from({ length }, (_, index) => note(index));
  const log = {
    entries,
    emit: (_arrival: Arrival): void => undefined,
    subscriptions: 0,
    onPage: () => {},
    append(content: string) {
      const entry = note(entries.length, content);
      entries.push(entry);
      log.emit({ kind: 'entries', entries: [entry] });
    },
  };
  const source = {
    subscribe(onArrival: (arrival: Arrival) => void) {
      log.subscriptions++;
      log.emit = onArrival;
      return () => void log.subscriptions--;
    },
    async page(from: number) {
      const page = { length: entries.length, entries: entries.slice(from, from + 2) };
      log.onPage();
      return page;
    },
  };
  return { log, source };
}

const indexesOf = (received: readonly (Received | null)[]) =>
  received.flatMap((one) => (one?.kind === 'entries' ? one.entries.map(({ index }) => index) : []));

async function takeEntries(follower: Follower, count: number): Promise<number[]> {
  const indexes: number[] = [];
  while (indexes.length < count) indexes.push(...indexesOf([await follower.take()]));
  return indexes;
}

const MEGABYTE = 'x'.repeat(1_000_000);

describe('a follower of a conversation', () => {
  it('reads from the log what arrives beyond its limit while the log is read (FOLLOWER-5)', async () => {
    const { log, source } = createLog(4);
    const follower = new Follower(source, { whenFull: 'end' });
    follower.begin(0);
    let left = 10;
    log.onPage = () => {
      while (left-- > 0) log.append(MEGABYTE);
    };
    const wanted = Array.from({ length: 14 }, (_, index) => index);
    expect(await takeEntries(follower, 14)).toEqual(wanted);
    follower.close();
  });

  it('takes one append that is larger than its limit, if the reader keeps up (FOLLOWER-5)', async () => {
    const { log, source } = createLog(1);
    const follower = new Follower(source, { whenFull: 'end' });
    follower.begin(0);
    expect(await takeEntries(follower, 1)).toEqual([0]);
    const next = follower.take();
    log.append(MEGABYTE.repeat(5));
    expect(indexesOf([await next])).toEqual([1]);
    follower.close();
  });

  it('counts the arguments of tool calls as text that is queued (FOLLOWER-5)', async () => {
    const { log, source } = createLog(1);
    const follower = new Follower(source, { whenFull: 'end' });
    follower.begin(0);
    await follower.take();
    const call = { id: 'c', type: 'function', function: { name: 'write', arguments: MEGABYTE } };
    for (let index = 1; index < 7; index++) {
      const entry = {
        ...note(index),
        type: 'message',
        role: 'assistant',
        tool_calls: [call],
      } as unknown as Entry;
      log.emit({ kind: 'entries', entries: [entry] });
    }
    await expect(follower.take()).rejects.toMatchObject({ code: 'TOO_SLOW' });
    expect(log.subscriptions).toBe(0);
  });

  it('waits for the start of a conversation, and ends if entries are missing that it is known to have (FOLLOWER-6)', async () => {
    const { log, source } = createLog(0);
    const waiting = new Follower(source, { whenFull: 'end' });
    waiting.begin(0);
    const first = takeEntries(waiting, 1);
    await new Promise((resolve) => setImmediate(resolve));
    log.append('first');
    expect(await first).toEqual([0]);
    waiting.close();
    const known = new Follower(source, { whenFull: 'end' });
    known.begin(5, 5);
    await expect(known.take()).rejects.toMatchObject({ code: 'CONVERSATION_DELETED' });
    known.close();
  });
});
