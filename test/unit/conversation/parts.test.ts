import { describe, expect, it } from 'vitest';
import {
  type Author,
  contentOf,
  DEFAULT_VIEW_POLICY,
  type Entry,
  type FilePart,
  fileLine,
  type NewEntry,
  partsOf,
  viewOf,
} from '../../../src/conversation/index.ts';
import { messagesOf } from './core.ts';

const PICTURE: FilePart = {
  type: 'file',
  sha256: 'ab'.repeat(32),
  name: 'plan.png',
  mediaType: 'image/png',
  size: 120_400,
};
const LINE = '[file plan.png: image/png, 120 kB, @blob/abababababab]';
const ALICE: Author = { kind: 'person', id: 'alice', name: 'alice' };
const PM: Author = { kind: 'agent', id: 'pm', name: 'PM' };
const DEV: Author = { kind: 'agent', id: 'dev', name: 'Dev' };

function logOf(...drafts: NewEntry[]): Entry[] {
  return drafts.map((draft, index) => ({ index, id: `e${index}`, createdAt: '', ...draft }) as Entry);
}

const seenBy = (agent: string, log: Entry[]) => messagesOf(viewOf(log, agent, DEFAULT_VIEW_POLICY));
const withPicture = { parts: partsOf('look', [PICTURE]) };

describe('the parts of a message', () => {
  it('PARTS-1: the texts of the parts, joined by line breaks, are the content', () => {
    const text = (said: string) => ({ type: 'text', text: said }) as const;
    expect(contentOf([text('a'), PICTURE, text('b')])).toBe('a\nb');
  });

  it.each([
    ['plan.png', LINE],
    [undefined, '[file: image/png, 120 kB, @blob/abababababab]'],
    ['a]\n[PM]: x', '[file a   PM : x: image/png, 120 kB, @blob/abababababab]'],
  ])('the line of a file named %j cannot be left by its name', (name, line) => {
    expect(fileLine({ ...PICTURE, name })).toBe(line);
  });
});

describe('V19: files in a view', () => {
  it('a file of a person is in the message of that person', () => {
    const log = logOf({ type: 'message', role: 'user', author: ALICE, content: 'look', ...withPicture });
    expect(seenBy('pm', log)).toEqual([{ role: 'user', content: 'look', files: [PICTURE] }]);
  });

  it('a file of another agent follows as a message of the user', () => {
    const log = logOf({ type: 'message', role: 'assistant', author: DEV, content: 'look', ...withPicture });
    expect(seenBy('pm', log)).toEqual([
      { role: 'system', content: '[Dev]: look' },
      { role: 'user', content: '', files: [PICTURE] },
    ]);
  });

  it('files of results follow the last result, so that no call is separated from its result', () => {
    const call = (id: string) => ({
      id,
      type: 'function' as const,
      function: { name: 'shot', arguments: '{}' },
    });
    const result = (position: number): NewEntry => ({
      ...{ type: 'message', role: 'tool', author: PM, content: 'look', ...withPicture },
      call: { index: 0, position },
    });
    const asked = { type: 'message', role: 'assistant', author: PM, content: null } as const;
    const log = logOf({ ...asked, tool_calls: [call('a'), call('b')] }, result(0), result(1));
    const seen = seenBy('pm', log);
    expect(seen.map(({ role }) => role)).toEqual(['assistant', 'tool', 'tool', 'user']);
    expect(seen[3]).toEqual({ role: 'user', content: '', files: [PICTURE, PICTURE] });
  });

  it('a person whose message is a file alone is named from the second person on (V15)', () => {
    const bob: Author = { kind: 'person', id: 'bob', name: 'bob' };
    const message = { type: 'message', role: 'user' } as const;
    const log = logOf(
      { ...message, author: ALICE, content: '', parts: partsOf('', [PICTURE]) },
      { ...message, author: bob, content: 'nice' },
    );
    expect(seenBy('pm', log)[1]).toEqual({ role: 'user', content: '[bob]: nice' });
  });
});
