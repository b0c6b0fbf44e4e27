import { describe, expect, it } from 'vitest';
import { guard, type WireMessage } from '../../../src/agents/index.ts';
import { errorWith } from '../../support/error-with.ts';

const window = { contextTokens: 1_000, maxOutputTokens: 100 };
const user: WireMessage = { role: 'user', content: 'hi' };
const said: WireMessage = { role: 'assistant', content: 'hello' };
const asking = (...ids: string[]): WireMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'recall', arguments: '{}' } })),
});
const result = (id: string): WireMessage => ({ role: 'tool', content: '…', tool_call_id: id });

describe('L13: the guard before every request', () => {
  it.each<[string, WireMessage[]]>([
    ['a question', [user]],
    ['a question after an answer', [user, said, user]],
    ['a system message last', [user, { role: 'system', content: 'x' }]],
    ['calls with their results, in order', [user, asking('a', 'b'), result('a'), result('b')]],
    ['two rounds of calls', [user, asking('a'), result('a'), asking('b'), result('b'), user]],
  ])('the guard accepts %s', (_, messages) => {
    expect(guard(messages, 900, window)).toBeNull();
  });

  it.each<[string, WireMessage[], string]>([
    ['a result without a call', [user, result('a')], 'message 1 holds a result of a'],
    ['a result after another message', [asking('a'), user, result('a'), user], 'no result of the call a'],
    ['a call without a result', [user, asking('a'), user], 'message 2 holds no result of the call a'],
    ['a call at the end', [user, asking('a')], 'no result of the call a'],
    ['results out of order', [asking('a', 'b'), result('b'), result('a'), user], 'no result of the call a'],
    ['half of the results', [asking('a', 'b'), result('a'), user], 'no result of the call b'],
    ['a second result', [asking('a'), result('a'), result('a'), user], 'a result of a without its call'],
    ['an id used twice', [asking('a'), result('a'), asking('a'), result('a'), user], 'the call a twice'],
    ['an id twice in one message', [asking('a', 'a'), result('a'), result('a'), user], 'the call a twice'],
    ['an answer last', [user, said], 'message 1 holds an assistant message at the end'],
    ['nothing', [], 'nothing'],
  ])('the guard refuses %s, and names the message (GUARD-1, GUARD-2)', (_, messages, what) => {
    expect(guard(messages, 1, window)).toMatchObject(errorWith('REQUEST_INVALID', what, 'parley explain'));
  });

  it('the guard refuses a request that leaves no space for the answer (GUARD-3)', () => {
    expect(guard([user], 900, window)).toBeNull();
    expect(guard([user], 901, window)).toMatchObject(
      errorWith('CONTEXT_STILL_TOO_LARGE', /901.*900/, 'contextTokens'),
    );
  });
});
