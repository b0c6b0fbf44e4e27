import { describe, expect, it } from 'vitest';
import { contentOf, type InboxItem, inboxOf } from '../../../src/console/model/list/inbox.ts';
import type { Entry } from '../../../src/conversation/index.ts';

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
      row(
        'f',
        { agent: 'pm', status: 'running', since: at(0) },
        { agent: 'qa', status: 'stopped', since: null },
      ),
      row('g'),
    ]);
    expect(items.map(({ conversation, kind }) => `${conversation} ${kind}`)).toEqual([
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
      tool_calls: [ask('Which?'), ask('How many?')],
    } as unknown as Entry;
    const [first, second] = [0, 1].map((position) =>
      contentOf({ agent: 'pm', position } as InboxItem, entry),
    );
    expect(first?.kind === 'question' && first.question.question).toBe('Which?');
    expect(second?.kind === 'question' && second.question.question).toBe('How many?');
    const limit = { type: 'limit-reached', limit: 'turnSeconds', content: 'It took too long' } as Entry;
    expect(contentOf({ agent: 'pm', position: 0 } as InboxItem, limit)).toEqual({
      kind: 'ended',
      text: 'It took too long',
      code: 'turnSeconds',
    });
    expect(contentOf({ agent: 'pm', position: 0 } as InboxItem, undefined)).toEqual({ kind: 'elsewhere' });
  });
});
