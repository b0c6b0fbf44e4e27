import { describe, expect, it } from 'vitest';
import { ParleyError } from '../../../src/kernel/index.ts';
import { faultOfBody, faultOfNetwork, faultOfResponse } from '../../../src/models/faults.ts';
import { createHttpModel } from '../../../src/models/http/index.ts';
import { reported, TOO_LONG } from '../../support/too-long.ts';

const NOW = Date.parse('2026-11-21T20:00:00Z');
const respond = (status: number, body: unknown = '', headers: Record<string, string> = {}) =>
  faultOfResponse({ status, body, headers: new Map(Object.entries(headers)) }, NOW);

const told = (message: string, more: object = {}) => ({ error: { message, ...more } });

describe('a request that exceeds the window of its model', () => {
  it.each(TOO_LONG)(
    '%s: a request that is too large is recognized by status %i and the text',
    (_, status, body) => {
      expect(respond(status, body)).toMatchObject({ code: 'CONTEXT_TOO_LONG', retryable: false });
      if (status !== 413) expect(faultOfBody(body).code).toBe('CONTEXT_TOO_LONG');
    },
  );

  it.each([
    'max_tokens is too large: 5000. This model supports at most 4096 completion tokens',
    '`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model',
    "Unsupported value: 'temperature' does not support 0.2 with this model.",
  ])('a limit of the answer, or of another field, is not a request that is too large: %s', (message) => {
    const param = message.includes('temperature') ? { param: 'temperature' } : {};
    expect(respond(400, { error: { message, ...param } }).code).toBe('BAD_REQUEST');
  });

  it('a request that is too large and a rate limit are told apart', () => {
    const message = 'Request too large: tokens per min (TPM): Limit 30000, Requested 40000';
    expect(respond(429, { error: { message } }).code).toBe('RATE_LIMITED');
    expect(respond(400, { error: { message: 'max_tokens is too large' } }).code).toBe('BAD_REQUEST');
  });
});

