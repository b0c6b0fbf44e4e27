import { describe, expect, it } from 'vitest';
import { World } from './world.ts';

describe('a lone surrogate in any text of an entry', () => {
  const HALF = /\p{Surrogate}/u;
  const whole = (log: readonly unknown[]) => !log.some((entry) => HALF.test(textsOf(entry).join('\n')));

  it.each<[string, (world: World) => void]>([
    ['in a post', (world) => void world.post('a\ud83d b', { to: ['dev'] })],
    [
      'in an answer',
      (world) => {
        world.post('hello', { to: ['dev'] });
        world.answer(world.callOf('dev'), 'a\ud83d');
      },
    ],
    [
      'at the cut of an answer that broke off',
      (world) => {
        world.post('hello', { to: ['dev'] });
        world.fail(world.callOf('dev'), 'a\ud83d');
      },
    ],
    [
      'in a result',
      (world) => {
        world.post('hello', { to: ['dev'] });
        world.answer(world.callOf('dev'), null, ['write']);
        world.finish(world.tools[0] ?? expect.unreachable(), '\udc18b');
      },
    ],
  ])('a lone surrogate %s is replaced, and the text around it stays', (_, happen) => {
    const world = new World();
    happen(world);
    expect(whole(world.entries)).toBe(true);
    expect(JSON.stringify(world.entries)).toMatch(/a\ufffd|\ufffdb/u);
  });

  it("lone surrogates in the names and arguments of a model's calls are replaced", () => {
    const world = new World().posted('hello', { to: ['dev'] });
    const { agent, turnId } = world.callOf('dev');
    const called = { name: 'write\ud83d', arguments: '{"text":"a\udc18"}' };
    const answer = {
      content: null,
      toolCalls: [{ id: 'c\ud83d', type: 'function', function: called }],
    } as const;
    const report = { agent, turnId, duration: 1, requestHash: 'hash', upTo: world.entries.length };
    world.do({ type: 'model-answered', ...report, answer });
    expect(whole(world.entries)).toBe(true);
    expect(
      world.entries.find((entry) => entry.type === 'message' && entry.role === 'assistant'),
    ).toMatchObject({
      tool_calls: [
        {
          id: 'c\ufffd',
          type: 'function',
          function: { name: 'write\ufffd', arguments: '{"text":"a\ufffd"}' },
        },
      ],
    });
  });

  it('whole characters stay unchanged', () => {
    const world = new World().posted('🐘 ü 𝕏');
    expect(world.entries[0]).toMatchObject({ content: '🐘 ü 𝕏' });
  });
});

/** Every text in a value. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return value !== null && typeof value === 'object' ? Object.values(value).flatMap(textsOf) : [];
}
