import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ApiAnswer, ApiRequest } from '../../../src/bus/port.ts';
import type { Entry } from '../../../src/conversation/index.ts';
import { ListFeed } from '../../../src/gateway/events/feeds.ts';
import type { Gateway, Token } from '../../../src/gateway/index.ts';
import { eventStream } from '../../../src/gateway/progress/event-stream.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { type EventReader, readEvents } from '../../support/event-source.ts';
import { perTest } from '../../support/lifetime.ts';
import { itLong } from '../../support/long.ts';
import { shortenWaits } from '../../support/short-waits.ts';
import { type FakeDaemon, messageEntry, openGateway } from './support.ts';

describe('the event stream of a conversation', () => {
  const opened = perTest(() => openGateway());
  const { gateway, daemon } = opened;
  beforeEach(() => {
    daemon.append('demo', 'zero', 'one', 'two');
  });

  const url = (query = '', conversation = 'demo') =>
    `${gateway.url}/api/conversations/${conversation}/events${query}`;
  const chunk = (n: number) => ({ turnId: 't', call: 'c', n, type: 'text' as const, delta: `d${n}` });

  it('the event stream contains the log and later appends, with indexes as ids', async () => {
    const reader = await readEvents(url());
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2]);
    daemon.append('demo', 'three');
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2, 3]);
    expect(reader.events.at(-1)).toMatchObject({
      id: '3',
      event: 'entry',
      data: { index: 3, content: 'three' },
    });
    reader.close();
  });

  it.each<[string, string, Record<string, string>, number[]]>([
    ['?from', '?from=2', {}, [2]],
    ['Last-Event-ID', '', { 'last-event-id': '0' }, [1, 2]],
    ['Last-Event-ID rather than ?from, which a browser repeats', '?from=0', { 'last-event-id': '1' }, [2]],
    ['the end of the log', '?from=3', {}, []],
  ])('the event stream resumes from %s', async (_, query, headers, indexes) => {
    const reader = await readEvents(url(query), headers);
    daemon.append('demo', 'three');
    await expect.poll(() => reader.indexes()).toEqual([...indexes, 3]);
    reader.close();
  });

  it('each stream begins with the text so far of what is being written, before what continues it', async () => {
    daemon.liveSoFar = () => [
      { kind: 'live', agent: 'pm', chunk: { ...chunk(4), from: 0, delta: 'so far' } },
    ];
    const first = await readEvents(url());
    await expect.poll(() => first.events.at(-1)?.data).toMatchObject({ from: 0, n: 4, delta: 'so far' });
    const second = await readEvents(url());
    await expect.poll(() => second.events.at(-1)?.data).toMatchObject({ from: 0, n: 4, delta: 'so far' });
    daemon.publish('demo', { kind: 'live', agent: 'pm', chunk: chunk(5) });
    for (const reader of [first, second]) {
      await expect.poll(() => reader.events.at(-1)?.data).toMatchObject({ n: 5 });
      expect(reader.events.filter(({ event }) => event === 'live')).toHaveLength(2);
      reader.close();
    }
  });

  it('live text has no event id, so a reconnect requests only entries', async () => {
    const reader = await readEvents(url());
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2]);
    daemon.publish('demo', { kind: 'live', agent: 'pm', chunk: chunk(0) });
    await expect
      .poll(() => reader.events.at(-1))
      .toEqual({
        id: null,
        event: 'live',
        data: { agent: 'pm', ...chunk(0) },
      });
    expect(reader.lastId()).toBe('2');
    reader.close();
  });

  it('no entry is missing that is appended while the log is read page by page', async () => {
    const pages = daemon.answer;
    let asked = 0;
    daemon.answer = async (asking) => {
      const answer = await pages({ ...asking, body: { ...(asking.body as object), limit: 2 } });
      if (asked++ < 5) daemon.append('demo', `during ${asked}`); // after the page was cut
      return answer;
    };
    const reader = await readEvents(url());
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    daemon.append('demo', 'last');
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    reader.close();
  });

  it('entries that the feed lacks are read from the log again', async () => {
    const reader = await readEvents(url());
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2]);
    const lost = daemon.append('other', 'a', 'b', 'c', 'd', 'e');
    daemon.logs.get('demo')?.push(...lost.slice(3));
    daemon.publish('demo', { kind: 'entries', entries: lost.slice(4) });
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2, 3, 4]);
    reader.close();
  });

  it('the log decides where the feed has appends that the server refused', async () => {
    const reader = await readEvents(url());
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2]);
    const refused = (index: number, more: object = {}) =>
      ({ ...messageEntry(index, 'refused'), id: 'other', ...more }) as Entry;
    const claim = refused(3, { type: 'claim', daemon: 'b', epoch: 1 });
    daemon.publish('demo', { kind: 'entries', entries: [refused(1)] });
    daemon.publish('demo', { kind: 'entries', entries: [claim, refused(4)] });
    daemon.append('demo', 'three', 'four');
    await expect
      .poll(() => reader.events.slice(3).map(({ data }) => data))
      .toMatchObject([{ content: 'three' }, { content: 'four' }]);
    reader.close();
  });

  it('the event stream of a conversation that does not exist yet waits for it', async () => {
    const reader = await readEvents(url('', 'later'));
    await expect.poll(() => daemon.asked.length).toBeGreaterThan(0);
    daemon.append('later', 'zero');
    await expect.poll(() => reader.indexes()).toEqual([0]);
    reader.close();
  });

  it('the event stream ends with a notice when the conversation is deleted', async () => {
    const reader = await readEvents(url());
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2]);
    daemon.logs.delete('demo');
    daemon.append('demo', 'anew');
    await reader.ended;
    expect(reader.events.at(-1)).toMatchObject({ event: 'end', data: { code: 'CONVERSATION_DELETED' } });
  });

  it.each([
    ['is gone', () => daemon.logs.delete('demo')],
    ['is shorter', () => daemon.logs.get('demo')?.splice(1)],
  ])('the event stream ends for a reader that reconnects to a log that %s', async (_, change) => {
    change();
    const reader = await readEvents(url(), { 'last-event-id': '2' });
    await reader.ended;
    expect(reader.events).toMatchObject([{ event: 'end', data: { code: 'CONVERSATION_DELETED' } }]);
  });

  it('the event stream ends with the error when the log cannot be read', async () => {
    daemon.answer = () => ({ ok: false, refusal: { code: 'LOG_CORRUPT', message: 'damaged' } });
    const reader = await readEvents(url());
    await reader.ended;
    expect(reader.events).toEqual([
      { id: null, event: 'end', data: { code: 'LOG_CORRUPT', message: 'damaged' } },
    ]);
  });

  it.each([
    ['a bug', new Error('secret detail'), 'INTERNAL', 1],
    ['a refusal', new ParleyError('STORE_UNAVAILABLE', 'the store is away'), 'STORE_UNAVAILABLE', 0],
  ])(
    'the event stream ends with a notice when reading the log throws %s',
    async (_, error, code, reported) => {
      daemon.answer = () => Promise.reject(error);
      const reader = await readEvents(url());
      await reader.ended;
      expect(reader.events).toMatchObject([{ event: 'end', data: { code } }]);
      expect(JSON.stringify(reader.events)).not.toContain('secret');
      expect(opened.faults).toEqual(reported === 0 ? [] : [error]);
      expect(daemon.watchers('demo')).toBe(0);
    },
  );

  it('the event stream ends with a notice when the daemon stops', async () => {
    const reader = await readEvents(url());
    await expect.poll(() => reader.indexes()).toEqual([0, 1, 2]);
    gateway.dismissReaders();
    await reader.ended;
    expect(reader.events.at(-1)).toMatchObject({ event: 'end', data: { code: 'STOPPING' } });
    const late = await readEvents(url());
    await late.ended;
    expect(late.events).toMatchObject([{ event: 'end', data: { code: 'STOPPING' } }]);
  });

  it.each(['?from=-1', '?from=x', '?from=1e9999'])(
    'the event stream refuses to begin at %s',
    async (query) => {
      const answer = await fetch(url(query));
      expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'BAD_REQUEST' }]);
    },
  );

  it('the event stream needs a valid conversation name', async () => {
    const answer = await fetch(url('', 'a.b'));
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'INVALID_NAME' }]);
  });

  it('the subscription of a reader ends with it', async () => {
    const readers = await Promise.all([1, 2, 3].map(() => readEvents(url())));
    for (const reader of readers) await expect.poll(() => reader.indexes()).toEqual([0, 1, 2]);
    expect(daemon.watchers('demo')).toBe(3);
    for (const reader of readers) reader.close();
    await expect.poll(() => daemon.watchers('demo')).toBe(0);
  });

  it('an event is serialized once for all readers', async () => {
    let written = 0;
    const [entry] = daemon.append('counted', 'zero');
    Object.defineProperty(entry, 'toJSON', {
      value() {
        written++;
        return { ...this };
      },
    });
    const readers = await Promise.all([1, 2, 3, 4].map(() => readEvents(url('', 'counted'))));
    for (const reader of readers) await expect.poll(() => reader.indexes()).toEqual([0]);
    expect(written).toBe(1);
    for (const reader of readers) reader.close();
  });
});

