import { describe, expect, it } from 'vitest';
import { auditedOutcomes } from '../../../src/conversation/index.ts';

type Word = 'requested' | 'started' | 'completed';
const TYPES = {
  requested: 'ToolCallRequested',
  started: 'ToolCallStarted',
  completed: 'ToolCallCompleted',
} as const;

/** `a` and `b` are two calls of one entry. `A` is the call of another entry at the position of `a`. */
const PLACES = { a: [3, 0], b: [3, 1], A: [5, 0] } as const;

function record(text: string) {
  const [name, word] = text.split(' ') as [keyof typeof PLACES, Word];
  const [entry, position] = PLACES[name];
  const result = word === 'completed' ? { result: `result of ${name}` } : {};
  return { type: TYPES[word], call: { entry, position }, tool: 'shell', ...result };
}

function outcomes(records: readonly string[], isFinal: boolean): string[] {
  return auditedOutcomes(records.map(record), isFinal).map(({ index, position, content }) => {
    const found = Object.entries(PLACES).find(([, place]) => place[0] === index && place[1] === position);
    return `${found?.[0]}: ${content ?? 'did not run'}`;
  });
}

describe('the outcomes that the audit log proves', () => {
  it.each<[readonly string[], readonly string[]]>([
    [[], []],
    [['a requested'], ['a: did not run']],
    [['a requested', 'a started'], []],
    [['a requested', 'a started', 'a completed'], ['a: result of a']],
    [
      ['a requested', 'a requested'],
      ['a: did not run', 'a: did not run'],
    ],
    [['a requested', 'a started', 'a requested'], []], // Requested again: the first start may have taken effect.
    [['a started'], []],
    [['a completed'], ['a: result of a']],
    [['a requested', 'a completed'], ['a: result of a']], // In a damaged log only the result of the call is known.
    [['a requested', 'b requested', 'a started'], ['b: did not run']],
    [['A requested', 'a requested', 'a started'], ['A: did not run']],
  ])('the final audit log %j proves the outcomes %j', (records, expected) => {
    expect(outcomes(records, true)).toEqual(expected);
    expect(outcomes(records, false)).toEqual(expected.filter((text) => !text.includes('did not run')));
  });
});
