import { describe, expect, it } from 'vitest';
import { agent, ended, entryOf, fakeDaemon, parley, person, posted, started } from './support.ts';

const PENDING = {
  ...{ approvalId: 'ap1', conversation: 'c', agent: 'pm', tool: 'write', arguments: '{"path":"a.txt"}' },
  ...{ risk: 'risky', mayHaveRun: false },
};
const asks = (index: number) =>
  entryOf('approval-requested', index, {
    ...{ approvalId: 'ap1', risk: 'risky', call: { index: index - 1, position: 0 } },
    ...{ agent: 'pm', tool: 'write', arguments: '{"path":"a.txt"}' },
  } as object);
const CALL = {
  id: 'call_0',
  type: 'function' as const,
  function: { name: 'write', arguments: '{"path":"a.txt"}' },
};

describe('chat with piped input, while a call waits for approval', () => {
  it('a piped chat prints the waiting call before its first message, and the command that answers it', async () => {
    const daemon = fakeDaemon({ approvals: { approvals: [PENDING], more: 0 } });
    daemon.say(
      person(0, 'go'),
      started(1, 'pm', [0]),
      agent(2, 'pm', 'I write.', { tool_calls: [CALL] }),
      asks(3),
      ended(4, 'pm', 'waiting'),
    );
    daemon.onPost = (message) => {
      const at = daemon.log.length;
      daemon.say({ ...person(at, message.content), id: message.id ?? '' });
      return posted(message, at, ['pm']);
    };
    const ran = await parley(['chat', 'c'], { daemon, stdin: 'hello?\nanyone?\n' });
    const listed = await parley(['approvals', 'c'], { daemon });
    expect(listed.out).toContain('parley approve ap1');
    expect([ran.code, ran.out, ran.err]).toEqual([0, '', `waiting for a person:\n${listed.out}`]);
  });

  it('a piped chat prints once the command for a call that starts to wait', async () => {
    const daemon = fakeDaemon({ approvals: { approvals: [PENDING], more: 0 } });
    daemon.onPost = (message) => {
      const at = daemon.log.length;
      daemon.say({ ...person(at, message.content), id: message.id ?? '' });
      if (at === 0)
        daemon.say(
          started(1, 'pm', [0]),
          agent(2, 'pm', 'I write.', { tool_calls: [CALL] }),
          asks(3),
          ended(4, 'pm', 'waiting'),
        );
      return posted(message, at, ['pm']);
    };
    const ran = await parley(['chat', 'c'], { daemon, stdin: 'go\nhello?\n' });
    const listed = await parley(['approvals', 'c'], { daemon });
    expect([ran.code, ran.err]).toEqual([0, `waiting for a person:\n${listed.out}`]);
    expect(ran.out).toContain('· approval ap1 is needed (risky): pm wants to call write {"path":"a.txt"}');
  });
});
