import { describe, expect, it } from 'vitest';
import { promptOf } from '../../../src/acp/agents/prompt.ts';
import { AWAY_MARKER } from '../../../src/conversation/index.ts';

const call = (id: string, name: string) => ({ id, function: { name } });
const MESSAGES = [
  { role: 'system', content: 'You are Dev.' },
  { role: 'user', content: 'one' },
  {
    role: 'assistant',
    content: 'I begin',
    tool_calls: [call('c1_0', 'permit_edit'), call('c1_1', 'recall')],
  },
  { role: 'tool', content: 'permitted', tool_call_id: 'c1_0' },
  { role: 'tool', content: 'entry 3', tool_call_id: 'c1_1' },
  { role: 'system', content: `${AWAY_MARKER}\n[PM]: x` },
  { role: 'user', content: 'two' },
];
const texts = (missed: number[] | undefined, isNew: boolean) =>
  promptOf({ messages: MESSAGES, ...(missed && { missed }) }, isNew).map((block) =>
    'text' in block ? block.text : '',
  );

describe('what a session is told', () => {
  it('ACP-PROMPT-1, ACP-PROMPT-3: a session that continues is told what it missed', () => {
    expect(texts([5, 6], false)).toEqual(['two']);
  });

  it('ACP-PROMPT-2: a new session is told everything, its own messages included', () => {
    expect(texts([6], true)).toEqual([
      'You are Dev.',
      'one',
      '[You, earlier]: I begin',
      expect.stringMatching(/asked for a permission.*The answer was: permitted/),
      '[Result of your call recall]: entry 3',
      'two',
    ]);
  });

  it('ACP-PROMPT-4: a permission that was granted while the program was gone is no permission any more', () => {
    expect(texts([3], false)).toEqual([expect.stringMatching(/Ask again if you still want it/)]);
  });

  it('a turn in which nothing is new is continued', () => {
    expect(texts([], false)).toEqual([expect.stringMatching(/^=== CONTINUE ===/)]);
  });
});
