import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Posts } from '../../../src/daemon/ingress/posts.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { refusedWith } from '../../support/error-with.ts';
import { perTest } from '../../support/lifetime.ts';
import { createDaemon } from './daemon.ts';

describe('a delivery of the ingress stream', () => {
  const daemon = perTest(() => createDaemon({ maxPayload: 20_000 }));

  it('a post is settled once its entry is durable, and the entry records its stream sequence (POSTS-1)', async () => {
    await daemon.deliver({ id: 'm1', content: 'hello', meta: { colour: 'red' } });
    expect((await daemon.entries())[0]).toMatchObject({
      id: 'm1',
      content: 'hello',
      meta: { colour: 'red' },
      author: { kind: 'person', id: 'alice', name: 'alice' },
      ingressSequence: 1,
      to: ['pm'],
    });
    expect(daemon.bus.dead).toEqual([]);
  });

  it('a post without an id gets the same id at every delivery', async () => {
    const delivery = daemon.bus.delivery('alice', 'demo', 'plain words');
    await daemon.posts.deliver(delivery);
    await daemon.posts.deliver(delivery);
    const entries = await daemon.entries();
    expect(entries.filter(({ type }) => type === 'message').map(({ id }) => id)).toEqual(['in-1']);
    expect(daemon.bus.dead).toEqual([]);
  });

  it.each<[string, string | object, string]>([
    ['is malformed', '{"content"', 'MALFORMED_JSON'],
    ['is empty', '  ', 'EMPTY_CONTENT'],
    ['names an unknown agent', { content: 'x', to: ['nobody'] }, 'UNKNOWN_AGENT'],
    ['is too large as an entry', 'x'.repeat(16_000), 'TOO_LARGE'],
  ])('a post that %s becomes a dead letter, and is settled', async (_, body, code) => {
    await daemon.deliver(body);
    expect(daemon.bus.dead).toEqual([
      { publisher: 'alice', conversation: 'demo', refused: expect.objectContaining({ code }) },
    ]);
    expect(await daemon.entries()).toEqual([]);
    expect(daemon.lines.join('\n')).toContain(code);
  });

  it('a refused post gets no dead letter where another daemon reads the posts by now (POSTS-9)', async () => {
    const others = {
      handOver: () => Promise.reject(new Error('not asked')),
      isAtWork: () => false,
      mayRefuse: () => Promise.reject(new Error('another daemon reads')),
    };
    const { bus, workers, runtime, shutdown } = daemon;
    const posts = new Posts(bus.bus, workers, runtime, shutdown.signal, others);
    const delivering = posts.deliver(bus.delivery('alice', 'demo', '{"content"'));
    await expect(delivering).rejects.toThrow('another daemon reads');
    expect(await bus.bus.deadLetters.page({ limit: 10 })).toMatchObject({ letters: [] });
  });

  it('a post for a damaged log becomes a dead letter at once, so that other posts do not wait for it', async () => {
    daemon.faults.push(new ParleyError('LOG_CORRUPT', 'line 3 is damaged'));
    await daemon.deliver({ id: 'm1', content: 'hello' });
    expect(daemon.bus.dead).toEqual([
      { publisher: 'alice', conversation: 'demo', refused: expect.objectContaining({ code: 'LOG_CORRUPT' }) },
    ]);
  });

  it('a post whose append exceeds a message becomes a dead letter, or its request is refused (POSTS-7)', async () => {
    const tooLarge = new ParleyError('APPEND_TOO_LARGE', '2 bytes exceed the 1 of one message');
    daemon.faults.push(tooLarge, tooLarge);
    await daemon.deliver({ id: 'm1', content: 'hello' });
    const refused = { code: 'TOO_LARGE', message: tooLarge.message };
    expect(daemon.bus.dead).toMatchObject([{ publisher: 'alice', conversation: 'demo', refused }]);
    expect(daemon.posts.isBlocked).toBe(false);
    const post = { conversation: 'demo', content: 'hello', publisher: 'alice', author: { name: 'Alice' } };
    expect(await daemon.request('post', post)).toMatchObject({ ok: false, refusal: refused });
  });

  it('a post of the largest size of an entry is accepted', async () => {
    await daemon.deliver({ id: 'm1', content: 'x'.repeat(15_500) });
    expect(daemon.bus.dead).toEqual([]);
  });

  describe('that the daemon cannot decide on', () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    /** A bug that shows at the first decisions, each after it has begun. */
    function fail(times: number): void {
      const { rules } = daemon.runtime.team;
      const { phases } = rules;
      let left = times;
      const phasesOf = () => {
        if (left-- > 0) throw new TypeError('a bug');
        return phases;
      };
      Object.defineProperty(rules, 'phases', { get: phasesOf });
    }

    it('a post that the daemon cannot decide on becomes a dead letter after five attempts, and the conversation continues (POSTS-7)', async () => {
      fail(5);
      const first = daemon.deliver({ id: 'm1', content: 'poison' });
      await vi.advanceTimersByTimeAsync(10);
      const second = daemon.deliver({ id: 'm2', content: 'next' });
      await vi.advanceTimersByTimeAsync(6_000);
      await Promise.all([first, second]);
      expect(daemon.bus.dead.map(({ refused }) => refused)).toEqual([
        expect.objectContaining({
          code: 'DECISION_FAILED',
          message: 'the daemon failed to decide on it: a bug (tried 5 times)',
          hint: expect.stringContaining('report it'),
        }),
      ]);
      const messages = (await daemon.entries()).filter(({ type }) => type === 'message');
      expect(messages.map(({ id, index }) => [id, index])).toEqual([['m2', 0]]);
    });

    it('a post that the daemon could not decide on is accepted if a later attempt succeeds (POSTS-7)', async () => {
      fail(4);
      const delivered = daemon.deliver({ id: 'm1', content: 'nearly' });
      await vi.advanceTimersByTimeAsync(6_000);
      await delivered;
      expect(daemon.bus.dead).toEqual([]);
      expect((await daemon.entries())[0]).toMatchObject({ id: 'm1' });
    });
  });

  describe('while the disk is full', () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    it('a post waits while the disk is full, and is then accepted once (POSTS-2)', async () => {
      daemon.faults.push(new Error('no space left'), new Error('no space left'));
      const delivered = daemon.deliver({ id: 'm1', content: 'patience' });
      await vi.advanceTimersByTimeAsync(3_000);
      await delivered;
      const entries = await daemon.entries();
      expect(entries.filter(({ id }) => id === 'm1').length).toBe(1);
      expect(daemon.lines.filter((line) => line.includes('could not be made durable')).length).toBe(2);
    });

    it('while the disk is full, the caller of a post gets the error, and nothing of the post is appended later (POSTS-3)', async () => {
      daemon.faults.push(new ParleyError('LOG_WRITE_FAILED', 'no space left'));
      const asked = { conversation: 'demo', publisher: 'alice', content: 'x', id: 'm1' };
      expect(await daemon.request('post', asked)).toMatchObject(
        refusedWith('LOG_WRITE_FAILED', 'no space left'),
      );
      await vi.advanceTimersByTimeAsync(5_000);
      expect(await daemon.entries()).toEqual([]);
      expect(await daemon.request('post', asked)).toMatchObject({ ok: true, body: { duplicate: false } });
    });

    it('while the disk is full, posts keep their order in a conversation and delay no other conversation (POSTS-5)', async () => {
      daemon.faults.push(new Error('no space left'));
      const settled: string[] = [];
      const deliver = (id: string, conversation = 'demo') =>
        daemon.deliver({ id, content: id }, { conversation }).then(() => settled.push(id));
      const first = deliver('m1');
      await vi.advanceTimersByTimeAsync(10); // its append has failed: there is room again, and it waits
      const later = [deliver('m2'), deliver('m3'), deliver('elsewhere', 'other')];
      await vi.advanceTimersByTimeAsync(10);
      expect(settled).toEqual(['elsewhere']);
      await vi.advanceTimersByTimeAsync(3_000);
      await Promise.all([first, ...later]);
      expect(settled).toEqual(['elsewhere', 'm1', 'm2', 'm3']);
      expect(await posted('demo')).toEqual(['m1', 'm2', 'm3']);
    });

    it('posts whose common append failed keep their order, however often it fails (POSTS-5)', async () => {
      daemon.faults.push(...[1, 2, 3].map(() => new Error('no space left')));
      const ids = ['m1', 'm2', 'm3', 'm4', 'm5'];
      const settled: string[] = [];
      const delivered = ids.map((id) => daemon.deliver({ id, content: id }).then(() => settled.push(id)));
      await vi.advanceTimersByTimeAsync(20_000);
      await Promise.all(delivered);
      expect(settled).toEqual(ids);
      expect(await posted('demo')).toEqual(ids);
    });

    it('all waiting posts are accepted when the disk has space again, not one per second', async () => {
      daemon.faults.push(new Error('no space left'));
      const ids = Array.from({ length: 30 }, (_, n) => `m${n}`);
      const delivered = ids.map((id) => daemon.deliver({ id, content: id }));
      await vi.advanceTimersByTimeAsync(2_000);
      await Promise.all(delivered);
      expect(await posted('demo')).toEqual(ids);
    });

    it('a post that is refused while others wait delays none of the following posts (POSTS-5)', async () => {
      daemon.faults.push(new Error('no space left'));
      const delivered = [
        daemon.deliver({ id: 'm1', content: 'x' }),
        daemon.deliver({ id: 'm2', content: 'x', to: ['nobody'] }),
        daemon.deliver({ id: 'm3', content: 'x' }),
      ];
      await vi.advanceTimersByTimeAsync(10_000);
      await Promise.all(delivered);
      expect(await posted('demo')).toEqual(['m1', 'm3']);
      expect(daemon.bus.dead.map(({ refused }) => refused.code)).toEqual(['UNKNOWN_AGENT']);
    });

    async function posted(conversation: string): Promise<string[]> {
      return (await daemon.entries(conversation))
        .filter((entry) => entry.type === 'message' && entry.author.kind === 'person')
        .map(({ id }) => id);
    }

    it('a waiting post stays unsettled when the daemon stops (POSTS-1)', async () => {
      daemon.faults.push(new Error('no space left'));
      const delivered = daemon.deliver({ id: 'm1', content: 'patience' });
      const outcome = delivered.then(
        () => 'settled',
        () => 'unsettled',
      );
      await vi.advanceTimersByTimeAsync(10);
      daemon.shutdown.abort();
      expect(await outcome).toBe('unsettled');
      expect(vi.getTimerCount()).toBe(0);
      expect(await daemon.entries()).toEqual([]);
    });

    it('a waiting post is not overtaken by later posts when the daemon stops and the disk has space again (POSTS-5)', async () => {
      daemon.faults.push(new Error('no space left'));
      const outcomeOf = (delivered: Promise<void>) =>
        delivered.then(
          () => 'settled',
          () => 'unsettled',
        );
      const first = outcomeOf(daemon.deliver({ id: 'm1', content: 'one' }));
      await vi.advanceTimersByTimeAsync(10);
      const behind = outcomeOf(daemon.deliver({ id: 'm2', content: 'two' }));
      await vi.advanceTimersByTimeAsync(10);
      daemon.shutdown.abort();
      expect(await Promise.all([first, behind])).toEqual(['unsettled', 'unsettled']);
      expect(await outcomeOf(daemon.deliver({ id: 'm3', content: 'three' }))).toBe('unsettled');
      expect(await daemon.entries()).toEqual([]);
      expect(await outcomeOf(daemon.deliver({ id: 'm4', content: 'four' }, { conversation: 'other' }))).toBe(
        'settled',
      );
    });
  });
});

