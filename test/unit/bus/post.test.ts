import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Delivery, decodePost } from '../../../src/bus/index.ts';
import { hasVisible } from '../../../src/kernel/index.ts';
import { anyCharacter } from '../../support/characters.ts';
import { runs } from '../../support/runs.ts';
import { bytes } from './support.ts';

const envelope = { messageId: null, fallbackId: 'in-7-abc', publisher: 'alice', conversation: 'demo' };
const decode = (body: string | Uint8Array, more: Partial<Delivery> = {}) =>
  decodePost({ ...envelope, ...more, body: typeof body === 'string' ? bytes(body) : body });
const decodeJson = (value: unknown, more: Partial<Delivery> = {}) => decode(JSON.stringify(value), more);
const accepted = (result: ReturnType<typeof decodePost>) => {
  if (!result.ok) throw new Error(`refused: ${result.refusal.code} ${result.refusal.message}`);
  return result.post;
};
const refused = (result: ReturnType<typeof decodePost>) => {
  if (result.ok) throw new Error('accepted');
  return result.refusal;
};

const FILE = { type: 'file', sha256: 'ab'.repeat(32), name: 'plan.png' };
const UNKNOWN = { mediaType: 'application/octet-stream', size: 0 };

const text = (words: string) => ({ type: 'text', text: words });
const STORED = { ...FILE, ...UNKNOWN };

describe('the parts of a post', () => {
  it.each([
    [{ content: 'look', parts: [FILE] }, 'look', [text('look'), STORED]],
    [{ parts: [FILE] }, '', [STORED]],
    [{ parts: [{ ...FILE, mediaType: 'image/png', size: 9, width: 2 }] }, '', [STORED]],
    [{ parts: [text('a'), text('b')] }, 'a\nb', undefined],
    [{ content: 'a', parts: [text('a'), FILE] }, 'a', [text('a'), STORED]],
  ])('%j is accepted; what is stored of its files comes later', (body, content, parts) => {
    const post = accepted(decodeJson(body));
    expect([post.content, post.parts]).toEqual([content, parts]);
  });

  it.each([
    [{ content: 'a', parts: [{ type: 'text', text: 'b' }] }, 'INVALID_FIELD', /texts of the parts differ/],
    [{ parts: [] }, 'EMPTY_CONTENT', /empty/],
    [{ parts: [{ ...FILE, sha256: 'AB' }] }, 'INVALID_FIELD', /parts.0.sha256/],
    [{ parts: [{ ...FILE, url: 'x' }] }, 'UNKNOWN_FIELD', /url/],
    [{ parts: [{ type: 'image' }] }, 'INVALID_FIELD', /parts.0.type/],
    [{ parts: [{ ...FILE, name: 'x'.repeat(256) }] }, 'INVALID_FIELD', /parts.0.name/],
    [{ parts: [{ ...FILE, name: '\ud800' }] }, 'INVALID_FIELD', /surrogate/],
    [{ content: 'a', parts: Array.from({ length: 65 }, () => FILE) }, 'INVALID_FIELD', /at most 64 parts/],
  ])('%.80j is refused as %s', (body, code, message) => {
    const refusal = refused(decodeJson(body));
    expect([refusal.code, refusal.message]).toEqual([code, expect.stringMatching(message)]);
  });
});

