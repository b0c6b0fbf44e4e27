import { describe, expect, it } from 'vitest';
import { fitOf } from '../../../src/console/model/list/search-query.ts';

describe('the words that find an action or a conversation', () => {
  it.each([
    ['', 'Stop all agents'],
    ['all stop', 'Stop all agents'],
    ['phase exec', 'Phase: execute'],
    ['tmln', 'Timeline'],
    ['what-if', 'What if? what-if'],
    ['LEAD', 'Stop Lena Lead'],
    ['ロード', 'ロードマップ'],
  ])('%j fits %j', (typed, text) => expect(fitOf(typed, text)).toBeGreaterThan(0));

  it.each([
    ['stop none', 'Stop all agents'],
    ['top', 'Theme: dark'],
    ['sk', 'Stop'],
    ['pts', 'Stop'],
  ])('%j does not fit %j', (typed, text) => expect(fitOf(typed, text)).toBe(0));

  it('a whole word fits better than its beginning, and that better than its middle and its letters', () => {
    const texts = ['mode', 'modern', 'commodes', 'mxoxdxe'].map((text) => fitOf('mode', text));
    expect(texts).toEqual([...texts].sort((a, b) => b - a));
    expect(new Set(texts).size).toBe(4);
  });
});