describe('a reader of the event stream', () => {
  it('a reader gets a heartbeat while nothing happens', async () => {
    const { gateway, daemon } = await openGateway({ heartbeatMs: 20 });
    daemon.append('demo', 'zero');
    const reader = await readEvents(`${gateway.url}/api/conversations/demo/events`);
    await expect.poll(() => reader.comments.length).toBeGreaterThan(2);
    expect(reader.indexes()).toEqual([0]);
    reader.close();
    await gateway.close();
  });

  it('a reader that does not read is disconnected while others continue, and may reconnect', async () => {
    const { gateway, daemon } = await openGateway();
    const count = 400; // more than the buffers of the system hold
    daemon.append('demo', 'zero');
    const url = `${gateway.url}/api/conversations/demo/events`;
    const sluggard = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
      request(url, (response) => resolve(response.pause()))
        .on('error', reject)
        .end();
    });
    const other = await readEvents(url);
    await expect.poll(() => other.indexes()).toEqual([0]);
    expect(daemon.watchers('demo')).toBe(2);
    const wanted = Array.from({ length: count + 1 }, (_unused, index) => index);
    for (let index = 1; index <= count; index++) {
      daemon.append('demo', 'x'.repeat(100_000));
      await new Promise((resolve) => setImmediate(resolve)); // the other one reads
    }
    await expect.poll(() => other.indexes()).toEqual(wanted);
    other.close();
    await expect.poll(() => daemon.watchers('demo')).toBe(0); // the slow reader has left, too
    sluggard.destroy();
    const again = await readEvents(`${url}?from=1`);
    await expect.poll(() => again.indexes()).toEqual(wanted.slice(1));
    again.close();
    await gateway.close();
  }, 60_000);
});

