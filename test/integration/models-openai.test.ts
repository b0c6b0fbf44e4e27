import { describe, expect, it } from 'vitest';
import { createHttpModel, endpointOf } from '../../src/models/http/index.ts';
import { chunk, event, type FakeReply, startFakeProvider } from '../support/fake-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { ask, BODY, callAt, failureOf, KEY, LIMITS, provider, requestWith } from './models-openai-support.ts';

describe('a request to a provider', () => {
  it('a request is sent as the exact bytes, with the key and the headers of the request', async () => {
    await ask([{ text: 'Hi.' }], { request: requestWith(BODY, { 'x-session': 's1' }) });
    const sent = provider?.requests[0];
    expect(sent?.path).toBe('/v1/chat/completions');
    expect(sent?.body.toString('utf8')).toBe(BODY);
    expect(sent?.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(BODY)),
      authorization: `Bearer ${KEY}`,
      'x-session': 's1',
    });
  });

  it('a header of one request replaces a configured one, and is not part of the next request', async () => {
    const provider = untilTestEnds(await startFakeProvider([{ text: 'Hi.' }, { text: 'Hi.' }]));
    const headers = { 'x-session': 'none', host: 'gateway.example' };
    const model = createHttpModel({
      dialect: 'chat',
      baseURL: provider.url,
      apiKey: KEY,
      headers,
      ...LIMITS,
    });
    const options = { signal: new AbortController().signal, onDelta: () => undefined };
    await model.call(requestWith(BODY, { 'X-Session': 's1', 'x-more': 'yes' }), options);
    await model.call(requestWith(BODY), options);
    const [first, second] = provider.requests.map((sent) => sent.headers);
    expect(first).toMatchObject({ 'x-session': 's1', 'x-more': 'yes', host: 'gateway.example' });
    expect(second).toMatchObject({ 'x-session': 'none', host: 'gateway.example' });
    expect(second).not.toHaveProperty('x-more');
  });

  it('a request without a key has no Authorization header, and has the configured headers', async () => {
    await ask([{ text: 'Hi.' }], { options: { apiKey: '', headers: { 'api-key': 'azure-secret' } } });
    expect(provider?.requests[0]?.headers.authorization).toBeUndefined();
    expect(provider?.requests[0]?.headers['api-key']).toBe('azure-secret');
  });

  it('a baseURL with a query keeps it, as Azure wants its api-version', async () => {
    const provider = untilTestEnds(await startFakeProvider([{ text: 'Hi.' }]));
    const url = provider.url.replace('/v1', '/openai/deployments/d/?api-version=2024-10-21');
    const { text } = await callAt(url);
    expect(text).toBe('Hi.');
    expect(provider.requests[0]?.path).toBe('/openai/deployments/d/chat/completions?api-version=2024-10-21');
  });

  it.each([
    ['https://me.openai.azure.com/openai/v1', KEY, { 'api-key': KEY, authorization: undefined }],
    ['https://me.services.ai.azure.com/openai/v1', KEY, { 'api-key': KEY, authorization: undefined }],
    [
      'https://me.openai.azure.com/openai/v1',
      'eyJ0.eyJh.c2ln',
      { 'api-key': undefined, authorization: 'Bearer eyJ0.eyJh.c2ln' },
    ],
    [
      'https://openai.azure.com.example.org/v1',
      KEY,
      { 'api-key': undefined, authorization: `Bearer ${KEY}` },
    ],
  ])(
    'the key for %s is sent in the form of its host: a key of Azure, a token',
    async (baseURL, apiKey, expected) => {
      const head = await endpointOf({ baseURL, apiKey }, { path: '/chat/completions' }).head();
      const headers = new Map(head.headers);
      const seen = { 'api-key': headers.get('api-key'), authorization: headers.get('authorization') };
      expect(seen).toEqual(expected);
    },
  );

  it('a request is sent once, whatever the answer, since the turn decides on retries', async () => {
    await ask([{ status: 503 }, { text: 'Hi.' }]);
    expect(provider?.requests.length).toBe(1);
  });
});

