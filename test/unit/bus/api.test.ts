import { describe, expect, it } from 'vitest';
import { decodeRequest, encodeAnswer, refusalOfFault, statusOf } from '../../../src/bus/envelopes.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { bytes, text } from './support.ts';

describe('a request body', () => {
  it('a request body is JSON, and an empty one is an empty object', () => {
    expect(decodeRequest(bytes(''))).toEqual({ ok: true, body: {} });
    expect(decodeRequest(bytes('{"a":[1]}'))).toEqual({ ok: true, body: { a: [1] } });
  });

  it.each([
    ['MALFORMED_JSON', bytes('{nope')],
    ['INVALID_UTF8', Uint8Array.of(0x22, 0xff, 0x22)],
    ['INVALID_FIELD', bytes(`${'['.repeat(50_000)}${']'.repeat(50_000)}`)],
  ])('a request body is refused as %s', (code, body) => {
    expect(decodeRequest(body)).toMatchObject({ ok: false, refusal: { code } });
  });
});

describe('an answer of the API', () => {
  it('an answer is encoded as JSON', () => {
    const { body, error } = encodeAnswer({ ok: true, body: { a: 'ö' } }, 1_000);
    expect([text(body), error]).toEqual(['{"a":"ö"}', null]);
  });

  it('an answer that exceeds the message size becomes TOO_LARGE', () => {
    const { body, error } = encodeAnswer({ ok: true, body: 'x'.repeat(1_000) }, 1_000);
    expect(error?.status).toBe(413);
    expect(JSON.parse(text(body))).toMatchObject({ code: 'TOO_LARGE', hint: expect.any(String) });
  });

  it('an error answer has code, message and hint, and a description on one line', () => {
    const refusal = { code: 'UNKNOWN_FIELD', message: 'bad\r\nEvil: header', hint: 'do' };
    const { body, error } = encodeAnswer({ ok: false, refusal }, 1_000);
    expect(JSON.parse(text(body))).toEqual(refusal);
    expect(error).toEqual({ status: 400, description: 'UNKNOWN_FIELD: bad Evil: header' });
  });

  it('a long error message is cut, and its end says how much is missing', () => {
    const refusal = { code: 'CONFIG_INVALID', message: 'x'.repeat(2_500) };
    const { message } = JSON.parse(text(encodeAnswer({ ok: false, refusal }, 10_000).body));
    expect(message).toBe(`${'x'.repeat(2_000)}… (500 more characters)`);
  });

  it('an expected error is answered with its code, and a bug without its details', () => {
    const known = new ParleyError('BROKER_UNAVAILABLE', 'gone', { hint: 'wait' });
    expect(refusalOfFault(known)).toEqual({ code: 'BROKER_UNAVAILABLE', message: 'gone', hint: 'wait' });
    const bug = refusalOfFault(new TypeError('secret is undefined'));
    expect(bug.code).toBe('INTERNAL');
    expect(bug.message).not.toContain('secret');
  });

  it.each([
    ['UNKNOWN_FIELD', 400],
    ['toString', 400],
    ['FORBIDDEN', 403],
    ['CONVERSATION_NOT_FOUND', 404],
    ['ID_CONFLICT', 409],
    ['TOO_LARGE', 413],
    ['INTERNAL', 500],
    ['APPROVAL_ANSWERED', 409],
    ['APPROVAL_EXPIRED', 409],
    ['BROKER_UNAVAILABLE', 503],
    ['STORE_UNAVAILABLE', 503],
    ['STORE_FULL', 503],
    ['LOG_WRITE_FAILED', 503],
    ['LOG_UNAVAILABLE', 503],
  ])('the numeric code of %s is %i', (code, status) => {
    expect(statusOf(code)).toBe(status);
  });
});