describe('a request whose content a provider refuses', () => {
  const said = (message: string, more: object = {}) => ({ error: { message, ...more } });

  const CONTENT_REFUSED = reported(`
    Azure OpenAI | 400 | {"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}
    OpenAI | 400 | {"error":{"message":"Your request was rejected.","code":"content_policy_violation"}}
    OpenAI, a reasoning model | 400 | {"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","code":"invalid_prompt"}}
    OpenAI, biology | 400 | {"error":{"message":"This content was flagged.","code":"bio_policy"}}
    Anthropic | 400 | {"type":"error","error":{"message":"Output blocked by content filtering policy","type":"invalid_request_error"}}
    Gemini | 400 | {"error":{"message":"The prompt was blocked: blockReason: PROHIBITED_CONTENT","code":400}}
    OpenRouter | 403 | {"error":{"message":"openai/gpt requires moderation on OpenAI. Your input was flagged for \\"violence\\".","code":403,"metadata":{"reasons":["violence"],"flagged_input":"x"}}}
    xAI | 403 | {"code":"The caller does not have permission","error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}
    DeepSeek | 400 | {"error":{"message":"Content Exists Risk","type":"invalid_request_error"}}
    Alibaba | 400 | {"error":{"message":"Input data may contain inappropriate content.","code":"data_inspection_failed"}}
    Moonshot | 400 | {"error":{"message":"The request was rejected because it was considered high risk"}}
  `);

  it.each(CONTENT_REFUSED)(
    '%s: it is a refusal of the content, and no fault of the configuration or the key',
    (_, status, body) => {
      const fault = { code: 'CONTENT_FILTERED', retryable: false, message: expect.stringMatching(ASK_ANEW) };
      expect(respond(status, body)).toMatchObject(fault);
      expect(faultOfBody(body)).toMatchObject(fault);
    },
  );
  const ASK_ANEW = /\. Its content filter refused this: ask in other words\.$/;

  it('a wrong key and a wrong field are no refusal of the content', () => {
    expect(respond(403, said('Permission denied.')).code).toBe('UNAUTHORIZED');
    expect(respond(400, said("Unknown parameter: 'content_filter_level'.")).code).toBe('BAD_REQUEST');
    expect(respond(400, said("Invalid value: 'policy'.", { code: 'invalid_prompt' })).code).toBe(
      'BAD_REQUEST',
    );
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

describe('a request that its provider refuses with status 400', () => {
  it('an account without credit and a key that is not valid are told apart from a request that does not suit, though the status is 400', () => {
    const claude = (message: string) => ({
      type: 'error',
      error: { type: 'invalid_request_error', message },
    });
    const spent = { code: 'QUOTA_EXHAUSTED', retryable: false };
    const low = 'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.';
    const month =
      'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.';
    expect(respond(400, claude(low))).toMatchObject(spent);
    expect(faultOfBody(claude(low))).toMatchObject(spent);
    expect(respond(400, claude(month))).toMatchObject(spent);
    const refused = { code: 'UNAUTHORIZED', retryable: false };
    const google = told('API key not valid. Please pass a valid API key.', {
      code: 400,
      status: 'INVALID_ARGUMENT',
      details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }],
    });
    expect(respond(400, [google])).toMatchObject(refused);
    expect(respond(400, [told('API key expired. Please renew the API key.')])).toMatchObject(refused);
    const grok = {
      code: 'Client specified an invalid argument',
      error: 'Incorrect API key provided: xa***YA. You can obtain an API key from https://console.x.ai.',
    };
    expect(respond(400, grok)).toMatchObject(refused);
    expect(respond(400, told('no such field'))).toMatchObject({ code: 'BAD_REQUEST' });
  });

  it('a call that the provider could not read is asked for again, whatever its status', () => {
    const again = { code: 'INVALID_RESPONSE', retryable: true };
    const type = 'invalid_request_error';
    for (const code of ['tool_use_failed', 'output_parse_failed', 'json_validate_failed']) {
      const body = told("Failed to call a function. See 'failed_generation'.", { type, code });
      expect(respond(400, body)).toMatchObject(again);
      expect(faultOfBody(body)).toMatchObject(again);
    }
    const relayed = { raw: JSON.stringify(told('x', { type, code: 'tool_use_failed' })) };
    expect(respond(400, told('Provider returned error', { metadata: relayed }))).toMatchObject(again);
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

  const CLAUDE = 'anthropic-ratelimit-tokens';
  const spent = (of: string, reset: string) => ({
    [`x-ratelimit-reset-${of}`]: reset,
    [`x-ratelimit-remaining-${of}`]: '0',
  });
  it.each<[Record<string, string>, number | undefined]>([
    [{ 'x-ratelimit-reset': '12' }, 12_000],
    [spent('requests', '1s'), 1000],
    [{ 'x-ratelimit-reset-tokens': '6m0s', 'x-ratelimit-remaining-tokens': '17' }, undefined],
    [{ ...spent('requests', '20ms'), ...spent('tokens', '1m30s') }, 90_000],
    [{ 'x-ratelimit-reset-tokens-minute': '7.5' }, 7500],
    [{ 'x-ratelimit-reset': `${NOW / 1000 + 40}` }, 40_000],
    [{ 'x-ratelimit-reset': `${NOW + 40_000}` }, 40_000],
    [{ 'x-ratelimit-reset': `${NOW / 1000 + 40}`, date: 'Sat, 21 Nov 2026 20:00:10 GMT' }, 30_000],
    [{ [`${CLAUDE}-reset`]: '2026-11-21T20:00:20Z', [`${CLAUDE}-remaining`]: '0' }, 20_000],
    [{ 'ratelimit-reset': '9' }, 9000],
    [{ 'ratelimitbysize-reset': '32' }, 32_000],
    [{ 'x-ratelimit-reset': '12', 'retry-after': '3' }, 3000],
    [{ 'x-ratelimit-reset': 'soon' }, undefined],
  ])('the limits %j give the right number of milliseconds', (headers, afterMs) => {
    expect(respond(429, '', headers).afterMs).toBe(afterMs);
  });

  const retryInfo = (retryDelay: string) => ({
    '@type': 'type.googleapis.com/google.rpc.RetryInfo',
    retryDelay,
  });
  const limited = { 'X-RateLimit-Reset': `${NOW + 5000}`, 'X-RateLimit-Remaining': '0' };
  it.each([
    [told('Rate limit reached for gpt-5 on tokens per min (TPM). Please try again in 0.3s. Visit x.'), 300],
    [told('Rate limit reached. Please try again in 450ms.'), 450],
    [told('Please try again in 1m12.5s.'), 72_500],
    [told('Please try again in 7m12s. Need more tokens?'), 432_000],
    [told('Please retry after 26 seconds.'), 26_000],
    [told('please try again after 1 seconds'), 1000],
    [told('Please wait 2 minutes'), 120_000],
    [told('Please retry in 41.216428409s.'), 41_216],
    [told('x', { details: [{ other: true }, retryInfo('12s')] }), 12_000],
    [[told('x', { details: [retryInfo('0.5s')] })], 500],
    [told('x', { metadata: { headers: limited } }), 5000],
    [told('Provider returned error', { metadata: { raw: 'x is limited. Please retry in 2s' } }), 2000],
    [told('Try again later, in some 5 bananas'), undefined],
    [told('Please try again in 12 bananas'), undefined],
  ])('the body %j gives the right number of milliseconds', (body, afterMs) => {
    expect(respond(429, body).afterMs).toBe(afterMs);
    expect(respond(429, body, { 'retry-after': '2' }).afterMs).toBe(2000);
  });

  it('a quota of a minute is waited for, and one of a day or of an empty account is final', () => {
    const quota = (quotaId: string, message: string) =>
      told(`You exceeded your current quota, please check your plan and billing details. ${message}`, {
        code: 429,
        status: 'RESOURCE_EXHAUSTED',
        details: [
          { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId }] },
          retryInfo('12s'),
        ],
      });
    const minute = 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier';
    const day = 'GenerateRequestsPerDayPerProjectPerModel-FreeTier';
    const waits = { code: 'RATE_LIMITED', retryable: true, afterMs: 12_000 };
    expect(respond(429, [quota(minute, 'Please retry in 12.5s.')])).toMatchObject(waits);
    expect(faultOfBody(quota(minute, ''))).toMatchObject({ code: 'RATE_LIMITED', afterMs: 12_000 });
    const final = { code: 'QUOTA_EXHAUSTED', retryable: false };
    expect(respond(429, quota(day, ''))).toMatchObject(final);
    const empty = told('You exceeded your current quota.', { code: 'insufficient_quota' });
    expect(respond(429, empty, { 'retry-after': '2' })).toMatchObject(final);
  });

  it('there is no retry delay if a retry does not help', () => {
    expect(respond(401, '', { 'retry-after': '2' }).afterMs).toBeUndefined();
  });
});

describe('the text of an error', () => {
  const relayed = (raw: unknown, more: object = {}) => ({
    error: { message: 'y', metadata: { raw, ...more } },
  });

  it.each([
    [400, '<400> Algo.InvalidParameter: no such field', /400: <400> Algo.InvalidParameter: no such/],
    [502, '<html><head><title>Bad Gateway</title></head></html>', /an HTML page, “Bad Gateway”/],
    [502, '  <!DOCTYPE html><p>x', /an HTML page/],
    [400, relayed('{"error":{"message":"no tool x"}}', { provider_name: 'Z' }), /y \(Z: no tool x\)/],
    [400, relayed('plain words'), /y \(provider: plain words\)/],
    [400, relayed({ detail: 'inner' }), /y \(provider: inner\)/],
    [400, relayed(''), /: y\. The request/],
    [
      400,
      { success: false, errors: [{ code: 7000, message: 'No route' }] },
      /400: .*No route.*\. The request/,
    ],
    [422, { object: 'error', message: { detail: [{ msg: 'Field required' }] } }, /422: .*Field required/],
    [400, { error: { code: 'x', param: 'tools' } }, /400: \{"code":"x","param":"tools"\}\. The request/],
    [400, {}, /400\. The request/],
  ])('the text of status %i and %j is shown', (status, body, message) => {
    expect(respond(status, body).message).toMatch(message);
  });
});

it('an error that is nested too deeply is reported without its text', () => {
  const body = JSON.parse(`{"detail":${'['.repeat(50_000)}${']'.repeat(50_000)}}`);
  expect(respond(400, body).message).toMatch(/400\. The request/);
});

describe('a network error', () => {
  const because = (fields: object, message = 'x') =>
    new TypeError('fetch failed', { cause: Object.assign(new Error(message), fields) });

  const refused = new AggregateError([Object.assign(new Error('a'), { code: 'ECONNREFUSED' })], '');
  const together = new TypeError('fetch failed', { cause: refused });

  it.each([
    [because({ code: 'ECONNREFUSED' }), 'NETWORK_ERROR', true, /Nothing listens at http:\/\/h/],
    [because({ code: 'ENOTFOUND' }), 'NETWORK_ERROR', true, /host of http:\/\/h is unknown/],
    [because({ code: 'ECONNRESET' }), 'NETWORK_ERROR', true, /closed the connection/],
    [because({ code: 'ETIMEDOUT' }), 'TIMEOUT', true, /cannot be reached in time/],
    [because({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }, 'self-signed'), 'NETWORK_ERROR', false, /certificate/],
    [because({ code: 'EPIPE' }, 'write EPIPE'), 'NETWORK_ERROR', true, /write EPIPE/],
    [together, 'NETWORK_ERROR', true, /Nothing listens/],
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
      createHttpModel({ dialect: 'chat', name: 'default', firstTokenMs: 1000, idleMs: 1000, ...options });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ParleyError);
    expect(thrown).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) });
    expect(`${thrown}`).not.toContain('secret');
  });
});
