import { describe, expect, it } from 'vitest';
import { ParleyError } from '../../../src/kernel/index.ts';
import { faultOfBody, faultOfResponse } from '../../../src/models/openai/faults.ts';
import { createOpenAiModel } from '../../../src/models/openai/index.ts';
import { faultOfNetwork } from '../../../src/models/openai/network-faults.ts';

const NOW = Date.parse('2026-11-21T20:00:00Z');
const respond = (status: number, body: unknown = '', headers: Record<string, string> = {}) =>
  faultOfResponse({ status, body, headers: new Headers(headers) }, NOW);

describe('a request that exceeds the window of its model', () => {
  it.each([
    [400, { error: { code: 'context_length_exceeded', message: 'x' } }],
    [
      400,
      { error: { message: "This model's maximum context length is 8192 tokens. Please reduce the length." } },
    ],
    [
      400,
      {
        error: {
          type: 'exceed_context_size_error',
          message: 'the request exceeds the available context size',
        },
      },
    ],
    [
      400,
      {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000' },
      },
    ],
    [
      400,
      [
        {
          error: {
            message:
              'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
          },
        },
      ],
    ],
    [422, { detail: 'Prompt contains 70000 tokens, too many tokens, model has a context window of 65536' }],
    [413, { message: 'Input is too long for requested model.' }],
    [400, 'Trying to keep the first 5000 tokens when context length is only 4096'],
  ])(
    'a request that is too large is recognized by status %i and the text of the provider',
    (status, body) => {
      expect(respond(status, body)).toMatchObject({ code: 'CONTEXT_TOO_LONG', retryable: false });
      expect(faultOfBody(body).code).toBe('CONTEXT_TOO_LONG');
    },
  );

  it('a request that is too large and a rate limit are told apart', () => {
    const body = {
      error: { message: 'Request too large: tokens per min (TPM): Limit 30000, Requested 40000' },
    };
    expect(respond(429, body).code).toBe('RATE_LIMITED');
    expect(respond(400, { error: { message: 'max_tokens is too large' } }).code).toBe('BAD_REQUEST');
  });
});

describe('an error inside an answer', () => {
  it.each([
    [{ error: { code: 'rate_limit_exceeded', message: 'x' } }, 'RATE_LIMITED', true],
    [{ error: { code: 'insufficient_quota', message: 'x' } }, 'QUOTA_EXHAUSTED', false],
    [{ error: { code: 401, message: 'x' } }, 'UNAUTHORIZED', false],
    [{ error: { code: 'invalid_api_key', message: 'x' } }, 'UNAUTHORIZED', false],
    [{ error: { code: 'model_not_found', message: 'x' } }, 'NOT_FOUND', false],
    [{ error: { type: 'invalid_request_error', message: 'x' } }, 'BAD_REQUEST', false],
    [{ error: { code: '503', message: 'x' } }, 'PROVIDER_ERROR', true],
    [{ error: { message: 'The server had an error' } }, 'PROVIDER_ERROR', true],
    [{ error: true }, 'PROVIDER_ERROR', true],
  ])('the error %j in an answer is classified', (body, code, retryable) => {
    expect(faultOfBody(body)).toMatchObject({ code, retryable });
  });
});

describe('the retry delay of a provider', () => {
  it.each([
    [{ 'retry-after': '2' }, 2000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': 'Sat, 21 Nov 2026 20:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Sat, 21 Nov 2026 19:00:00 GMT' }, 0],
    [{ 'retry-after': 'Sat, 21 Nov 2026 23:00:05 GMT', date: 'Sat, 21 Nov 2026 23:00:00 GMT' }, 5_000],
    [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 1500],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('the headers %j give the right number of milliseconds', (headers, afterMs) => {
    expect(respond(429, '', headers).afterMs).toBe(afterMs);
    expect(respond(503, '', headers).afterMs).toBe(afterMs);
  });

  it('there is no retry delay if a retry does not help', () => {
    expect(respond(401, '', { 'retry-after': '2' }).afterMs).toBeUndefined();
  });
});

describe('a network error', () => {
  const because = (fields: object, message = 'x') =>
    new TypeError('fetch failed', { cause: Object.assign(new Error(message), fields) });

  it.each([
    [because({ code: 'ECONNREFUSED' }), 'NETWORK_ERROR', true, /Nothing listens at http:\/\/h/],
    [because({ code: 'ENOTFOUND' }), 'NETWORK_ERROR', true, /host of http:\/\/h is unknown/],
    [because({ code: 'ECONNRESET' }), 'NETWORK_ERROR', true, /closed the connection/],
    [because({ code: 'ETIMEDOUT' }), 'TIMEOUT', true, /cannot be reached in time/],
    [because({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }, 'self-signed'), 'NETWORK_ERROR', false, /certificate/],
    [because({ code: 'EPIPE' }, 'write EPIPE'), 'NETWORK_ERROR', true, /write EPIPE/],
    [
      new TypeError('fetch failed', {
        cause: new AggregateError([Object.assign(new Error('a'), { code: 'ECONNREFUSED' })], ''),
      }),
      'NETWORK_ERROR',
      true,
      /Nothing listens/,
    ],
  ])('network error %# is classified by its causes', (error, code, retryable, message) => {
    const fault = faultOfNetwork(error, 'http://h');
    expect(fault).toMatchObject({ code, retryable });
    expect(fault.message).toMatch(message);
  });

  it('a network error quotes a URL with special replacement characters correctly', () => {
    const fault = faultOfNetwork(because({ code: 'ECONNRESET' }), "http://h/$&$'");
    expect(fault.message).toBe("http://h/$&$' closed the connection. Try again.");
  });
});

describe('a model with an invalid configuration', () => {
  it.each([
    [{ baseURL: 'localhost:8080' }, /baseURL: seen "localhost:8080", expected an http or https URL/],
    [{ baseURL: 'nonsense' }, /expected an http or https URL/],
    [{ baseURL: 'http://me:secret@host/v1' }, /a URL that holds credentials/],
    [{ baseURL: 'http://:secret@host/v1' }, /a URL that holds credentials/],
    [{ baseURL: 'http://me:sec/ret@host/v1' }, /a URL that holds credentials/],
    [{ baseURL: 'http://h/v1', apiKey: 'secret\n' }, /apiKey: expected a single line/],
    [{ baseURL: 'http://h/v1', headers: { 'api-key': '“secret”' } }, /api-key: expected a single line/],
  ])('an invalid model configuration is refused at once without showing a secret: %#', (options, message) => {
    let thrown: unknown;
    try {
      createOpenAiModel({ timeoutMs: 1000, ...options });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ParleyError);
    expect(thrown).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) });
    expect(`${thrown}`).not.toContain('secret');
  });
});
