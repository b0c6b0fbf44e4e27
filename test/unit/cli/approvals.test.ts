import { expect, it } from 'vitest';
import { fakeDaemon, parley } from './support.ts';

it.each<[string[], object]>([
  [['approve', 'a1'], { answer: 'approve' }],
  [['deny', 'a1', '--reason', 'no'], { answer: 'deny', reason: 'no' }],
  [['resolve', 'a1', '--rerun'], { answer: 'rerun' }],
  [['resolve', 'a1', '--failed'], { answer: 'failed' }],
  [['resolve', 'a1', '--result', '{"n":1}'], { answer: 'result', result: { n: 1 } }],
])('%j answers as the user', async (argv, answer) => {
  const daemon = fakeDaemon({ answer: { accepted: true } });
  expect((await parley(argv, { daemon })).code).toBe(0);
  const body = { approvalId: 'a1', publisher: 'alice', ...answer };
  expect(daemon.requests).toEqual([{ endpoint: 'answer', body }]);
});

it.each([[[]], [['--rerun', '--failed']], [['--result', 'no json']]])(
  'resolve refuses %j before it asks',
  async (options) => {
    const daemon = fakeDaemon({ answer: { accepted: true } });
    expect((await parley(['resolve', 'a1', ...options], { daemon })).code).not.toBe(0);
    expect(daemon.requests).toEqual([]);
  },
);
