import { describe, expect, it } from 'vitest';
import { candidatesFor, helping, type Model } from '../../../src/agents/index.ts';

const model = (): Model => ({ call: () => Promise.reject(new Error('not called')) });
const [first, second, backup, last] = [model(), model(), model(), model()];
const OWN = {
  profile: { name: 'big' },
  model: { ...first, keys: [first, second] },
  fallbacks: [
    { profile: { name: 'backup' }, model: backup },
    { profile: { name: 'last' }, model: last },
  ],
};
const namesOf = (all: readonly { readonly model: string; readonly key?: number | undefined }[]) =>
  all.map(({ model, key }) => (key === undefined ? model : `${model} ${key}`));

describe('the candidates of a turn', () => {
  const ALL = ['big 2', 'backup', 'last'];
  it.each([
    ['begins with the first key of its own model', null, 'big 1', ALL],
    [
      'continues with the candidate that the log names',
      { model: 'big', key: 2 },
      'big 2',
      ['backup', 'last'],
    ],
    ['continues with a fallback', { model: 'backup' }, 'backup', ['last']],
    ['asks the first key of a model that has lost the named one', { model: 'big', key: 3 }, 'big 1', ALL],
    ['begins again if the configuration has lost the model', { model: 'gone' }, 'big 1', ALL],
  ])('a turn %s', (_, candidate, asked, others) => {
    const found = candidatesFor(OWN, { candidate });
    expect([namesOf([found.asked]), namesOf(found.others)]).toEqual([[asked], others]);
  });

  it.each([
    [
      ['UNAUTHORIZED', 'QUOTA_EXHAUSTED', 'RATE_LIMITED'],
      ['big 2', 'backup', 'last'],
    ],
    [
      ['PROVIDER_ERROR', 'NETWORK_ERROR', 'STREAM_BROKEN', 'TIMEOUT', 'NOT_FOUND', 'CONTEXT_STILL_TOO_LARGE'],
      ['backup', 'last'],
    ],
    [
      ['BAD_REQUEST', 'CONTEXT_TOO_LONG', 'EMPTY_ANSWER', 'TOO_MANY_TOOL_CALLS', 'INTERNAL', 'constructor'],
      [],
    ],
  ])('after %j the candidates %j may help', (codes, expected) => {
    const { asked, others } = candidatesFor(OWN, { candidate: null });
    for (const code of codes) expect(namesOf(helping(code, asked, others))).toEqual(expected);
  });
});
