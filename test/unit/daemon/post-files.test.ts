import { describe, expect, it } from 'vitest';
import { errorWith } from '../../support/error-with.ts';
import { perTest } from '../../support/lifetime.ts';
import { PNG } from '../../support/uploaded-files.ts';
import { createDaemon } from './daemon.ts';

describe('a post with files', () => {
  const daemon = perTest(() => createDaemon());
  const MISSING = { type: 'file', sha256: '0'.repeat(64) };
  const keep = async (bytes: Uint8Array) => daemon.runtime.files.keep(bytes);

  it('gets what is stored of them, whatever it says itself, and keeps its names', async () => {
    const { sha256, ...facts } = await keep(PNG);
    const lies = { type: 'file', sha256, name: 'my/plan.png', mediaType: 'text/html', size: 9 };
    await daemon.deliver({ id: 'm1', content: 'look', parts: [lies] });
    expect((await daemon.entries())[0]).toMatchObject({
      content: 'look',
      parts: [
        { type: 'text', text: 'look' },
        { ...facts, sha256, name: 'my/plan.png' },
      ],
    });
    expect(facts).toMatchObject({ mediaType: 'image/png', size: PNG.length });
  });

  it('that are not stored becomes a dead letter, and posts beside it are appended', async () => {
    const { sha256 } = await keep(PNG);
    const file = { type: 'file', sha256 };
    await Promise.all([
      daemon.deliver({ id: 'm1', content: 'one', parts: [file] }),
      daemon.deliver({ id: 'm2', content: 'two', parts: [file, MISSING] }),
      daemon.deliver({ id: 'm3', content: 'three' }),
    ]);
    const refused = expect.objectContaining(errorWith('MISSING_BLOB', '0000', 'upload'));
    expect(daemon.bus.dead).toEqual([{ publisher: 'alice', conversation: 'demo', refused }]);
    const posts = (await daemon.entries()).filter(({ type }) => type === 'message');
    expect(posts.map(({ id }) => id)).toEqual(['m1', 'm3']);
  });

  it('of a request that are not stored is refused, and can be posted again with the same id once they are', async () => {
    const content = { conversation: 'demo', publisher: 'alice', id: 'm1', content: 'look' };
    const refused = await daemon.request('post', { ...content, parts: [MISSING] });
    expect(refused).toMatchObject({ ok: false, refusal: { code: 'MISSING_BLOB' } });
    const { sha256 } = await keep(PNG);
    const parts = [{ type: 'file', sha256 }];
    expect(await daemon.request('post', { ...content, parts })).toMatchObject({ ok: true });
    expect(await daemon.request('post', { ...content, parts })).toMatchObject({ body: { duplicate: true } });
  });

  it('beyond the limit of its conversation is refused, and a file that it has already counts once', async () => {
    const [one, other] = [await keep(Buffer.alloc(900_000, 'a')), await keep(Buffer.alloc(900_000, 'b'))];
    await daemon.deliver({ id: 'm1', content: 'one', parts: [one] });
    await daemon.deliver({ id: 'm2', content: 'again', parts: [one, one] });
    await daemon.deliver({ id: 'm3', content: 'other', parts: [other] });
    expect(daemon.bus.dead).toEqual([
      expect.objectContaining({
        refused: expect.objectContaining(errorWith('BLOB_QUOTA', '1.8 MB', 'maxBytesPerConversation')),
      }),
    ]);
  });

  it.each([
    ['is not stored', 'MISSING_BLOB', async () => [MISSING]],
    [
      'is beyond the limit',
      'BLOB_QUOTA',
      async () => Promise.all(['c', 'd'].map((fill) => keep(Buffer.alloc(900_000, fill)))),
    ],
  ])(
    'of a history, of which one %s, begin nothing; if all are stored, they are parts of its messages',
    async (_, code, other) => {
      const small = await keep(PNG);
      const seed = (files: readonly object[]) =>
        daemon.request('seed', {
          ...{ conversation: 'demo', publisher: 'alice' },
          messages: [
            { role: 'user', content: 'Hi', files: [{ type: 'file', sha256: small.sha256, name: 'a.png' }] },
            { role: 'assistant', content: '', files },
          ],
        });
      expect(await seed(await other())).toMatchObject({ ok: false, refusal: { code } });
      expect(await daemon.request('entries', { conversation: 'demo' })).toMatchObject({ ok: false });
      for (const length of [2, 2]) expect(await seed([small])).toMatchObject({ ok: true, body: { length } });
      expect((await daemon.entries())[0]).toMatchObject({
        parts: [{ text: 'Hi' }, { ...small, name: 'a.png' }],
      });
    },
  );

  it('can be downloaded in its conversation alone', async () => {
    const { sha256 } = await keep(PNG);
    await daemon.deliver({ id: 'm1', content: 'look', parts: [{ type: 'file', sha256 }] });
    const { read, ...facts } = await daemon.runtime.files.find('demo', sha256);
    expect(facts).toMatchObject({ sha256, mediaType: 'image/png' });
    for await (const bytes of (await read()) ?? []) expect(Buffer.from(bytes)).toEqual(PNG);
    await expect(daemon.runtime.files.find('other', sha256)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
