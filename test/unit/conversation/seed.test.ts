import { describe, expect, it } from 'vitest';
import { checkLaws, type Entry } from '../../../src/conversation/index.ts';
import { seedsOf } from '../../../src/daemon/api/seeds.ts';
import { messagesOf, World } from './world.ts';

const by = { kind: 'person' as const, id: 'alice', name: 'Alice' };
const user = (content: string) => ({ role: 'user', content });
const call = { id: 'x', type: 'function', function: { name: 'look', arguments: '{}' } };
let ids = 0;
const batches = (messages: readonly Record<string, unknown>[], most = 10_000) =>
  seedsOf(messages, 'pm', { most, newId: () => `made-${ids++}` });
const seed = (world: World, entries: ReturnType<typeof batches>[number], agent = 'pm', after = 0) =>
  world.do({ type: 'seed', entries, after, agent, by });
const typed = (entries: readonly Entry[]) =>
  entries.map((entry) =>
    entry.type === 'message' ? [entry.role, entry.author.id, entry.content] : entry.type,
  );

describe('a conversation that begins with messages from elsewhere', () => {
  it('L14 L17: seed messages start no turn and are attributed to their publisher or to the named agent', () => {
    const world = new World();
    const [entries = []] = batches([
      { ...user('Hi'), name: 'pm' },
      { role: 'assistant', content: 'Yes?', name: 'dev' },
    ]);
    expect(seed(world, entries).effects).toEqual([]);
    expect(typed(world.entries)).toEqual([
      ['user', 'alice', 'Hi'],
      ['assistant', 'pm', 'Yes?'],
    ]);
    world.post('And now?');
    expect(messagesOf(world.view('pm')).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Hi'],
      ['assistant', 'Yes?'],
      ['user', 'And now?'],
    ]);
    expect(checkLaws(world.entries)).toEqual([]);
  });

  it('a seed accepts several batches, each call with its result, and adds a result to a call without one', () => {
    const messages = [
      user('one'),
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'x', content: 'seen' },
      user('two'),
      { role: 'assistant', content: null, function_call: { name: 'look', arguments: '{}' } },
    ];
    const made = batches(messages, 230);
    expect(made.map((batch) => batch.map(({ role }) => role))).toEqual([
      ['user', 'assistant', 'tool'],
      ['user', 'assistant', 'tool'],
    ]);
    const world = new World();
    let after = 0;
    for (const batch of made) {
      seed(world, batch, 'pm', after);
      after += batch.length;
    }
    expect(world.entries.flatMap((entry) => ('call' in entry ? [entry.call] : []))).toEqual([
      { index: 1, position: 0 },
      { index: 4, position: 0 },
    ]);
    expect(checkLaws(world.entries)).toEqual([]);
  });

  it('a seed splits a long stretch without people between calls, never between a call and its result', () => {
    const step = [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'x', content: 'seen' },
    ];
    const made = batches([user('one'), ...step, ...step, ...step], 230);
    expect(made.map((batch) => batch.map(({ role }) => role))).toEqual([
      ['user', 'assistant', 'tool'],
      ['assistant', 'tool'],
      ['assistant', 'tool'],
    ]);
  });

  it('a repeated seed is appended once, even if only a part of it was appended before', () => {
    const world = new World();
    const history = [user('one'), { role: 'assistant', content: 'uno' }, user('two'), user('three')];
    const [first = [], second = []] = batches(history, 80);
    const times = [first, second].map(({ length }) => length);
    expect(times).toEqual([2, 2]);
    expect(seed(world, second, 'pm', 2).reply).toMatchObject({ refusal: { code: 'CONVERSATION_CONFLICT' } });
    for (const _ of [1, 2]) expect(seed(world, first).reply).toEqual({ kind: 'done' });
    for (const _ of [1, 2]) expect(seed(world, second, 'pm', 2).reply).toEqual({ kind: 'done' });
    expect(typed(world.entries).map((entry) => entry[2])).toEqual(['one', 'uno', 'two', 'three']);
    world.post('And now?');
    expect(seed(world, first)).toMatchObject({ reply: { kind: 'done' }, entries: [] });
    const [other = []] = batches([user('one'), { role: 'assistant', content: 'eins' }]);
    expect(seed(world, other).reply).toMatchObject({ refusal: { code: 'CONVERSATION_CONFLICT' } });
  });

  it('a seed is refused after any other message, for an unknown agent, and for a message that is too large', () => {
    const world = new World();
    world.post('first');
    const [entries = []] = batches([user('Hi')]);
    expect(seed(world, entries).reply).toMatchObject({ refusal: { code: 'CONVERSATION_CONFLICT' } });
    expect(seed(new World(), entries, 'nobody').reply).toMatchObject({ refusal: { code: 'UNKNOWN_AGENT' } });
    expect(() => batches([user('x'.repeat(20_000))])).toThrow(
      /message 0 of the history has \d+ bytes; 10000 fit/,
    );
    expect(() => batches([{ role: 'oracle', content: 'x' }])).toThrow(/its role is "oracle"/);
  });
});
