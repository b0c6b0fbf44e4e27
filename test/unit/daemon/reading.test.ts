import { describe, expect, it } from 'vitest';
import { perTest } from '../../support/lifetime.ts';
import { createDaemon } from './daemon.ts';

describe('what a person has read', () => {
  const daemon = perTest(() => createDaemon());
  const filter = { name: 'Mine', shown: 'unread', agent: '', phase: '', text: '' };
  const ask = (body: object, as: object = {}) =>
    daemon.api.handle({
      endpoint: 'reading',
      publisher: 'office',
      name: 'Alice',
      ...as,
      body: { publisher: 'office', author: { name: 'Alice' }, ...body },
    });
  const kept = async (as: object = {}, body: object = {}) => {
    const answer = await ask(body, as);
    if (!answer.ok) throw new Error(answer.refusal.code);
    return answer.body as { lengths: object; filters: object[]; since: string };
  };

  it('is kept by person, with their filters, and erased with the conversation', async () => {
    for (const conversation of ['one', 'two'])
      await daemon.request('post', { conversation, publisher: 'alice', content: 'hello' });
    const { since } = await kept();
    await ask({ read: { one: 2, two: 1 }, filters: [filter] });
    await ask({ read: { one: 3, gone: 1 } });
    expect(await kept()).toEqual({ since, lengths: { one: 3, two: 1 }, filters: [filter] });
    expect(await kept({ name: 'Bob' }, { author: { name: 'Bob' } })).toMatchObject({
      lengths: {},
      filters: [],
    });
    await daemon.request('delete', { conversation: 'one' });
    expect((await kept()).lengths).toEqual({ two: 1 });
    await ask({ filters: [] });
    expect((await kept()).filters).toEqual([]);
  });

  it.each<[string, object, object]>([
    ['a token without a person', { name: null }, {}],
    ['an operator', { publisher: null, name: undefined }, {}],
    ['a token that names no person', {}, { author: undefined }],
  ])('is refused for %s, which browsers keep for themselves', async (_, as, body) => {
    expect(await ask(body, as)).toMatchObject({ ok: false, refusal: { code: 'BAD_REQUEST' } });
  });
});