describe('an accepted post', () => {
  it('a post in plain text is its own content', () => {
    expect(accepted(decode('  two\r\nlines \0 '))).toEqual({
      id: 'in-7-abc',
      content: '  two\r\nlines \0 ',
      delivery: 'steer',
      author: { id: 'alice', name: 'alice' },
      publisher: 'alice',
      conversation: 'demo',
    });
  });

  it.each(['[1,2]', '"quoted"', '3', 'null', 'a {brace}'])(
    'a post that does not begin with a brace is text: %s',
    (body) => {
      expect(accepted(decode(body)).content).toBe(body);
    },
  );

  it('a post may have every field', () => {
    const body = {
      id: 'mine 1',
      content: 'hello',
      to: ['dev', 'qa', 'dev'],
      delivery: 'interrupt',
      author: { name: 'Alice ö' },
      sessionId: 's',
      replyTo: 'q1',
      meta: { any: [{ thing: null }] },
      includeInContext: false,
      isCollapsed: true,
    };
    expect(accepted(decode(` \r\n\t${JSON.stringify(body)}\n`, { messageId: 'header' }))).toEqual({
      ...body,
      to: ['dev', 'qa'],
      author: { id: 'alice/Alice ö', name: 'Alice ö' },
      publisher: 'alice',
      conversation: 'demo',
    });
  });

  it('the id of a post comes from the body, else from the header, else from the fallback', () => {
    expect(accepted(decodeJson({ content: 'x', id: 'a' }, { messageId: 'b' })).id).toBe('a');
    expect(accepted(decode('x', { messageId: 'b' })).id).toBe('b');
    expect(accepted(decode('x', { messageId: '' })).id).toBe('in-7-abc');
  });

  it('a post may name its session claudeSessionId, and an empty `to` counts as none', () => {
    const post = accepted(decodeJson({ content: 'x', claudeSessionId: 's', to: [] }));
    expect(post.sessionId).toBe('s');
    expect('to' in post || 'claudeSessionId' in post).toBe(false);
  });
});

/** A hundred thousand fields. */
function many(prefix: string): object {
  return Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`${prefix}${n}`, 1]));
}