describe('a post of a request (POSTS-3)', () => {
  const daemon = perTest(() => createDaemon({ maxPayload: 20_000 }));
  const post = (content: string, id?: string, more: object = {}) =>
    daemon.request('post', { conversation: 'demo', publisher: 'alice', content, ...(id && { id }), ...more });

  it('is answered with its index once it is durable', async () => {
    expect(await post('hello', 'm1')).toEqual({
      ok: true,
      body: { conversation: 'demo', id: 'm1', index: 0, duplicate: false, agents: ['pm'] },
    });
    expect(await post('hello', 'm1')).toMatchObject({ body: { index: 0, duplicate: true } });
  });

  it('without an id gets one', async () => {
    const answer = await post('hello');
    const [entry] = await daemon.entries();
    expect(answer).toMatchObject({ ok: true, body: { id: entry?.id } });
  });

  it('is refused with the reason, and has no dead letter', async () => {
    await post('hello', 'm1');
    expect(await post('something else', 'm1')).toMatchObject({ ok: false, refusal: { code: 'ID_CONFLICT' } });
    expect(await post('x', 'm2', { to: ['nobody'] })).toMatchObject({ refusal: { code: 'UNKNOWN_AGENT' } });
    expect(await post('x'.repeat(16_000))).toMatchObject({ refusal: { code: 'TOO_LARGE' } });
    expect(daemon.bus.dead).toEqual([]);
  });

  it('has its own answer, also beside others with the same id', async () => {
    expect(
      await Promise.all([post('hello', 'm1'), post('hello', 'm1'), post('another', 'm1')]),
    ).toMatchObject([
      { ok: true, body: { index: 0, duplicate: false } },
      { ok: true, body: { index: 0, duplicate: true } },
      { ok: false, refusal: { code: 'ID_CONFLICT' } },
    ]);
  });

  it('is known to the stream, and the other way round', async () => {
    await daemon.deliver({ id: 'm1', content: 'hello' });
    expect(await post('hello', 'm1')).toMatchObject({ ok: true, body: { index: 0, duplicate: true } });
    await post('hello', 'm2');
    await daemon.deliver({ id: 'm2', content: 'hello' });
    const posted = (await daemon.entries()).filter(({ type }) => type === 'message');
    expect(posted.map(({ id }) => id)).toEqual(['m1', 'm2']);
    expect(daemon.bus.dead).toEqual([]);
  });

  it('into a deleted conversation begins a new one, which is known to have been deleted before', async () => {
    await post('hello', 'm1');
    expect(await daemon.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { existed: true },
    });
    expect(await daemon.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { existed: false },
    });
    expect(await post('hello', 'm1')).toMatchObject({ ok: true, body: { index: 0, duplicate: false } });
  });
});
