import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConversationRow } from '../../../src/console/model/answers.ts';
import { contentOf, type InboxItem, inboxOf, summaryOf } from '../../../src/console/model/list/inbox.ts';
import {
  changedRows,
  newestFirst,
  partsOf,
  sharedTitlesOf,
  shortTitleOf,
} from '../../../src/console/model/list/list.ts';
import { Thread, unreadBy } from '../../../src/console/model/thread/thread.ts';
import type { Entry, MessageEntry } from '../../../src/conversation/index.ts';
import { begin, calling, end, logOf, other, result, say } from './support.ts';

const row = (id: string, ...activity: object[]) =>
  ({ id, title: null, activity }) as Parameters<typeof inboxOf>[0][number];
const at = (minute: number) => `2026-01-01T00:0${minute}:00.000Z`;

describe('what needs a person', () => {
  it('lists decisions, longest first, then failures and limits, newest first, and nothing else', () => {
    const items = inboxOf([
      row('a', { agent: 'pm', status: 'failed', since: at(1), entry: 4 }),
      row('b', { agent: 'pm', status: 'limited', since: at(2), entry: 5 }),
      row('c', { agent: 'pm', status: 'waiting', for: 'question', since: at(9), entry: 6, position: 1 }),
      row('d', { agent: 'pm', status: 'waiting', for: 'outcome', since: at(8), of: 'shell', entry: 7 }),
      row('e', { agent: 'pm', status: 'waiting', for: 'agent', since: at(0), of: 'dev' }),
      row('h', { agent: 'pm', status: 'waiting', for: 'input', since: at(7) }),
      row(
        'f',
        { agent: 'pm', status: 'running', since: at(0) },
        { agent: 'qa', status: 'stopped', since: null },
      ),
      row('g'),
    ]);
    expect(items.map(({ conversation, kind }) => `${conversation} ${kind}`)).toEqual([
      'h input',
      'd outcome',
      'c question',
      'b limited',
      'a failed',
    ]);
  });

  it('a failure after a retry is another item, also of the same agent', () => {
    const failed = (entry: number) =>
      inboxOf([row('a', { agent: 'pm', status: 'failed', since: at(1), entry })]);
    expect(failed(4)[0]?.key).not.toBe(failed(9)[0]?.key);
    expect(failed(4)[0]?.key).toBe(failed(4)[0]?.key);
  });

  it('of two questions in one message, each item shows its own', () => {
    const ask = (question: string) => ({
      ...{ id: 'same', type: 'function' },
      function: { name: 'ask', arguments: JSON.stringify({ question }) },
    });
    const entry = {
      ...{ type: 'message', role: 'assistant', index: 6, content: null },
      tool_calls: [ask('**Which**?'), ask('How many?')],
    } as unknown as Entry;
    const [first, second] = [0, 1].map((position) =>
      contentOf({ agent: 'pm', position } as InboxItem, [entry]),
    );
    expect(first?.kind === 'question' && first.question.question).toBe('**Which**?');
    expect(second?.kind === 'question' && second.question.question).toBe('How many?');
    expect(first && summaryOf(first)).toBe('Which?'); // without the marks of Markdown
    const waiting = {
      ...{ type: 'approval-requested', index: 7, approvalId: 'one', call: { index: 6, position: 0 } },
      ...{ tool: 'shell', arguments: JSON.stringify({ command: 'echo "a"\nrm b\u202e', times: 2 }) },
    } as unknown as Entry;
    const asked = contentOf({ agent: 'pm', position: 0 } as InboxItem, [waiting]);
    expect(summaryOf(asked)).toBe('shell echo "a" rm b\\u202e 2'); // its words, on one line
    const change = { path: '@project/a', find: '1290', replace: '1240' };
    const edit = {
      ...waiting,
      mayHaveRun: true,
      tool: 'fs_edit',
      arguments: JSON.stringify(change),
    } as Entry;
    expect(summaryOf(contentOf({ agent: 'pm', position: 0 } as InboxItem, [edit]))).toBe(
      'fs_edit @project/a 1290 → 1240',
    );
    const limit = { type: 'limit-reached', limit: 'turnSeconds', content: 'It took too long' } as Entry;
    expect(contentOf({ agent: 'pm', position: 0 } as InboxItem, [limit])).toEqual({
      kind: 'ended',
      text: 'It took too long',
      code: 'turnSeconds',
      failed: limit,
      asker: null,
    });
    expect(contentOf({ agent: 'pm', position: 0 } as InboxItem, [])).toEqual({ kind: 'elsewhere' });
  });
});

const listed = (id: string, second: number, title: string | null): ConversationRow => ({
  ...{ id, title, newest: null, archived: false, phase: 'chat', mode: 'chat', activeAgent: null },
  ...{ updatedAt: new Date(second * 1_000).toISOString(), activeAt: new Date(second * 1_000).toISOString() },
  ...{ length: 1, activeLength: 1, tokens: 0, usd: 0, unpricedCalls: 0, agents: [], people: [] },
  ...{ activity: [], running: [], waiting: [], limited: [], stopped: [] },
});

