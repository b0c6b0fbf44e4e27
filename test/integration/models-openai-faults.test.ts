import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { chunk, type FakeReply } from '../support/fake-provider.ts';
import { ask, BODY, callAt, failureOf, provider, requestWith } from './models-openai-support.ts';

describe('a failure of the connection to a provider', () => {
  it('an endpoint where nothing listens is a network error', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await new Promise((resolve) => server.close(resolve));
    const failure = failureOf((await callAt(`http://127.0.0.1:${port}/v1`)).outcome);
    expect(failure).toMatchObject({ code: 'NETWORK_ERROR', retryable: true });
    expect(failure.message).toContain(`Nothing listens at http://127.0.0.1:${port}/v1`);
  });

  it.each(['before-headers', 'after-headers'] as const)(
    'a connection that breaks %s is retryable',
    async (drop) => {
      const failure = failureOf((await ask([{ drop, text: 'x' }])).outcome);
      expect(failure).toMatchObject({ code: 'NETWORK_ERROR', retryable: true });
    },
  );

  it.each<[string, FakeReply, code: string]>([
    ['a connection that breaks after a delta', { drop: 'after-text' }, 'NETWORK_ERROR'],
    ['an answer that ends without a finish reason', { finishReason: null }, 'STREAM_BROKEN'],
    ['a server that hangs after a delta', { hang: 'after-text' }, 'TIMEOUT'],
  ])('%s is final, and the partial text is kept', async (_, reply, code) => {
    const replies = [{ reasoning: 'Hm.', text: 'Half an', ...reply }];
    const { outcome, text } = await ask(replies, { options: { idleMs: 300 } });
    const partial = { content: 'Half an', reasoning: 'Hm.' };
    expect(outcome).toMatchObject({ kind: 'failed', code, retryable: false, partial });
    expect(text).toBe('Half an');
    await provider?.waitForIdle();
  });

  it.each([301, 302, 307, 308])('a redirect (%i) is final, not followed, and named', async (status) => {
    const headers = { location: '/elsewhere/v1/chat/completions' };
    const { outcome } = await ask([{ status, headers, body: '' }, { text: 'Hello.' }]);
    const failure = failureOf(outcome);
    expect(failure).toMatchObject({ code: 'REDIRECTED', retryable: false });
    expect(failure.message).toContain(
      `${status}: it redirects to /elsewhere/v1/chat/completions. Set baseURL`,
    );
    expect(provider?.requests).toHaveLength(1);
  });

  it('an answer without end is aborted, and its text is kept', async () => {
    const filler = `: ${'x'.repeat(4 * 1024 * 1024)}\n`;
    const body = [chunk({ content: 'Half an' }), ...Array.from({ length: 40 }, () => filler)];
    const { outcome, text } = await ask([{ body }]);
    expect(outcome).toMatchObject({
      kind: 'failed',
      code: 'ANSWER_TOO_LARGE',
      retryable: false,
      partial: { content: 'Half an' },
    });
    expect(text).toBe('Half an');
  });

  it.each(['before-headers', 'after-headers'] as const)(
    'a server that hangs %s is a timeout',
    async (hang) => {
      const failure = failureOf((await ask([{ hang }], { options: { firstTokenMs: 60 } })).outcome);
      expect(failure).toMatchObject({ code: 'TIMEOUT', retryable: true });
      expect(failure.message).toContain(
        'within 0.06 s. Try again, or raise models.default.firstTokenSeconds.',
      );
      await provider?.waitForIdle();
    },
  );

  it('a server that sends only keep-alive comments is a timeout', async () => {
    const body = Array.from({ length: 200 }, () => ': keep-alive\n\n');
    const { outcome } = await ask([{ body, delayMs: 20 }], { options: { firstTokenMs: 200 } });
    expect(outcome).toMatchObject({ kind: 'failed', code: 'TIMEOUT', retryable: true });
  });

  it('a provider that sends events between two parts of its answer is waited for: some write a long call unseen', async () => {
    const pings = Array.from({ length: 40 }, () => 'event: ping\ndata: {"type":"ping"}\n\n');
    const body = [chunk({ content: 'Half' }), ...pings, chunk({ content: ' done' }, 'stop')];
    const { outcome } = await ask([{ body, delayMs: 20 }], { options: { idleMs: 400 } });
    expect(outcome).toMatchObject({ kind: 'answered', answer: { content: 'Half done' } });
    const comments = Array.from({ length: 40 }, () => ': keep-alive\n\n');
    const silent = [chunk({ content: 'Half' }), ...comments, chunk({ content: ' done' }, 'stop')];
    const cut = await ask([{ body: silent, delayMs: 20 }], { options: { idleMs: 400 } });
    expect(cut.outcome).toMatchObject({ kind: 'failed', code: 'TIMEOUT', partial: { content: 'Half' } });
  });

  it('a header that cannot be sent is reported without its value', async () => {
    const request = requestWith(BODY, { 'x-session': 'line\nbreak' });
    const failure = failureOf((await ask([{ text: 'x' }], { request })).outcome);
    expect(failure).toMatchObject({ code: 'BAD_REQUEST', retryable: false });
  });
});

describe('aborting a call of a provider', () => {
  it('an abort before the call sends nothing', async () => {
    const { outcome } = await ask([{ text: 'x' }], { signal: AbortSignal.abort() });
    expect(outcome).toEqual({ kind: 'aborted', partial: { content: '', reasoning: '' } });
    expect(provider?.requests.length).toBe(0);
  });

  it.each(['before-headers', 'after-headers'] as const)(
    'an abort ends a call that hangs %s, and frees its socket',
    async (hang) => {
      const controller = new AbortController();
      const calling = ask([{ hang }], { signal: controller.signal });
      await expect.poll(() => provider?.requests.length).toBe(1);
      controller.abort();
      expect((await calling).outcome).toEqual({ kind: 'aborted', partial: { content: '', reasoning: '' } });
      await provider?.waitForIdle();
    },
  );

  it('an abort during the answer keeps the partial text, and no delta follows', async () => {
    const controller = new AbortController();
    // Words that arrive together are read together. A busy machine joins words sent soon after one another.
    const { outcome, text } = await ask([{ text: 'one two three', delayMs: 1_000 }], {
      signal: controller.signal,
      onDelta: () => controller.abort(),
    });
    expect(text).toBe('one ');
    expect(outcome).toEqual({ kind: 'aborted', partial: { content: 'one ', reasoning: '' } });
    await provider?.waitForIdle();
  });

  it('calls leave no listener on a long-lived signal', async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...parameters: Parameters<typeof add>) => {
      listeners += 1;
      add(...parameters);
    };
    signal.removeEventListener = (...parameters: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...parameters);
    };
    await ask([{ text: 'x' }], { signal });
    expect(listeners).toBe(0);
  });
});
