import { describe, expect, it, vi } from 'vitest';
import { ofType } from '../support/log.ts';
import { aDaemon, aServer, aStore } from './jetstream-support.ts';

async function twoDaemons() {
  const { url } = await aServer();
  const [one, two] = [await aDaemon(url, 'one'), await aDaemon(url, 'two')];
  return { url, one, two, post: one.bus.delivery('alice', 'demo', { id: 'm1', content: 'secret' }) };
}

/** The first daemon reads that nothing is deleted, and keeps the conversation in memory. Then the other one deletes it. */
async function deletedMeanwhile() {
  const { one, two, post } = await twoDaemons();
  await one.workers.use('demo');
  await two.workers.delete('demo', post.position);
  return { one, post };
}

async function firstMessage({ workers }: Awaited<ReturnType<typeof aDaemon>>) {
  return ofType((await workers.use('demo')).entries(), 'message')[0]?.id;
}

describe('a post whose conversation another daemon deletes before it is appended', () => {
  it('a late post does not restore the deleted conversation (DELETE-3)', async () => {
    const { one, post } = await deletedMeanwhile();
    await expect(one.posts.deliver(post)).rejects.toMatchObject({ code: 'CONVERSATION_MOVED' });
    await one.posts.deliver(post); // as its token is delivered again
    expect((await one.workers.use('demo')).entries()).toEqual([]);
    expect(await one.store.exists('demo')).toBe(false);
    expect(one.calls.length).toBe(0);
    await one.posts.deliver(one.bus.delivery('alice', 'demo', { id: 'm2', content: 'a new beginning' }));
    expect(await firstMessage(one)).toBe('m2');
  });

  it('a late post does not restore the deleted conversation after a claim before it either (DELETE-3)', async () => {
    const { one, post } = await deletedMeanwhile();
    await one.workers.submit('demo', { type: 'claim', daemon: 'one' });
    await one.posts.deliver(post);
    await one.posts.deliver(one.bus.delivery('alice', 'demo', { id: 'm2', content: 'a new beginning' }));
    expect(await firstMessage(one)).toBe('m2');
  });

  it('a post that is appended while the other daemon removes the log does not restore the conversation (DELETE-3)', async () => {
    const { url, one, two, post } = await twoDaemons();
    const remove = two.store.delete.bind(two.store);
    vi.spyOn(two.store, 'delete').mockImplementationOnce(async (...request) => {
      await one.posts.deliver(post); // the other one has read that there is no log
      return remove(...request);
    });
    expect(await two.workers.delete('demo', post.position)).toMatchObject({ existed: true });
    expect(await two.store.exists('demo')).toBe(false);
    const later = one.bus.delivery('alice', 'demo', { id: 'm2', content: 'a new beginning' });
    await one.posts.deliver(later).catch(() => one.posts.deliver(later)); // its token is delivered again
    const { entries } = await (await aStore(url)).open('demo');
    expect(ofType(entries, 'message')[0]?.id).toBe('m2');
  });

  it('a late deletion keeps a conversation that began after the request was received (DELETE-2)', async () => {
    const { url } = await aServer();
    const daemon = await aDaemon(url, 'one');
    const deliver = (id: string) =>
      daemon.posts.deliver(daemon.bus.delivery('alice', 'demo', { id, content: id }));
    await deliver('old');
    const asked = await daemon.runtime.lastPost('demo');
    await daemon.workers.delete('demo', asked);
    await deliver('new');
    expect(await daemon.workers.delete('demo', asked)).toMatchObject({ existed: false });
    expect(await firstMessage(daemon)).toBe('new');
  });

  it('a late deletion keeps a conversation that a request began after it was received, and deletes the one that was there (DELETE-2)', async () => {
    const { url } = await aServer();
    const daemon = await aDaemon(url, 'one');
    const post = (id: string) =>
      daemon.request('post', { conversation: 'demo', publisher: 'alice', id, content: id });
    await post('old');
    const asked = await daemon.runtime.lastPost('demo');
    const origin = await daemon.store.shared?.origin('demo');
    await daemon.posts.deliver(daemon.bus.delivery('alice', 'demo', { id: 'meanwhile', content: 'x' }));
    const body = { endpoint: 'delete', publisher: null, body: { conversation: 'demo' }, upTo: asked };
    expect(await daemon.api.handle({ ...body, origin })).toMatchObject({ body: { existed: true } });
    expect(await post('new')).toMatchObject({ ok: true });
    expect(await daemon.api.handle({ ...body, origin })).toMatchObject({ body: { existed: false } });
    expect(await firstMessage(daemon)).toBe('new');
  });
});
