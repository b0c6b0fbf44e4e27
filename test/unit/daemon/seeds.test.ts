import { expect, it, onTestFinished } from 'vitest';
import { createWorld } from './world.ts';

it('a history begins a conversation once, in several appends, however often the request comes, also at once', async () => {
  const world = createWorld({ maxPayload: 10_000 });
  onTestFinished(() => world.end());
  const messages = Array.from({ length: 9 }, (_, n) => ({
    role: 'user',
    content: `${n} ${'x'.repeat(900)}`,
  }));
  const seed = () => world.request('seed', { conversation: 'demo', messages, publisher: 'alice' });
  for (const answer of await Promise.all([seed(), seed(), seed()])) expect(answer.ok).toBe(true);
  expect(await seed()).toMatchObject({ ok: true, body: { length: 9 } });
  expect(world.appends.length).toBeGreaterThan(1);
  await world.deliver('And now?');
  expect((await seed()).ok).toBe(true);
  const posted = (await world.entries()).filter(({ type }) => type === 'message');
  expect(posted.length).toBe(10);
});