const id = fc.integer({ min: 0, max: 80 }).map(String);
const anyRow = fc
  .tuple(id, fc.integer({ min: 0, max: 9 }), fc.constantFrom(null, 'A', 'B', 'C'))
  .map(([one, second, title]) => listed(one, second, title));
const step = fc.record({
  whole: fc.boolean(),
  changed: fc.oneof(fc.array(anyRow, { maxLength: 4 }), fc.array(anyRow, { minLength: 60, maxLength: 80 })),
  deleted: fc.array(id, { maxLength: 3 }),
});

describe('a run that waits for a message', () => {
  it('shows what its agent said last, and no question of that message, which does not wait any more', () => {
    const [entry] = logOf(calling('pm', 'ask', { question: 'Which?' }));
    const waits = { kind: 'input', agent: 'pm', position: 0, workflow: 'ship' } as InboxItem;
    const asked = { ...entry, content: 'One thing.' } as MessageEntry;
    expect(contentOf(waits, [asked])).toEqual({
      kind: 'elsewhere',
      workflow: 'ship',
      said: 'PM:\n\nOne thing.',
    });
    const person = { ...asked, author: { ...asked.author, id: 'ann', name: 'Ann' } };
    expect(contentOf(waits, [person])).toMatchObject({ said: 'Ann:\n\nOne thing.' });
    expect(contentOf(waits, [])).toEqual({ kind: 'elsewhere', workflow: 'ship' });
  });
});

describe('the rows of the list', () => {
  it('titles that begin alike are not told apart by what a narrow list shows of them', () => {
    const titles = ['Write the config file for shop one', 'Write the config file for shop two', 'Write it'];
    const rows = titles.map((title, n) => listed(`c${n}`, n, title));
    expect([...sharedTitlesOf(rows)]).toEqual(['Write the config file fo']);
  });

  it('titles whose beginnings and ends are the same look the same: their ids tell them apart', () => {
    const titles = ['no. 17', 'no. 24'].map((which) => `Which swing do we repair? ${which}. A citizen asks.`);
    const rows = [...titles, 'Which swing do we repair? A dog asks.'].map((title, n) =>
      listed(`c${n}`, n, title),
    );
    const [same, ...others] = sharedTitlesOf(rows, shortTitleOf);
    expect([others, titles.map((title) => shortTitleOf(title) === same)]).toEqual([[], [true, true]]);
  });

  it.each([
    ['Write the config file for shop one', 'shop one'],
    ['Write the config file for the shop (copy)', '(copy)'],
    ['Was the permit for house 17 granted?', '17 granted?'],
    ['Write the batch of cases, the beg…', undefined],
    ['Write the config file', undefined],
  ])('the title %s has the end %s beside what a narrow list shows of it', (title, end) => {
    expect(partsOf(title)[1]).toBe(end);
  });

  it('any changes give the rows, their order and the shared titles of a rebuild', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        let rows: readonly ConversationRow[] = [];
        const known = new Map<string, ConversationRow>();
        for (const { whole, changed, deleted } of steps) {
          if (whole) known.clear();
          for (const one of changed) known.set(one.id, one);
          if (!whole) for (const one of deleted) known.delete(one);
          rows = changedRows(whole ? [] : rows, changed, whole ? [] : deleted);
          expect(rows).toEqual([...known.values()].sort(newestFirst));
          expect(rows.every((one) => known.get(one.id) === one)).toBe(true);
          const titles = [...known.values()].map(({ title }) => title);
          const shared = ['A', 'B', 'C'].filter((title) => titles.filter((one) => one === title).length > 1);
          expect([...sharedTitlesOf(rows)].sort()).toEqual(shared);
        }
      }),
    );
  });

  it('the newest row is first, and rows of the same time are in the order of their ids', () => {
    const before = changedRows([], [listed('b', 1, null), listed('a', 1, null), listed('c', 2, null)], []);
    expect(before.map((one) => one.id)).toEqual(['c', 'a', 'b']);
    expect(changedRows(before, [listed('b', 3, null)], []).map((one) => one.id)).toEqual(['b', 'c', 'a']);
  });
});

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

  it('waits for nothing that it was shown as the answer to its question', () => {
    const answered = [...waiting('ask'), say('two', { ...toPm, replyTo: 'c2_0' })];
    const thread = new Thread();
    const again = [result(2, 'two', { answers: [4] }), begin('pm'), calling('pm', 'shell')];
    const entries = logOf(...answered, ...again, asksFor({ mayHaveRun: false }), end('pm', 'waiting', 3));
    for (const entry of entries) thread.add(entry);
    expect(unreadBy(thread, entries[4] as MessageEntry, () => false)).toEqual([]);
  });

  it('waits for nothing if it began the turn in which a server asks', () => {
    const asks = { server: 'program', message: 'Which day?', schema: {} };
    const log = [say('one', toPm), begin('pm'), calling('pm', 'book'), asksFor({ mayHaveRun: false, asks })];
    const thread = new Thread();
    const entries = logOf(...log, say('two', toPm));
    for (const entry of entries) thread.add(entry);
    const unread = [0, 4].map((index) => unreadBy(thread, entries[index] as MessageEntry, () => false));
    expect(unread).toEqual([[], [{ agent: 'pm', until: 'question' }]]); // a form is no approval
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
