import { describe, expect, it } from 'vitest';
import { Thread, unreadBy } from '../../../src/console/model/thread/thread.ts';
import type { MessageEntry } from '../../../src/conversation/index.ts';
import { begin, calling, end, logOf, other, result, say } from './support.ts';

type Draft = ReturnType<typeof say>;

/** The last entry is the message. */
function unreadIn(log: readonly Draft[], lacksProgram = false) {
  const thread = new Thread();
  const entries = logOf(...log);
  for (const entry of entries) thread.add(entry);
  return unreadBy(thread, entries.at(-1) as MessageEntry, () => lacksProgram);
}

const toPm = { to: ['pm'] };
const asksFor = (more: object) =>
  other('approval-requested', { approvalId: 'a', call: { index: 2, position: 0 }, risk: 'risky', ...more });
const waiting = (tool: string, ...asked: readonly Draft[]): readonly Draft[] => [
  say('one', toPm),
  begin('pm'),
  calling('pm', tool),
  ...asked,
  end('pm', 'waiting', 3),
];

describe('a message that an agent reads later', () => {
  it.each([
    ['approval', 'shell', [asksFor({ mayHaveRun: false })]],
    ['outcome', 'shell', [asksFor({ mayHaveRun: true })]],
    ['question', 'ask', []],
    ['agent', 'delegate', []],
  ] as const)('waits for the %s', (until, tool, asked) => {
    expect(unreadIn([...waiting(tool, ...asked), say('two', toPm)])).toEqual([{ agent: 'pm', until }]);
  });

  it('waits for the program of an agent that is not connected', () => {
    const log = [say('one', toPm), begin('pm'), say('two', toPm)];
    expect(unreadIn(log, true)).toEqual([{ agent: 'pm', until: 'program' }]);
    expect(unreadIn(log)).toEqual([]);
  });

  it('waits for nothing if the agent works, has read it, or is stopped, or if it is of an agent or for another one', () => {
    const asked = waiting('shell', asksFor({ mayHaveRun: false }));
    expect(unreadIn([...asked, begin('pm', { resumed: true }), say('two', toPm)])).toEqual([]);
    expect(unreadIn([...waiting('shell').slice(0, 4), end('pm', 'waiting', 9), say('two', toPm)])).toEqual(
      [],
    );
    const stop = other('agent-stopped', { agent: 'pm', by: 'alice' });
    expect(unreadIn([...asked, stop, say('two', toPm)])).toEqual([]);
    expect(unreadIn([...asked, result(2, 'done', toPm)])).toEqual([]);
    expect(unreadIn([...asked, say('two', { to: ['dev'] })])).toEqual([]);
    expect(unreadIn([...asked, say('two')])).toEqual([]);
  });
});
