import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { agent, ended, entryOf, fakeDaemon, parley, person, posted, start, started } from './support.ts';

describe('say --wait', () => {
  it('say --wait prints the second question and its agent if the message answered one of two', async () => {
    const ask = (question: string) => ({
      id: 'call_0',
      type: 'function' as const,
      function: { name: 'ask', arguments: JSON.stringify({ question, options: ['yes', 'no'] }) },
    });
    const daemon = fakeDaemon();
    daemon.say(
      person(0, 'go'),
      started(1, 'pm', [0]),
      agent(2, 'pm', 'Two things.', { tool_calls: [ask('Red?'), ask('Round?')] }),
      ended(3, 'pm', 'waiting'),
    );
    daemon.onPost = (message) => {
      const result = { role: 'tool' as const, call: { index: 2, position: 0 }, answers: [4] };
      daemon.say(person(4, message.content), agent(5, 'pm', message.content, result));
      return posted(message, 4, ['pm']);
    };
    const waits = expect.stringMatching(/^pm waits for your answer: \S+ say c "…" --to pm --wait\n$/);
    expect(await parley(['say', 'c', 'red', '--wait'], { daemon })).toMatchObject({
      code: 0,
      out: '? Round?\n  - yes\n  - no\n',
      err: waits,
    });
  });

  it('say --wait prints once that an agent waits for an answer, while another agent still works', async () => {
    const given = { id: 'call_0', type: 'function' as const };
    const ask = { ...given, function: { name: 'ask', arguments: '{"question":"Red?"}' } };
    const daemon = fakeDaemon();
    daemon.onPost = (message) => {
      daemon.say(person(0, message.content), started(1, 'pm', [0]), started(2, 'dev', [0]));
      daemon.say(agent(3, 'pm', 'One thing.', { tool_calls: [ask] }), ended(4, 'pm', 'waiting'));
      return posted(message, 0, ['pm', 'dev']);
    };
    const stderr = new PassThrough();
    let noted = '';
    stderr.on('data', (text) => {
      noted += text;
    });
    const running = start(['say', 'c', 'go', '--wait'], { daemon, io: { stderr } });
    const note = 'pm waits for your answer: parley say c "…" --to pm --wait\n';
    await expect.poll(() => noted).toContain(note);
    daemon.say(agent(5, 'dev', 'Done.'), ended(6, 'dev'));
    expect(await running.done).toMatchObject({ code: 0, out: expect.stringContaining('Done.') });
    expect(noted.split('waits for your answer')).toHaveLength(2);
  });

  it('say --wait prints a call that needs approval as `parley approvals` does', async () => {
    const call = {
      id: 'call_0',
      type: 'function' as const,
      function: { name: 'write', arguments: '{"path":"a.txt"}' },
    };
    const asked = { approvalId: 'ap1', risk: 'risky', call: { index: 2, position: 0 } } as const;
    const pending = {
      ...asked,
      conversation: 'c',
      agent: 'pm',
      tool: 'write',
      arguments: { path: 'a.txt' },
      mayHaveRun: false,
    };
    const daemon = fakeDaemon({ approvals: { approvals: [pending], more: 0 } });
    daemon.onPost = (message) => {
      const asks = agent(2, 'pm', 'I write.', { tool_calls: [call] });
      const approval = entryOf('approval-requested', 3, asked);
      daemon.say(
        person(0, message.content),
        started(1, 'pm', [0]),
        asks,
        approval,
        ended(4, 'pm', 'waiting'),
      );
      return posted(message, 0, ['pm']);
    };
    const said = await parley(['say', 'c', 'hi', '--wait'], { daemon });
    const listed = await parley(['approvals', 'c'], { daemon });
    expect(listed.out).toContain('pm wants to call write {"path":"a.txt"}');
    expect([said.code, said.out, said.err]).toEqual([
      0,
      'I write.\n',
      `waiting for a person:\n${listed.out}`,
    ]);
  });

  it('say --wait prints a call that already waits for approval before the message, since it blocks the answer', async () => {
    const pending = {
      ...{ approvalId: 'ap1', conversation: 'c', agent: 'pm', tool: 'write', arguments: '{"path":"a.txt"}' },
      ...{ risk: 'risky', mayHaveRun: false },
    };
    const daemon = fakeDaemon({ approvals: { approvals: [pending], more: 0 } });
    daemon.say(person(0, 'go'), started(1, 'pm', [0]), agent(2, 'pm', 'I write.'), ended(3, 'pm', 'waiting'));
    daemon.onPost = (message) => {
      daemon.say(person(4, message.content));
      return posted(message, 4, ['pm']);
    };
    const said = await parley(['say', 'c', 'hello?', '--wait'], { daemon });
    const listed = await parley(['approvals', 'c'], { daemon });
    expect([said.code, said.out, said.err]).toEqual([0, '', `waiting for a person:\n${listed.out}`]);
  });
});