describe('frames as a stream of events', () => {
  it('an event stream releases its resources and reports the error when the next frame fails', async () => {
    let gone = 0;
    const faults: unknown[] = [];
    async function* frames(): AsyncGenerator<string> {
      yield 'data: first\n\n';
      throw new Error('a bug');
    }
    const { body } = eventStream(frames(), {
      heartbeatMs: 5,
      closing: new AbortController().signal,
      onGone: () => {
        gone += 1;
      },
      onFault: (error) => void faults.push(error),
    });
    const reader = body!.getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('data: first\n\n');
    expect(await reader.read()).toMatchObject({ done: true });
    expect(faults).toEqual([new Error('a bug')]);
    expect(gone).toBe(1);
    await pause(30); // several heartbeats
    expect(gone).toBe(1);
  });
});

interface Row {
  readonly id: string;
  readonly length: number;
}

/** Answers the verb `conversations` from these rows, two a page. */
function withList(daemon: FakeDaemon, rows: Row[]): { incomplete: boolean } {
  const { answer } = daemon;
  const state = { incomplete: false };
  daemon.answer = (request: ApiRequest): ApiAnswer | Promise<ApiAnswer> => {
    if (request.endpoint !== 'conversations') return answer(request);
    const { after = '' } = request.body as { after?: string };
    const left = rows.filter(({ id }) => id > after);
    const conversations = left.slice(0, 2);
    const next = left.length > 2 ? conversations.at(-1)?.id : null;
    return { ok: true, body: { conversations, next, ...(state.incomplete && { incomplete: ['b'] }) } };
  };
  return state;
}

