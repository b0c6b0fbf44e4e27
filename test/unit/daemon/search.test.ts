import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mergeSearch } from '../../../src/daemon/search/search.ts';
import { createWorld, type World } from './world.ts';

interface Found {
  readonly hits: readonly { conversation: string; index: number; title: string | null }[];
  readonly pending: number;
}

describe('the verb search', () => {
  let world: World;
  beforeEach(async () => {
    world = createWorld({ reply: () => 'Understood: the zebra is striped.' });
    await post('one', 'Where does the zebra live?');
    await post('two', 'A giraffe, please');
  });
  afterEach(() => world.end());

  const post = (conversation: string, content: string) =>
    world.request('post', { conversation, publisher: 'alice', content });

  async function search(body: object): Promise<Found> {
    const answer = await world.request('search', body);
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
    await world.request('delete', { conversation: 'two' });
    expect((await search({ q: 'giraffe' })).hits).toEqual([]);
    await post('two', 'A llama instead');
    expect((await search({ q: 'llama' })).hits).toMatchObject([{ conversation: 'two', index: 0 }]);
    expect((await search({ q: 'giraffe' })).hits).toEqual([]);
  });

  it('a query without a visible character is refused', async () => {
    expect(await world.request('search', { q: ' ' })).toMatchObject({
      ok: false,
      refusal: { code: 'BAD_REQUEST' },
    });
  });
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
