import { describe, expect, it } from 'vitest';
import { INTENTS, intentText, persona, replyTo } from '../../chaos/scenario.ts';

const system = { role: 'system', content: persona('pm') };
const asked = (wish: (typeof INTENTS)[number]) =>
  replyTo([system, { role: 'user', content: intentText('ann', 3, wish) }]);
const names = (wish: (typeof INTENTS)[number]) => asked(wish).calls.map(({ name }) => name);

describe('the model of a chaos run', () => {
  it('the model of a chaos run calls the tools that it is asked to call', () => {
    expect(names('look')).toEqual(['mcp__world__look']);
    expect(names('write')).toEqual(['mcp__world__write']);
    expect(names('both')).toEqual(['mcp__world__look', 'mcp__world__look', 'mcp__world__write']);
    expect(asked('delegate').calls).toMatchObject([{ name: 'delegate', arguments: { to: 'dev' } }]);
    expect(asked('handoff').calls).toMatchObject([{ name: 'handoff', arguments: { to: 'dev' } }]);
    expect(asked('talk')).toEqual({ text: expect.stringContaining('ann says 3'), calls: [] });
  });

  it('the model of a chaos run comments on results and other agents, so that every chain ends', () => {
    for (const wish of INTENTS) {
      const content = intentText('ann', 3, wish);
      for (const role of ['tool', 'system']) expect(replyTo([system, { role, content }]).calls).toEqual([]);
    }
  });
});
