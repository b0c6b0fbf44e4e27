import { expect, it, onTestFinished } from 'vitest';
import { createDaemon } from './daemon.ts';

it('a history starts a conversation once, in several appends, however often the request is repeated, also simultaneously', async () => {
  const daemon = createDaemon({ maxPayload: 10_000 });
  onTestFinished(() => daemon.end());
  const messages = Array.from({ length: 9 }, (_, n) => ({
    role: 'user',
    content: `${n} ${'x'.repeat(900)}`,
  }));
  const seed = () => daemon.request('seed', { conversation: 'demo', messages, publisher: 'alice' });
  for (const answer of await Promise.all([seed(), seed(), seed()])) expect(answer.ok).toBe(true);
  expect(await seed()).toMatchObject({ ok: true, body: { length: 9 } });
  expect(daemon.appends.length).toBeGreaterThan(1);
  await daemon.deliver('And now?');
  expect((await seed()).ok).toBe(true);
  const posted = (await daemon.entries()).filter(({ type }) => type === 'message');
  expect(posted.length).toBe(10);
});

it.each([
  ['of invisible characters', { content: '\u200b' }, 'EMPTY_CONTENT'],
  ['with half a surrogate pair', { content: '\ud83d' }, 'INVALID_FIELD'],
  ['to an agent that is not there', { content: 'Hello', to: ['nobody'] }, 'UNKNOWN_AGENT'],
  ['that no entry has room for', { content: 'x'.repeat(9_000) }, 'TOO_LARGE'],
  ['larger than its publisher may send', { content: 'x'.repeat(2_000) }, 'TOO_LARGE'],
])('a history is not stored when the post that follows would be refused: one %s', async (_, post, code) => {
  const alice = post.content.length < 9_000 ? { maxBytes: 1_000 } : {};
  const daemon = createDaemon({ maxPayload: 10_000, alice });
  onTestFinished(() => daemon.end());
  const body = { conversation: 'demo', messages: [{ role: 'user', content: 'Hi' }], publisher: 'alice' };
  expect(await daemon.request('seed', { ...body, post })).toMatchObject({ ok: false, refusal: { code } });
  expect(await daemon.request('entries', { conversation: 'demo' })).toMatchObject({ ok: false });
  const next = { ...post, content: 'Hello', to: ['pm'] };
  expect(await daemon.request('seed', { ...body, post: next })).toMatchObject({ ok: true });
});

it('a check before a history is stored does not count into the rate of its publisher', async () => {
  const daemon = createDaemon({ alice: { postsPerMinute: 1 } });
  onTestFinished(() => daemon.end());
  const seed = (conversation: string) => {
    const messages = [{ role: 'user', content: 'Hi' }];
    return daemon.request('seed', { conversation, messages, publisher: 'alice', post: { content: 'And?' } });
  };
  for (const one of ['a', 'b']) expect(await seed(one)).toMatchObject({ ok: true });
  await daemon.deliver('And?');
  expect(await seed('c')).toMatchObject({ ok: false, refusal: { code: 'RATE_LIMITED' } });
});

it('a request without messages checks only the post, also in an existing conversation, and stores nothing', async () => {
  const daemon = createDaemon({ alice: { postsPerMinute: 1 } });
  onTestFinished(() => daemon.end());
  const check = (post: object) =>
    daemon.request('seed', { conversation: 'demo', messages: [], publisher: 'alice', post });
  expect(await check({ content: 'Hello', to: ['nobody'] })).toMatchObject({
    refusal: { code: 'UNKNOWN_AGENT' },
  });
  expect(await check({ content: 'Hello', id: 'first' })).toEqual({ ok: true, body: { accepted: true } });
  expect(await daemon.request('entries', { conversation: 'demo' })).toMatchObject({ ok: false });
  const posted = { conversation: 'demo', publisher: 'bob', content: 'Hello', id: 'bobs' };
  expect(await daemon.request('post', posted)).toMatchObject({ ok: true });
  expect(await check({ content: 'Other', id: 'bobs' })).toMatchObject({ body: { accepted: true } }); // L4
  const bobs = { ...posted, messages: [], post: { content: 'Other', id: 'bobs' } };
  const { content: _, id: __, ...seedOfBob } = bobs;
  expect(await daemon.request('seed', seedOfBob)).toMatchObject({ refusal: { code: 'ID_CONFLICT' } });
  const seed = { conversation: 'demo', messages: [], publisher: 'alice' };
  expect(await daemon.request('seed', seed)).toMatchObject({
    refusal: { message: 'seed: messages: expected at least one message, or a post to check, got []' },
  });
});

it('a check does not refuse a post that is already in the log for the rate of its publisher', async () => {
  const daemon = createDaemon({ alice: { postsPerMinute: 1 } });
  onTestFinished(() => daemon.end());
  const post = { id: 'known', content: 'Hello' };
  const known = { conversation: 'demo', publisher: 'alice' };
  expect(await daemon.request('post', { ...known, ...post })).toMatchObject({ ok: true });
  const check = (next: object) => daemon.request('seed', { ...known, messages: [], post: next });
  expect(await check({ ...post, id: 'other' })).toMatchObject({ refusal: { code: 'RATE_LIMITED' } });
  expect(await check(post)).toMatchObject({ ok: true });
});

it('a long history counts into the rate of its publisher, once for each 16 KiB, and a short one does not', async () => {
  const daemon = createDaemon({ alice: { postsPerMinute: 4 } });
  onTestFinished(() => daemon.end());
  const seed = (conversation: string, kilobytes: number, publisher = 'alice') => {
    const messages = Array.from({ length: kilobytes }, () => ({ role: 'user', content: 'x'.repeat(1_000) }));
    return daemon.request('seed', { conversation, messages, publisher, post: { content: 'And?' } });
  };
  expect(await seed('a', 60)).toMatchObject({ ok: true });
  const beyond = { ok: false, refusal: { code: 'RATE_LIMITED', retryAfter: expect.any(Number) } };
  expect(await seed('b', 60)).toMatchObject(beyond);
  expect(await daemon.request('entries', { conversation: 'b' })).toMatchObject({ ok: false });
  for (const short of ['c', 'd', 'e']) expect(await seed(short, 10)).toMatchObject({ ok: true });
  expect(await seed('f', 60, 'bob')).toMatchObject({ ok: true });
});