describe('an answer of a provider', () => {
  it('an answer streams its text and reasoning, and ends with usage, model and finish reason', async () => {
    const usage = { prompt_tokens: 12, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 8 } };
    const { outcome, deltas, text } = await ask([{ reasoning: 'Hm.', text: 'Hello you 👋.', usage }]);
    expect(outcome).toEqual({
      kind: 'answered',
      answer: {
        content: 'Hello you 👋.',
        reasoning: 'Hm.',
        toolCalls: [],
        usage: { inputTokens: 12, cachedInputTokens: 8, outputTokens: 3 },
        model: 'fake-model',
        finishReason: 'stop',
      },
    });
    expect(text).toBe('Hello you 👋.');
    expect(deltas.length).toBe(4);
  });

  it('an answer that is not streamed arrives as one delta', async () => {
    const request = requestWith('{"model":"m","stream":false,"messages":[]}');
    const { outcome, deltas } = await ask([{ text: 'All at once.' }], { request });
    expect(deltas).toEqual([{ type: 'text', delta: 'All at once.' }]);
    expect(outcome).toMatchObject({
      kind: 'answered',
      answer: { content: 'All at once.', finishReason: 'stop' },
    });
  });

  it.each([
    ['the connection breaks', 'drop', {}],
    ['the provider falls silent', 'hang', { idleMs: 200 }],
  ] as const)(
    'an answer with a finish reason is kept and marked as cut if %s before its end',
    async (_, moment, options) => {
      const body = [chunk({ content: 'Nearly' }), chunk({}, 'stop')];
      const { outcome } = await ask([{ body, [moment]: 'after-text' }], { options });
      expect(outcome).toMatchObject({
        kind: 'answered',
        answer: { content: 'Nearly', finishReason: 'interrupted' },
      });
      await provider?.waitForIdle();
    },
  );

  it('what follows the finish reason after a silence is part of the answer', async () => {
    const body = [chunk({ content: 'One' }, 'stop'), chunk({ content: ' two.' }), event('[DONE]')];
    const { outcome } = await ask([{ body, delayMs: 300 }], { options: { idleMs: 20_000 } });
    expect(outcome).toMatchObject({
      kind: 'answered',
      answer: { content: 'One two.', finishReason: 'stop' },
    });
  });

  it('an answer ends with [DONE], even if the server keeps the connection open', async () => {
    const body = [chunk({ content: 'Done.' }), event('[DONE]')];
    const { outcome } = await ask([{ body, hang: 'after-text' }], { options: { idleMs: 600_000 } });
    expect(outcome).toMatchObject({ kind: 'answered', answer: { content: 'Done.' } });
    await provider?.waitForIdle();
  });
});

describe('a refusal of the provider', () => {
  const PAGE = '<html><head><title>Bad Gateway</title></head><body>…</body></html>';
  const told = (message: string, code?: string) => ({ error: { message, code } });
  it.each<[string, FakeReply, code: string, retryable: boolean, RegExp, afterMs?: number]>([
    ['401', { body: told(`Incorrect API key: ${KEY}`) }, 'UNAUTHORIZED', false, /apiKey of this model/],
    ['403', { body: { error: 'no' } }, 'UNAUTHORIZED', false, /apiKey/],
    ['404', { body: { detail: 'Not Found' } }, 'NOT_FOUND', false, /Not Found.*baseURL and model/],
    ['400', { body: told('bad temperature') }, 'BAD_REQUEST', false, /bad temperature/],
    ['400', { body: told('x', 'context_length_exceeded') }, 'CONTEXT_TOO_LONG', false, /contextTokens/],
    ['429', { headers: { 'retry-after': '7' } }, 'RATE_LIMITED', true, /429/, 7000],
    ['429', { headers: { 'retry-after-ms': '150', 'retry-after': '1' } }, 'RATE_LIMITED', true, /429/, 150],
    ['429', { body: told('Pay.', 'insufficient_quota') }, 'QUOTA_EXHAUSTED', false, /credit/],
    ['408', {}, 'TIMEOUT', true, /408/],
    ['409', {}, 'PROVIDER_ERROR', true, /409/],
    ['425', {}, 'PROVIDER_ERROR', true, /425/],
    ['500', { body: 'boom' }, 'PROVIDER_ERROR', true, /boom/],
    ['502', { body: PAGE }, 'PROVIDER_ERROR', true, /an HTML page, “Bad Gateway”/],
    ['503', { headers: { 'x-should-retry': 'false' } }, 'PROVIDER_ERROR', false, /503/],
    [
      '529',
      { body: { error: { type: 'overloaded_error', message: 'Overloaded' } } },
      'PROVIDER_ERROR',
      true,
      /Overloaded/,
    ],
  ])(
    'the error %s with %j is %s, retryable: %s',
    async (status, reply, code, retryable, message, afterMs) => {
      const failure = failureOf((await ask([{ status: Number(status), ...reply }])).outcome);
      expect(failure).toMatchObject({ code, retryable });
      expect(failure.afterMs).toBe(afterMs);
      expect(failure.message).toMatch(message);
      expect(failure.message).not.toContain(KEY);
    },
  );

  it('no part of a key is shown where the text of an error is cut (HTTP-MODEL-4)', async () => {
    const header = { authorization: `Bearer tok-${'n'.repeat(60)}` };
    for (const secret of [KEY, `tok-${'n'.repeat(60)}`]) {
      for (let before = 240; before <= 300; before += 1) {
        const body = { error: { message: `${'x'.repeat(before)} ${secret} is unknown to us` } };
        const { outcome } = await ask([{ status: 401, body }], { options: { headers: header } });
        expect(failureOf(outcome).message).not.toContain(secret.slice(0, 8));
      }
    }
  });

  it('an HTML page with status 200 is recognized as an error', async () => {
    const failure = failureOf((await ask([{ body: '<!doctype html><title>Login</title>' }])).outcome);
    expect(failure).toMatchObject({ code: 'INVALID_RESPONSE', retryable: false });
    expect(failure.message).toContain('“Login”. Check baseURL');
  });

  it('an error inside a stream is recognized, and is final after a delta', async () => {
    const error = { code: 429, message: 'slow down' };
    const early = failureOf((await ask([{ error }])).outcome);
    expect(early).toMatchObject({ code: 'RATE_LIMITED', retryable: true });
    await provider?.close();
    const late = failureOf((await ask([{ text: 'Half an', error }])).outcome);
    expect(late).toMatchObject({ code: 'RATE_LIMITED', retryable: false, partial: { content: 'Half an' } });
  });
});
