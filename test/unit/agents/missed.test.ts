import { describe, expect, it } from 'vitest';
import { missedBy } from '../../../src/agents/requests/requests.ts';
import type { Entry } from '../../../src/conversation/index.ts';

const SESSION = { id: 's1', by: 'agent', from: 3 } as const;

function answer(index: number, upTo: number, sessionId?: string): Entry {
  const author = { kind: 'agent', id: 'dev', name: 'Dev' } as const;
  return {
    ...{
      index,
      id: `e${index}`,
      createdAt: '',
      type: 'message',
      role: 'assistant',
      author,
      content: 'done',
      upTo,
    },
    ...(sessionId && { sessionId }),
  } as Entry;
}

type Part = Parameters<typeof missedBy>[3][number];
function part(kind: Part['kind'], entries: number[], role: Part['message']['role'] = 'user'): Part {
  return { kind, entries, message: { role, content: 'x' } };
}

const REQUEST = [
  part('prefix', [], 'system'),
  part('history', [0]),
  part('history', [3], 'assistant'),
  part('history', [5]),
  part('away-block', [5], 'system'),
  part('marker', [], 'system'),
  part('trigger', [7]),
];

describe('the messages that a session has not been told', () => {
  it('are unknown without a session, or if it never answered: it is told everything', () => {
    expect(missedBy(null, 'dev', [answer(3, 1, 's1')], REQUEST)).toBeUndefined();
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 'other'), answer(4, 1)], REQUEST)).toBeUndefined();
  });

  it('MISSED-1: are those after the request that it answered last, without the block that repeats them', () => {
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1')], REQUEST)).toEqual([3, 5, 6]);
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1'), answer(6, 6, 's1')], REQUEST)).toEqual([5, 6]);
  });

  it('MISSED-1: are told again after a failure: the program may not have had them', () => {
    const failure = { ...answer(6, 6, 's1'), partType: 'error' } as Entry;
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1'), failure], REQUEST)).toEqual([3, 5, 6]);
  });

  it('are none if only the marker is new: the turn continues', () => {
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1'), answer(8, 8, 's1')], REQUEST)).toEqual([]);
  });

  it('MISSED-2: results of calls are new after the newest answer, and told before it', () => {
    const parts = [...REQUEST, part('turn', [8], 'assistant'), part('turn', [9], 'tool')];
    expect(missedBy(SESSION, 'dev', [answer(8, 8, 's1')], parts)).toEqual([5, 8]);
    expect(missedBy(SESSION, 'dev', [answer(10, 8, 's1')], parts)).toEqual([]);
  });
});
