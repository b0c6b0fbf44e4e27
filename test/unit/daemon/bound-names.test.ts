import { expect, it } from 'vitest';
import { decodeDeadLetter, encodeDeadLetter } from '../../../src/bus/dead-letter.ts';
import { createSubjects } from '../../../src/bus/index.ts';
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

it('PERSON-4: subjects and dead letters keep whether a name is bound', () => {
  const { in: subject, parseIn } = createSubjects();
  for (const isNameBound of [true, false]) {
    const names = { publisher: 'alice', conversation: 'demo', isNameBound };
    expect(parseIn(subject('alice', 'demo', { isNameBound }))).toEqual(names);
    const place = { sequence: 1, at: '2026-11-22T05:00:00.000Z', publisher: 'alice', conversation: 'demo' };
    const origin = { id: 'x', ingress: { stream: 's', sequence: 1 }, isNameBound };
    const bytes = encodeDeadLetter({ code: 'X', message: 'no' }, Buffer.from('{}'), origin, 10_000);
    expect(decodeDeadLetter(place, bytes)).toMatchObject({ isNameBound });
  }
  expect(parseIn(subject('alice', 'demo'))).toEqual({ publisher: 'alice', conversation: 'demo' });
});
