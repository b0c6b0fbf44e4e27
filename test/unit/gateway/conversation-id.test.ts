import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NAME_PATTERN } from '../../../src/conversation/index.ts';
import { conversationOf } from '../../../src/gateway/conversation-id.ts';
import { prefixOf } from '../../../src/gateway/openai/pick.ts';
import { readChatRequest } from '../../../src/gateway/openai/request.ts';
import { anyCharacter } from '../../support/characters.ts';

describe('the conversation id for an id of the client', () => {
  it('a client id that is a legal conversation id is used unchanged', () => {
    for (const id of ['demo', 'A_b-9', 'x'.repeat(128)]) expect(conversationOf(id)).toBe(id);
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/), (id) => {
        expect(conversationOf(id)).toBe(id);
      }),
    );
  });

  it('any other client id is mapped to a legal, readable id, always the same one', () => {
    expect(conversationOf('support/case 17 (Zoë)')).toBe(
      'support-case-17-Zo-6bd48084cf3b271a1d7059f1da59555b',
    );
    expect(conversationOf('日本')).toMatch(/^thread-[0-9a-f]{32}$/);
    expect(conversationOf('x'.repeat(129))).toMatch(/^x{64}-[0-9a-f]{32}$/);
  });

  it('the client id at `/v1` is taken from the header or from the metadata', () => {
    const named = (conversation?: string, metadata?: object) =>
      readChatRequest(
        { model: 'pm', messages: [{ role: 'user', content: 'Hello' }], metadata },
        {
          headers: { conversation, idempotencyKey: undefined, retryCount: undefined },
          publisher: 'alice',
          secret: '',
        },
      ).conversation;
    expect(named('case 17')).toBe(conversationOf('case 17'));
    expect(named(undefined, { conversation: 'Zoë' })).toBe(conversationOf('Zoë'));
    expect([named('demo'), named('', { conversation: '' }), named()]).toEqual(['demo', null, null]);
  });

  it('an id at `/v1` begins with a digest that cannot be computed without the token of the caller', () => {
    const headers = { conversation: undefined, idempotencyKey: undefined, retryCount: undefined };
    const body = { model: 'pm', messages: [{ role: 'user', content: 'Hello' }] };
    const asked = (secret: string) => readChatRequest(body, { headers, publisher: 'alice', secret });
    expect(prefixOf(asked('one'))).toBe(prefixOf(asked('one')));
    expect(prefixOf(asked('one'))).not.toBe(prefixOf(asked('other')));
    expect(asked('one').caller).toBe(asked('other').caller); // The log keeps it, so it must contain nothing of the token.
  });

  it('any text is mapped to a legal id, and different texts to different ids', () => {
    const text = fc.string({ minLength: 1, maxLength: 300, unit: anyCharacter });
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(conversationOf(one)).toMatch(NAME_PATTERN);
        expect(conversationOf(one) === conversationOf(other)).toBe(one === other);
      }),
      { numRuns: 500 },
    );
    const alike = [
      'a b',
      'a/b',
      'a.b',
      'a  b',
      ' a b',
      'A b',
      'a\u0000b',
      'é',
      'e\u0301',
      '\ud800',
      '\ud801',
    ];
    expect(new Set(alike.map(conversationOf)).size).toBe(alike.length);
  });
});
