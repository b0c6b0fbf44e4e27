import { type Message, Role } from '@a2a-js/sdk';
import { describe, expect, it } from 'vitest';
import type { OpenCall } from '../../../src/conversation/index.ts';
import { replyOf } from '../../../src/gateway/a2a/messages.ts';

const call = (id: string, position: number): OpenCall => ({
  place: { index: 2, position },
  turnId: 't',
  agent: 'dev',
  tool: 'shell',
  arguments: '{}',
  approval: { id, mayHaveRun: false },
  question: 'dev wants to call shell',
});
const FIRST = call('first', 0);
const SECOND = call('second', 1);

function message(said: string | object): Message {
  const content =
    typeof said === 'string'
      ? { $case: 'text' as const, value: said }
      : { $case: 'data' as const, value: said };
  return {
    messageId: 'm',
    contextId: 'c',
    taskId: 'c.0',
    role: Role.ROLE_USER,
    parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

describe('an A2A message to a task that waits for approvals', () => {
  it('an A2A message answers the only open approval without naming it', () => {
    expect(replyOf(message('approve'), [FIRST], 1)).toMatchObject({ approvalId: 'first' });
    expect(replyOf(message({ approved: false }), [FIRST], 1)).toMatchObject({ approvalId: 'first' });
  });

  it('an A2A message answers the approval that it names', () => {
    const named = message({ approved: true, approvalId: 'second' });
    expect(replyOf(named, [FIRST, SECOND], 2)).toMatchObject({
      approvalId: 'second',
      body: { answer: 'approve' },
    });
  });

  it('an A2A message that names none of several approvals is refused with their list', () => {
    for (const said of ['approve', { approved: true }]) {
      expect(() => replyOf(message(said), [FIRST, SECOND], 2)).toThrow(
        expect.objectContaining({ code: 'BAD_REQUEST', hint: expect.stringMatching(/first, second/) }),
      );
    }
  });

  it('an A2A message is refused if it names an approval that is not open', () => {
    for (const open of [[FIRST], [FIRST, SECOND]]) {
      expect(() => replyOf(message({ approved: true, approvalId: 'third' }), open, open.length)).toThrow(
        expect.objectContaining({ code: 'BAD_REQUEST', message: expect.stringMatching(/third/) }),
      );
    }
  });

  it('an A2A message must name the second approval of a task, since its sender may have seen only the first', () => {
    const refused = expect.objectContaining({ code: 'BAD_REQUEST', hint: expect.stringMatching(/second/) });
    for (const said of ['approve', 'rerun', 'result 4', { approved: true }, { answer: 'failed' }])
      expect(() => replyOf(message(said), [SECOND], 2)).toThrow(refused);
    expect(replyOf(message('deny'), [SECOND], 2)).toMatchObject({ approvalId: 'second' });
    const named = message({ approved: true, approvalId: 'second' });
    expect(replyOf(named, [SECOND], 2)).toMatchObject({ approvalId: 'second' });
  });
});
