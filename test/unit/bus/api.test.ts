import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeRequest, encodeAnswer, refusalOfFault, statusOf } from '../../../src/bus/envelopes.ts';
import { encodeAudit, packEntries } from '../../../src/bus/nats/feeds.ts';
import type { Entry } from '../../../src/conversation/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { anyCharacter } from '../../support/characters.ts';
import { bytes, text } from './support.ts';

describe('a request body', () => {
  it('a request body is JSON, and an empty one is an empty object', () => {
    expect(decodeRequest(bytes(''))).toEqual({ ok: true, body: {} });
    expect(decodeRequest(bytes('{"a":[1]}'))).toEqual({ ok: true, body: { a: [1] } });
  });

  it.each([
    ['MALFORMED_JSON', bytes('{nope')],
    ['INVALID_UTF8', Uint8Array.of(0x22, 0xff, 0x22)],
    ['INVALID_FIELD', bytes(`{${Array.from({ length: 20_000 }, (_, n) => `"k${n}":1`)}}`)],
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

const note = (index: number, content: string): Entry => ({
  index,
  id: `e${index}`,
  createdAt: '2026-11-21T20:39:00.000Z',
  type: 'note',
  author: { kind: 'system', id: 'parley', name: 'Parley' },
  content,
});

describe('the log feed', () => {
  it('the feed carries entries in order in messages that fit, and omits only entries that are too large alone', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 600, unit: anyCharacter })),
        fc.integer({ min: 200, max: 2_000 }),
        (contents, max) => {
          const entries = contents.map((content, index) => note(index, content));
          const messages = packEntries(entries, max);
          for (const message of messages) expect(message.length).toBeLessThanOrEqual(max);
          const carried = messages.flatMap((message) => JSON.parse(text(message)).entries as Entry[]);
          const fitting = entries.filter((entry) => bytes(JSON.stringify({ entries: [entry] })).length < max);
          expect(carried).toEqual(fitting);
        },
      ),
    );
  });

  it('the feed sends one message if one is enough, and none for no entries', () => {
    expect(packEntries([note(0, 'a'), note(1, 'b')], 1_000_000)).toHaveLength(1);
    expect(packEntries([], 1_000)).toEqual([]);
  });
});

describe('a record of the audit log', () => {
  const record = { type: 'ToolCallRequested', call: { entry: 3, position: 0 }, tool: 'shell', at: 'now' };

  it('an audit record is published whole if it fits, and otherwise without its long fields', () => {
    const whole = { ...record, arguments: 'x'.repeat(500) };
    expect(JSON.parse(text(encodeAudit(whole, 1_000)))).toEqual(whole);
    expect(JSON.parse(text(encodeAudit(whole, 400)))).toEqual({ ...record, truncated: true });
  });
});