describe('the event stream of several conversations', () => {
  let gateway: Gateway;
  let daemon: FakeDaemon;
  let rows: Row[];
  let list: { incomplete: boolean };
  const readers: EventReader[] = [];
  beforeEach(async () => {
    ({ gateway, daemon } = await openGateway());
    daemon.append('one', 'a', 'b');
    daemon.append('two', 'c');
    rows = ['one', 'three', 'two'].map((id) => ({ id, length: 1 }));
    list = withList(daemon, rows);
  });
  afterEach(async () => {
    for (const reader of readers.splice(0)) reader.close();
    await gateway.close();
  });

  const read = async (query: string) => {
    const reader = await readEvents(`${gateway.url}/api/events?${query}`);
    readers.push(reader);
    return reader;
  };
  const entriesIn = ({ events }: EventReader) =>
    events
      .filter(({ event }) => event === 'entry')
      .map(({ data }) => data as { conversation: string; entry: { index: number } })
      .map(({ conversation, entry }) => `${conversation} ${entry.index}`)
      .sort();
  interface Change {
    readonly version: string;
    readonly whole: boolean;
    readonly conversations: readonly Row[];
    readonly deleted: readonly string[];
  }
  const listsIn = ({ events }: EventReader) =>
    events.filter(({ event }) => event === 'list').map(({ data }) => data as Change);
  const lastList = async (reader: EventReader, count: number) => {
    await expect.poll(() => listsIn(reader).length).toBe(count);
    return listsIn(reader).at(-1);
  };

  it('one stream contains the logs, the live text and later appends of each conversation from its index on', async () => {
    const reader = await read('follow=one@1,two');
    await expect.poll(() => entriesIn(reader)).toEqual(['one 1', 'two 0']);
    daemon.append('one', 'd');
    daemon.append('two', 'e');
    daemon.append('three', 'not followed');
    await expect.poll(() => entriesIn(reader)).toEqual(['one 1', 'one 2', 'two 0', 'two 1']);
    const chunk = { turnId: 't', call: 'c', n: 0, type: 'text' as const, delta: 'hm' };
    daemon.publish('two', { kind: 'live', agent: 'pm', chunk });
    await expect
      .poll(() => reader.events.at(-1)?.data)
      .toEqual({ conversation: 'two', agent: 'pm', ...chunk });
    reader.close();
    await expect.poll(() => daemon.watchers('one') + daemon.watchers('two')).toBe(0);
  });

  it('the stream says once that a conversation is read to its end, and that there is no such conversation', async () => {
    const reader = await read('follow=one,none');
    const currents = () => reader.events.filter(({ event }) => event === 'current').map(({ data }) => data);
    await expect.poll(currents).toEqual(
      expect.arrayContaining([
        { conversation: 'one', length: 2 },
        { conversation: 'none', length: 0 },
      ]),
    );
    daemon.append('one', 'c');
    await expect.poll(() => entriesIn(reader).length).toBe(3);
    expect(currents()).toHaveLength(2);
  });

  it('a deleted conversation is over, and the others continue', async () => {
    const reader = await read('follow=one,two');
    await expect.poll(() => entriesIn(reader).length).toBe(3);
    daemon.logs.delete('one');
    daemon.append('one', 'anew');
    await expect
      .poll(() => reader.events.find(({ event }) => event === 'over')?.data)
      .toMatchObject({ conversation: 'one', code: 'CONVERSATION_DELETED' });
    daemon.append('two', 'd');
    await expect.poll(() => entriesIn(reader)).toContain('two 1');
  });

  itLong('the list is sent once as a whole, then only the rows that changed or were deleted', async () => {
    const reader = await read('list=1');
    expect(await lastList(reader, 1)).toMatchObject({ whole: true, conversations: rows, deleted: [] });
    rows[0] = { id: 'one', length: 7 };
    expect(await lastList(reader, 2)).toMatchObject({ whole: false, conversations: [rows[0]], deleted: [] });
    rows.splice(1, 1);
    expect(await lastList(reader, 3)).toMatchObject({ whole: false, conversations: [], deleted: ['three'] });
  });

  it('a reader that names its last version gets what changed since, and the whole list if it is not known', async () => {
    const first = await read('list=1');
    const { version = '' } = (await lastList(first, 1)) ?? {};
    first.close();
    rows[2] = { id: 'two', length: 3 };
    const again = await read(`list=${version}`);
    expect(await lastList(again, 1)).toMatchObject({ whole: false, conversations: [rows[2]] });
    expect(await lastList(await read('list=other-7'), 1)).toMatchObject({ whole: true, conversations: rows });
  });

  it('no row is deleted while a daemon that shares the work does not answer', async () => {
    shortenWaits();
    const reader = await read('list=1');
    await lastList(reader, 1);
    list.incomplete = true;
    rows.splice(0, 1);
    rows[0] = { id: 'three', length: 2 };
    expect(await lastList(reader, 2)).toMatchObject({ conversations: [rows[0]], deleted: [] });
    list.incomplete = false;
    expect(await lastList(reader, 3)).toMatchObject({ deleted: ['one'] });
  });

  function feedOnSimulatedClock(): ListFeed {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    return new ListFeed({ daemon: () => daemon, newId: () => 'E', onFault: () => undefined });
  }

  it('the list is read once for all readers, and not without readers', async () => {
    const feed = feedOnSimulatedClock();
    const feeds = [feed.join('1'), feed.join('1'), feed.join('1')];
    const frames = await Promise.all(feeds.map((one) => one.take()));
    expect(frames.map((one) => one?.length)).toEqual([1, 1, 1]);
    const reads = () => daemon.asked.filter(({ endpoint }) => endpoint === 'conversations').length;
    expect(reads()).toBe(2); // pages
    for (const one of feeds) one.close();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(reads()).toBe(2);
  });

  it('a row that is the same object as before is not compared by its text', async () => {
    let texts = 0;
    const atRest = { id: 'rest', length: 1, toJSON: () => `text ${texts++}` };
    rows.splice(0, rows.length, atRest as Row);
    const feed = feedOnSimulatedClock();
    const reader = feed.join('1');
    await reader.take();
    const before = texts;
    const reads = () => daemon.asked.filter(({ endpoint }) => endpoint === 'conversations').length;
    await vi.advanceTimersByTimeAsync(3_000);
    expect(reads()).toBeGreaterThan(2);
    expect(texts).toBe(before);
    reader.close();
  });

  it.each([
    ['', 'BAD_REQUEST'],
    ['follow=one@x', 'BAD_REQUEST'],
    ['follow=one@1@2', 'BAD_REQUEST'],
    ['follow=a.b', 'INVALID_NAME'],
    [`follow=${Array.from({ length: 65 }, (_, n) => `c${n}`).join()}`, 'BAD_REQUEST'],
  ])('the stream refuses the query "%s"', async (query, code) => {
    const response = await fetch(`${gateway.url}/api/events?${query}`);
    expect([response.status, await response.json()]).toMatchObject([400, { code }]);
  });
});

it('the stream of several conversations needs the same role as that of one and as the list', async () => {
  const tokens: readonly Token[] = [{ role: 'read', secret: 'reads', publisher: null }];
  const { gateway, daemon } = await openGateway({ tokens });
  daemon.append('one', 'a');
  const paths = ['/api/conversations', '/api/conversations/one/events', '/api/events?follow=one&list=1'];
  const statuses = (headers: Record<string, string>) =>
    Promise.all(
      paths.map(async (path) => {
        const response = await fetch(`${gateway.url}${path}`, { headers });
        await response.body?.cancel();
        return response.status;
      }),
    );
  expect(await statuses({})).toEqual([401, 401, 401]);
  expect(await statuses({ authorization: 'Bearer reads' })).toEqual([200, 200, 200]);
  await gateway.close();
});
