import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ApiAnswer, ApiRequest } from '../../../src/bus/port.ts';
import { ListFeed } from '../../../src/gateway/events/list-feed.ts';
import type { Gateway, Token } from '../../../src/gateway/index.ts';
import { type EventReader, readEvents } from '../../support/event-source.ts';
import { type FakeDaemon, openGateway } from './support.ts';

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
    await expect.poll(() => listsIn(reader).length, { timeout: 3_000 }).toBe(count);
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

  it('the list is sent once as a whole, then only the rows that changed or were deleted', async () => {
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
    const reader = await read('list=1');
    await lastList(reader, 1);
    list.incomplete = true;
    rows.splice(0, 1);
    rows[0] = { id: 'three', length: 2 };
    expect(await lastList(reader, 2)).toMatchObject({ conversations: [rows[0]], deleted: [] });
    list.incomplete = false;
    expect(await lastList(reader, 3)).toMatchObject({ deleted: ['one'] });
  });

  it('the list is read once for all readers, and not without readers', async () => {
    const feed = new ListFeed({ daemon: () => daemon, newId: () => 'E', onFault: () => undefined });
    const feeds = [feed.join('1'), feed.join('1'), feed.join('1')];
    const frames = await Promise.all(feeds.map((one) => one.take()));
    expect(frames.map((one) => one?.length)).toEqual([1, 1, 1]);
    const reads = () => daemon.asked.filter(({ endpoint }) => endpoint === 'conversations').length;
    expect(reads()).toBe(2); // pages
    for (const one of feeds) one.close();
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    expect(reads()).toBe(2);
  });

  it('a row that is the same object as before is not compared by its text', async () => {
    let texts = 0;
    const atRest = { id: 'rest', length: 1, toJSON: () => `text ${texts++}` };
    rows.splice(0, rows.length, atRest as Row);
    const feed = new ListFeed({ daemon: () => daemon, newId: () => 'E', onFault: () => undefined });
    const reader = feed.join('1');
    await reader.take();
    const before = texts;
    const reads = () => daemon.asked.filter(({ endpoint }) => endpoint === 'conversations').length;
    await expect.poll(reads, { timeout: 5_000 }).toBeGreaterThan(2);
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
