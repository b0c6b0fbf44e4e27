import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { mergeSearch, Search } from '../../../src/daemon/api/search.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { refusedWith } from '../../support/error-with.ts';
import { folderPerTest, perTest } from '../../support/lifetime.ts';
import { itLong } from '../../support/long.ts';
import { createDaemon, type TestDaemon } from './daemon.ts';

interface Found {
  readonly hits: readonly { conversation: string; index: number; title: string | null }[];
  readonly pending: number;
}

describe('the verb search', () => {
  let daemon: TestDaemon;
  beforeEach(async () => {
    daemon = createDaemon({ reply: () => 'Understood: the zebra is striped.' });
    await post('one', 'Where does the zebra live?');
    await post('two', 'A giraffe, please');
  });
  afterEach(() => daemon.end());

  const post = (conversation: string, content: string) =>
    daemon.request('post', { conversation, publisher: 'alice', content });

  async function search(body: object): Promise<Found> {
    const answer = await daemon.request('search', body);
    if (!answer.ok) throw new Error(answer.refusal.message);
    return answer.body as Found;
  }

  it('messages of people and agents are found, with the title of their conversation', async () => {
    await expect.poll(async () => (await search({ q: 'zebra' })).hits.length).toBe(3);
    const { hits, pending } = await search({ q: 'giraffe' });
    expect(hits).toMatchObject([{ conversation: 'two', index: 0, title: 'A giraffe, please' }]);
    expect(pending).toBe(0);
    const { hits: own } = await search({ q: 'zebra', agent: 'pm', conversation: 'one' });
    expect(own).toMatchObject([{ conversation: 'one', author: { kind: 'agent', id: 'pm' } }]);
  });

  it('a message that is posted after the first search is found', async () => {
    await search({ q: 'zebra' });
    await post('one', 'And the okapi?');
    expect((await search({ q: 'okapi' })).hits).toMatchObject([{ conversation: 'one' }]);
    expect((await search({ q: 'live' })).hits).toHaveLength(1);
  });

  it('a deleted conversation is not found, and its id can be used again', async () => {
    expect((await search({ q: 'giraffe' })).hits).toHaveLength(1);
    await daemon.request('delete', { conversation: 'two' });
    expect((await search({ q: 'giraffe' })).hits).toEqual([]);
    await post('two', 'A llama instead');
    expect((await search({ q: 'llama' })).hits).toMatchObject([{ conversation: 'two', index: 0 }]);
    expect((await search({ q: 'giraffe' })).hits).toEqual([]);
  });

  it('a query without a visible character is refused', async () => {
    expect(await daemon.request('search', { q: ' ' })).toMatchObject(refusedWith('BAD_REQUEST'));
  });
});

describe('an index that fails', () => {
  const folder = folderPerTest();
  const daemon = perTest(() => createDaemon());

  const searchIn = (path: string) => new Search(daemon.runtime, daemon.workers, path);
  const failures = () => daemon.lines.filter((line) => line.includes('the search index failed'));

  itLong('is built again once, and every search that it failed is answered (MESSAGE-SEARCH-4)', async () => {
    const path = join(folder, 'search', 'index.sqlite');
    const words = (count: number) => Array.from({ length: count }, (_, n) => `word${n}`).join(' ');
    for (const id of ['one', 'two', 'three'])
      await daemon.request('post', {
        conversation: id,
        publisher: 'alice',
        content: `zebra ${words(1_500)}`,
      });
    const first = searchIn(path);
    expect((await first.search({ q: 'zebra' })).hits).toHaveLength(3);
    await first.close();
    const file = await readFile(path);
    await writeFile(path, file.fill(0xa5, 4_096, 8_192)); // the page of the conversations
    const search = searchIn(path);
    const answers = await Promise.all(Array.from({ length: 10 }, () => search.search({ q: 'zebra' })));
    expect(answers.map(({ hits }) => hits.length)).toEqual(Array(10).fill(3));
    expect(failures()).toHaveLength(1);
    await search.close();
  });
});

it.each([
  ['is found when it can be read again', new Error('no connection'), 1, 2],
  ['is not read again if its log is damaged', new ParleyError('LOG_CORRUPT', 'line 3 is damaged'), 0, 1],
])('a conversation that a search could not read %s', async (_, error, found, reads) => {
  const daemon = createDaemon({ reply: () => 'Understood.' });
  await daemon.request('post', { conversation: 'one', publisher: 'alice', content: 'a zebra' });
  await daemon.workers.idle();
  const existing = vi.spyOn(daemon.workers, 'existing').mockRejectedValueOnce(error);
  const search = new Search(daemon.runtime, daemon.workers, null);
  await search.search({ q: 'zebra' });
  expect(await search.search({ q: 'zebra' })).toMatchObject({ hits: Array(found).fill({}), pending: 0 });
  expect(existing).toHaveBeenCalledTimes(reads);
  await search.close();
  await daemon.end();
});

describe('answers of several daemons', () => {
  const hit = (conversation: string, index: number, score: number) => ({ conversation, index, score });

  it('each message occurs once, the best first, up to the limit', () => {
    const merged = mergeSearch(
      [
        { hits: [hit('a', 1, 5), hit('a', 2, 1)], pending: 3 },
        { hits: [hit('b', 0, 4), hit('a', 1, 5)], pending: 0 },
      ],
      2,
    );
    expect(merged).toEqual({ hits: [hit('a', 1, 5), hit('b', 0, 4)], pending: 0 });
  });
});
