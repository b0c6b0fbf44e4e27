import { describe, expect, it } from 'vitest';
import { askAgents } from '../../../src/client/ask.ts';
import type { FollowEvent } from '../../../src/client/index.ts';
import type { SendRequest } from '../../../src/client/verbs.ts';
import { routedTo } from '../../../src/conversation/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { type Called, PERSON, TeamCore } from '../conversation/team-core.ts';

/** What `ask` makes of a log in which other people ask, too. */
describe('two people ask in one conversation at the same time', () => {
  const delegate = (to: string): Called => ['delegate', { to, request: 'please' }];

  /** The answer to the message with this text, by the log so far. Undefined: `ask` still waits. */
  async function answerTo(core: TeamCore, content: string, workflow?: string) {
    const post = core.entries.find((entry) => entry.type === 'message' && entry.content === content);
    const { index, id } = post ?? expect.unreachable(`no message ${content}`);
    const given = { conversation: 'c', publisher: 'ann', content, ...(workflow && { workflow }) };
    const agents = post ? [...routedTo(post)] : [];
    async function* follow(): AsyncGenerator<FollowEvent> {
      for (const entry of core.entries.slice(index))
        yield { kind: 'entry', entry, isCurrent: entry.index === core.entries.length - 1 };
    }
    const client = {
      post: async () => ({ conversation: 'c', id, index, duplicate: false, agents }),
      request: (async () => ({ agents: {} })) as unknown as SendRequest,
      follow,
    };
    const asked = askAgents(client, given, {}).then(({ content, value }) => ({ content, value }));
    return await asked.catch((error: unknown) => {
      if ((error as { code?: string }).code === 'NATS_DISCONNECTED') return undefined; // the log ended first
      throw error;
    });
  }

  const both = () => new TeamCore().posted('quick', { by: 'ann' }).posted('slow', { by: 'ben', to: ['dev'] });

  it('each gets the answer of the agent that was asked, and waits for no other turn', async () => {
    const core = both();
    core.act('pm', 'Quick.');
    expect(await answerTo(core, 'quick')).toMatchObject({ content: 'Quick.' });
    expect(await answerTo(core, 'slow')).toBeUndefined();
    core.act('dev', 'Slow.');
    expect(await answerTo(core, 'quick')).toMatchObject({ content: 'Quick.' });
    expect(await answerTo(core, 'slow')).toMatchObject({ content: 'Slow.' });
  });

  it('a turn of another message that fails, is stopped or asks a person rejects nothing', async () => {
    for (const ends of [
      (core: TeamCore) => core.fail(core.callOf('dev')),
      (core: TeamCore) =>
        core.do({ type: 'stop', agent: 'dev', by: PERSON }) && core.abort(core.callOf('dev')),
      (core: TeamCore) => core.act('dev', null, ['ask', { question: 'Which?' }]),
    ]) {
      const core = both();
      ends(core);
      expect(await answerTo(core, 'quick')).toBeUndefined();
      core.act('pm', 'Quick.');
      expect(await answerTo(core, 'quick')).toMatchObject({ content: 'Quick.' });
      await expect(answerTo(core, 'slow')).rejects.toMatchObject({ code: /AGENT_(FAILED|STOPPED|ASKS)/ });
    }
  });

  it('an own question to a person rejects while another turn runs', async () => {
    const core = both();
    core.act('pm', null, ['ask', { question: 'Which?' }]);
    await expect(answerTo(core, 'quick')).rejects.toMatchObject(errorWith('AGENT_ASKS', 'Which?', 'post'));
  });

  it('a stop of the agent before it read the message rejects and names the command that continues it', async () => {
    const core = new TeamCore()
      .posted('slow', { by: 'ben' })
      .posted('quick', { by: 'ann', delivery: 'queue' });
    core.do({ type: 'stop', agent: 'pm', by: PERSON });
    core.abort(core.callOf('pm'));
    await expect(answerTo(core, 'quick')).rejects.toMatchObject(
      errorWith('AGENT_STOPPED', 'pm is stopped: it answers after `parley resume c`', 'in the log'),
    );
  });

  it('a message of another person that interrupts the own turn rejects and is named, and one that began the turn is not', async () => {
    const interrupt = { by: 'ben', delivery: 'interrupt', to: ['pm'] } as const;
    const core = new TeamCore().posted('quick', { by: 'ann' }).posted('now', interrupt);
    core.abort(core.callOf('pm'));
    await expect(answerTo(core, 'quick')).rejects.toMatchObject(
      errorWith('AGENT_STOPPED', 'a message of Ben interrupted the turn of pm', 'ask again'),
    );
    expect(await answerTo(core, 'now')).toBeUndefined();
    core.do({ type: 'stop', agent: 'pm', by: PERSON });
    core.abort(core.callOf('pm'));
    await expect(answerTo(core, 'now')).rejects.toMatchObject(
      errorWith('AGENT_STOPPED', 'the turn of pm was stopped'),
    );
  });

  it.each<[string, (core: TeamCore) => void]>([
    ['a handoff', (core) => core.act('pm', null, ['handoff', { to: 'qa', summary: 'yours' }])],
    ['a delegation', (core) => core.act('pm', null, delegate('qa'))],
  ])('%s continues the own answer', async (name, passOn) => {
    const core = both();
    passOn(core);
    core.act('dev', 'Slow.');
    expect(await answerTo(core, 'quick')).toBeUndefined();
    core.act('qa', 'Checked.');
    if (name === 'a delegation') {
      expect(await answerTo(core, 'quick')).toBeUndefined();
      core.act('pm', 'Quick.');
    }
    const content = name === 'a delegation' ? 'Quick.' : 'Checked.';
    expect(await answerTo(core, 'quick')).toMatchObject({ content });
    expect(await answerTo(core, 'slow')).toMatchObject({ content: 'Slow.' });
  });

  it('a branch that ends the own run is its answer: the aborted turns of the other branches reject nothing', async () => {
    const core = new TeamCore({ slugs: ['pm', 'dev', 'qa', 'doc'] });
    const complete = (outcome: string): Called => ['complete_node', { outcome, summary: outcome }];
    core.post('build', { by: 'ann', workflow: 'side' });
    core.act('pm', null, complete('planned'));
    core.act('dev', 'It is dropped.', complete('dropped'));
    expect(await answerTo(core, 'build', 'side')).toBeUndefined();
    core.act('doc', null, complete('described'));
    expect(core.outcomes('doc')).toEqual(['aborted']);
    expect(await answerTo(core, 'build', 'side')).toBeDefined();
  });

  it('each node of the own run, also side by side, continues it', async () => {
    const core = new TeamCore({ slugs: ['pm', 'dev', 'qa', 'doc'] });
    const complete = (outcome: string): Called => ['complete_node', { outcome, summary: outcome }];
    core.post('build', { by: 'ann', workflow: 'side' });
    core.act('pm', null, complete('planned'));
    core.post('slow', { by: 'ben', to: ['pm'] });
    for (const [agent, outcome] of [
      ['dev', 'built'],
      ['doc', 'described'],
      ['qa', 'passed'],
    ] as const) {
      expect(await answerTo(core, 'build', 'side')).toBeUndefined();
      core.act(agent, null, complete(outcome));
    }
    expect(await answerTo(core, 'build', 'side')).toBeDefined();
    expect(await answerTo(core, 'slow')).toBeUndefined();
    core.act('pm', 'Slow.');
    expect(await answerTo(core, 'slow')).toMatchObject({ content: 'Slow.' });
  });
});

it('`ask` follows before it posts, so that no text of a fast model is missed', async () => {
  const order: string[] = [];
  const client = {
    post: async () => {
      order.push('post');
      return { conversation: 'c', id: 'x', index: 0, duplicate: false, agents: ['pm'] };
    },
    request: (async () => ({ agents: {}, length: 0 })) as unknown as SendRequest,
    async *follow(): AsyncGenerator<FollowEvent> {
      order.push('follow');
      yield* [];
    },
  };
  const asked = askAgents(client, { conversation: 'c', publisher: 'ann', content: 'hi' }, {});
  await expect(asked).rejects.toMatchObject({ code: 'NATS_DISCONNECTED' }); // the log ended
  expect(order).toEqual(['follow', 'post']);
});
