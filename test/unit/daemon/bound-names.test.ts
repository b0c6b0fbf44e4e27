import { expect, it } from 'vitest';
import { createWorld } from './world.ts';

const ROWS = [
  ['an operator', false, { publisher: null }, 'Bob'],
  ['credentials of a server of its own', false, { publisher: 'alice' }, 'alice as Bob'],
  ['the local person of a managed server', true, { publisher: 'alice' }, 'Bob'],
  ['a token without a name', true, { publisher: 'alice', name: null }, 'alice as Bob'],
  ['a token with this name', false, { publisher: 'alice', name: 'Bob' }, 'Bob'],
] as const;

it.each(ROWS)(
  'PERSON-4: a name that comes from %s is kept as its binding says',
  async (_, believesNames, caller, name) => {
    const world = await createWorld({ believesNames });
    const body = { publisher: 'alice', author: { name: 'Bob' } };
    const post = { ...body, conversation: 'demo', content: 'hello' };
    expect(await world.api.handle({ endpoint: 'post', body: post, ...caller })).toMatchObject({ ok: true });
    const mode = { ...body, conversation: 'demo', mode: 'chat' };
    expect(await world.api.handle({ endpoint: 'mode', body: mode, ...caller })).toMatchObject({ ok: true });
    const entries = await world.entries();
    const author = { kind: 'person', id: 'alice/Bob', name };
    for (const type of ['message', 'mode-entered'])
      expect(entries.find((entry) => entry.type === type && entry.author.kind === 'person')).toMatchObject({
        author,
      });
    await world.end();
  },
);

it('PERSON-4: the name of the publisher itself is always bound, and an agent is no person under any name', async () => {
  const world = await createWorld({ believesNames: false });
  await world.deliver({ content: 'one', author: { name: 'alice' } });
  await world.deliver({ content: 'two', author: { name: 'PM' } });
  await world.deliver({ content: 'three', author: { name: 'Bob' } });
  const said = (await world.entries()).flatMap((entry) =>
    entry.type === 'message' && entry.role === 'user' ? [[entry.content, entry.author.name]] : [],
  );
  expect(said).toEqual([
    ['one', 'alice'],
    ['three', 'alice as Bob'],
  ]);
  await world.end();
});
