import { describe, expect, it } from 'vitest';
import { Updates } from '../../../src/acp/agents/updates.ts';

const live = { write: () => undefined, think: () => undefined, showCall: () => undefined };
const keepsNone = () => Promise.reject(new Error('no file is expected'));

describe('what a session reports', () => {
  it('ACP-UPDATES-3: of all that is sent for files at most 64 MB wait for the end of the turn, also in calls', async () => {
    const updates = new Updates(live);
    const image = { type: 'image', mimeType: 'image/png', data: 'QUJD'.repeat(3_000_000) } as const;
    const content = [{ type: 'content' as const, content: image }];
    const toolCall = { toolCallId: 'a', title: 'Look', content };
    for (let n = 0; n < 4; n += 1) updates.take({ sessionUpdate: 'agent_message_chunk', content: image });
    updates.take({ sessionUpdate: 'tool_call', ...toolCall });
    updates.take({ sessionUpdate: 'tool_call', ...toolCall, toolCallId: 'b' });
    updates.take({ sessionUpdate: 'agent_message_chunk', content: image });
    let kept = 0;
    const { text, files, calls } = await updates.reported(async ({ length: size }) => {
      kept += 1;
      return { type: 'file', sha256: `${kept}`.padStart(64, '0'), mediaType: 'image/png', size };
    });
    expect([files.length, kept]).toEqual([5, 5]);
    expect(calls[0]?.result).toMatch(/^\[file: image\/png, 9\.0 MB, @blob/);
    const refused = '[file image/png, 9.0 MB: not kept: the answer has too many files]';
    expect([calls[1]?.result, text]).toEqual([refused, refused]);
  });

  it('ACP-UPDATES-2: of a flood of texts at most 16 MB wait for the end of the turn, and the answer says so', async () => {
    const updates = new Updates(live);
    const call = { sessionUpdate: 'tool_call', title: 'Read' } as const;
    const rawInput = { text: 'x'.repeat(4_000_000) };
    for (let n = 0; n < 5; n += 1) updates.take({ ...call, toolCallId: `${n}`, rawInput });
    for (let n = 0; n < 5; n += 1) updates.take({ ...call, toolCallId: '0', status: 'completed', rawInput });
    const content = { type: 'text', text: 'y'.repeat(5_000_000) } as const;
    updates.take({ sessionUpdate: 'agent_message_chunk', content });
    updates.take({ sessionUpdate: 'agent_thought_chunk', content });
    const { text, thoughts, calls } = await updates.reported(keepsNone);
    expect(calls.map(({ title, status }) => `${title} ${status}`)).toEqual([
      'Read completed',
      'Read pending',
      'Read pending',
      '2 more calls unknown',
    ]);
    expect([text, thoughts]).toEqual(['[the agent sent more than 16 MB of text: the rest is left out]', '']);
  });

  it('ACP-UPDATES-6: words before and after a call, of two messages and of two prompts are paragraphs of the answer', async () => {
    const written: string[] = [];
    const updates = new Updates({ ...live, write: (text) => void written.push(text) });
    const say = (text: string, messageId?: string) =>
      updates.take({
        ...{ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
        ...(messageId && { messageId }),
      });
    const call = { toolCallId: 'a', title: 'Read' };
    updates.take({ sessionUpdate: 'tool_call', ...call });
    say('I ');
    say('look.');
    updates.take({ sessionUpdate: 'tool_call', ...call, toolCallId: 'b' });
    updates.take({ sessionUpdate: 'tool_call_update', ...call, status: 'completed' });
    say('## Found', 'm1');
    say(': 3.', 'm1');
    say('More.\n', 'm2');
    updates.endMessage();
    say('Done.');
    const { text } = await updates.reported(keepsNone);
    expect(text).toBe('I look.\n\n## Found: 3.\n\nMore.\n\nDone.');
    expect(written.join('')).toBe(text);
  });

  it('arguments and output that are nested too deeply for JSON are named, and the turn goes on', async () => {
    const updates = new Updates(live);
    const deep = JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`);
    const call = { toolCallId: 'a', title: 'Read', rawInput: deep, rawOutput: deep };
    updates.take({ sessionUpdate: 'tool_call', ...call });
    const { calls } = await updates.reported(keepsNone);
    const named = '"(nested too deeply to be shown)"';
    expect(calls[0]).toMatchObject({ title: 'Read', arguments: named, result: named });
  });

  it('ACP-UPDATES-5: the difference that a permission showed is in the report, also when the result is only text', () => {
    const updates = new Updates(live);
    const diff = { type: 'diff', path: 'a.txt', oldText: '', newText: 'hello' } as const;
    const text = { type: 'content', content: { type: 'text', text: 'Wrote file.' } } as const;
    updates.take({ sessionUpdate: 'tool_call', toolCallId: 'a', title: 'write', kind: 'edit' });
    updates.take({ sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'pending', content: [diff] });
    updates.take({
      sessionUpdate: 'tool_call_update',
      toolCallId: 'a',
      status: 'completed',
      content: [text],
    });
    const [report] = updates.takeEnded();
    expect(report?.result).toMatch(/\+hello[\s\S]*Wrote file\./);
    expect(updates.takeEnded()).toEqual([]); // ACP-UPDATES-4: once
  });
});