describe('a refused post', () => {
  const json = (value: unknown) => JSON.stringify(value);
  const deep = `{"content":"x","meta":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`;
  it.each([
    ['EMPTY_CONTENT', '', /empty/],
    ['EMPTY_CONTENT', ' \n\u3000', /empty/],
    ['EMPTY_CONTENT', json({ content: '\t' }), /empty/],
    ['EMPTY_CONTENT', '\u200b\u2060\u00ad\u202e\u2800\u3164', /empty/],
    ['EMPTY_CONTENT', json({}), /missing/],
    ['MALFORMED_JSON', '{oops}', /begins with \{/],
    ['MALFORMED_JSON', '{"content":geheim}', /^((?!geheim).)*$/],
    ['MALFORMED_JSON', '{"content":"x"} and more', /begins with \{/],
    ['UNKNOWN_FIELD', json({ content: 'x', colour: 'red', size: 1 }), /"colour", "size"/],
    ['UNKNOWN_FIELD', json({ content: 'x', author: { name: 'A', kind: 'agent' } }), /"author.kind"/],
    ['UNKNOWN_FIELD', '{"content":"x","__proto__":{"to":["dev"]}}', /__proto__/],
    ['INVALID_FIELD', json({ content: 7 }), /field content.*got 7/],
    ['INVALID_FIELD', json({ content: null }), /field content.*got null/],
    ['INVALID_FIELD', '{"content":"half \\ud800"}', /surrogate/],
    ['INVALID_FIELD', json({ content: 'x', to: 'dev' }), /field to.*got "dev"/],
    ['INVALID_FIELD', json({ content: 'x', to: ['dev', 'Dev'] }), /field to\.1.*got "Dev"/],
    ['INVALID_FIELD', json({ content: 'x', to: Array.from({ length: 65 }, (_, n) => `a${n}`) }), /field to/],
    ['INVALID_FIELD', json({ content: 'x', delivery: 'later' }), /field delivery.*got "later"/],
    ['INVALID_FIELD', json({ content: 'x', id: '' }), /field id/],
    ['INVALID_FIELD', json({ content: 'x', id: 'a\nb' }), /field id/],
    ['INVALID_FIELD', json({ content: 'x', id: 'a'.repeat(257) }), /field id/],
    ['INVALID_FIELD', json({ content: 'x', sessionId: 'a\r\nEvil: 1' }), /field sessionId/],
    ['INVALID_FIELD', json({ content: 'x', sessionId: 'sitzung-ä' }), /ASCII/],
    ['INVALID_FIELD', json({ content: 'x', sessionId: 'a', claudeSessionId: 'b' }), /differ/],
    ['INVALID_FIELD', json({ content: 'x', meta: [] }), /field meta/],
    ['INVALID_FIELD', json({ content: 'x', includeInContext: 'no' }), /field includeInContext/],
    ['INVALID_FIELD', deep, /nested/],
    ['INVALID_AUTHOR', json({ content: 'x', author: { name: '' } }), /author.name/],
    ['INVALID_AUTHOR', json({ content: 'x', author: { name: ' A' } }), /author.name/],
    ['INVALID_AUTHOR', json({ content: 'x', author: { name: 'A]: x' } }), /author.name/],
    ['INVALID_AUTHOR', json({ content: 'x', author: { name: '\u3164' } }), /author.name/],
    ['INVALID_AUTHOR', json({ content: 'x', author: { name: '\u2800\u2800' } }), /author.name/],
    ['INVALID_AUTHOR', json({ content: 'x', author: { name: 'A\u2028B' } }), /author.name/],
    ['INVALID_AUTHOR', json({ content: 'x', author: { name: 'A\u0007' } }), /author.name/],
    ['INVALID_AUTHOR', json({ content: 'x', author: { name: 'A\u202Eveda' } }), /"A\\u202eveda"/],
    ['INVALID_AUTHOR', json({ content: 'x', author: { name: 'é'.repeat(65) } }), /author.name/],
  ])('a post is refused as %s: %.60s', (code, body, message) => {
    const refusal = refused(decode(body));
    expect(refusal.code).toBe(code);
    expect(refusal.message).toMatch(message);
    expect(refusal.message.length).toBeLessThan(300);
  });

  it.each([
    ['{"content":"x","meta":{"a":{"b":[0,1e999]}}}', /field meta\.a\.b\.1: .*too large for JSON/],
    ['{"content":"x","meta":{"n":-1e999}}', /field meta\.n: /],
    ['{"content":"x","meta":{"__proto__":{"a":1}}}', /field meta\.__proto__: /],
  ])('a post whose value would be stored differently is refused with its path: %s', (body, message) => {
    expect(refused(decode(body))).toMatchObject({
      code: 'INVALID_FIELD',
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/./),
    });
  });

  it('such keys are kept deeper inside of meta', () => {
    const meta = '{"a":[{"__proto__":1}]}';
    expect(JSON.stringify(accepted(decode(`{"content":"x","meta":${meta}}`)).meta)).toBe(meta);
  });

  it.each([
    ['field content: expected a text, got 7', { content: 7 }],
    ['field to: expected a list, got "dev"', { content: 'x', to: 'dev' }],
    [
      'field delivery: expected one of steer, queue, interrupt, got "later"',
      { content: 'x', delivery: 'later' },
    ],
    ['field meta: expected an object, got []', { content: 'x', meta: [] }],
    ['field isCollapsed: expected true or false, got 1', { content: 'x', isCollapsed: 1 }],
    ['field to.0: expected the slug of an agent, which is lower case, got "A"', { content: 'x', to: ['A'] }],
    ['field to: expected at most 64 agents, got 65', { content: 'x', to: Array(65).fill('a') }],
    ['field id: expected 1 to 256 printable characters, got ""', { content: 'x', id: '' }],
  ])('the refusal "%s" is plain and has a hint', (message, body) => {
    const refusal = refused(decode(json(body)));
    expect(refusal).toMatchObject({ code: 'INVALID_FIELD', message });
    expect(refusal.hint).toMatch(/./);
  });

  /** POST-5: a slow check hangs this test. The refusal is logged, answered and kept. */
  it.each<[string, object, RegExp]>([
    ['unknown fields', many('k'), /^unknown field "k0", .* and 99992 more$/],
    ['unknown fields of the author', { author: many('k') }, /"author.k0", .* and 99992 more$/],
    ['fields of meta', { meta: many('k') }, /^the body has an object with more than 10000 fields$/],
    ['one unknown field that is long', { ['k'.repeat(900_000)]: 1 }, /^unknown field "kkk/],
    ['recipients', { to: Array(200_000).fill('dev') }, /field to: expected at most 64 agents, got 200000/],
    ['recipients that are none', { to: Array(200_000).fill({}) }, /field to: expected at most 64/],
    ['long words', { delivery: 'x'.repeat(900_000) }, /field delivery/],
  ])('a post with any number of errors is refused in a short text: %s', (_, more, message) => {
    const refusal = refused(decode(json({ content: 'x', ...more })));
    expect(refusal.message).toMatch(message);
    expect(`${refusal.message}${refusal.hint}`.length).toBeLessThan(1_000);
  });

  it('a post with bytes that are not UTF-8 is refused as INVALID_UTF8', () => {
    expect(refused(decode(Uint8Array.of(0x68, 0xff)))).toMatchObject({ code: 'INVALID_UTF8' });
    expect(refused(decode(Uint8Array.of(0xed, 0xa0, 0x80)))).toMatchObject({ code: 'INVALID_UTF8' });
  });

  it.each(['', 'a b', 'a.b', '*', '>', 'ü', 'a'.repeat(129), 'a\n'])(
    'the conversation name %j is refused as INVALID_NAME',
    (name) => {
      expect(refused(decode('x', { publisher: name }))).toMatchObject({ code: 'INVALID_NAME' });
      expect(refused(decode('x', { conversation: name }))).toMatchObject({ code: 'INVALID_NAME' });
    },
  );

  it('a post with an invalid id header is refused as INVALID_FIELD, as its sender relies on that id', () => {
    const refusal = refused(decode('x', { messageId: 'a'.repeat(257) }));
    expect(refusal).toMatchObject({ code: 'INVALID_FIELD', hint: expect.stringMatching(/./) });
  });
});

describe('a post of random bytes', () => {
  const bodies = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.string({ unit: anyCharacter }).map(bytes),
    fc.json().map((json) => bytes(`{"content":"x","meta":${json}}`)),
    fc
      .record(
        {
          content: fc.anything(),
          id: fc.anything(),
          to: fc.anything(),
          author: fc.oneof(fc.anything(), fc.record({ name: fc.string({ unit: anyCharacter }) })),
          meta: fc.object(),
          delivery: fc.constantFrom('steer', 'queue', 'x'),
        },
        { requiredKeys: [] },
      )
      .map((value) => bytes(jsonOf(value))),
  );

  it('decoding never throws, is deterministic, and an accepted post is unchanged when it is written and read again', () => {
    fc.assert(
      fc.property(bodies, fc.option(fc.string()), (body, messageId) => {
        const encoded = { ...envelope, messageId, body };
        const result = decodePost(encoded);
        expect(decodePost(encoded)).toEqual(result);
        if (!result.ok) {
          expect(result.refusal.code).toMatch(/^[A-Z0-9_]+$/);
          expect(result.refusal.message).not.toBe('');
          return;
        }
        const { content, id, author } = result.post;
        expect(hasVisible(content)).toBe(true);
        expect([...id].length).toBeGreaterThan(0);
        expect(`[${author.name}]: `).toMatch(/^\[[^[\]\n\r]+\]: $/);
        const written = new TextEncoder().encode(JSON.stringify(result.post));
        expect(JSON.parse(new TextDecoder().decode(written))).toEqual(result.post);
        expect(new TextDecoder().decode(new TextEncoder().encode(content))).toBe(content);
      }),
      { numRuns: runs(300) },
    );
  });

  it('a text that does not begin with a brace is kept, or refused if it has no visible character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (content) => {
        fc.pre(!/^[ \t\r\n]*\{/.test(content) && !content.startsWith('\uFEFF'));
        if (hasVisible(content)) expect(accepted(decode(content)).content).toBe(content);
        else expect(refused(decode(content)).code).toBe('EMPTY_CONTENT');
      }),
      { examples: [['\u2800'], ['\u{1d159}'], ['']] },
    );
  });
});

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '{}';
  }
}
