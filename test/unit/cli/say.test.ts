import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type Entry, type FollowEvent, ParleyError } from '../../../src/client/index.ts';
import { toolCall } from '../../support/log.ts';
import {
  agent,
  chunk,
  ended,
  entryOf,
  fakeDaemon,
  parley,
  person,
  posted,
  replying,
  start,
  started,
  turn,
} from './support.ts';

describe('say', () => {
  it('say posts the text with the requested options', async () => {
    const daemon = fakeDaemon();
    const options = '--id x --delivery queue'.split(' ');
    const argv = ['say', 'c', 'two', 'words', '--to', 'pm, dev', '--as', 'Zoë B', ...options];
    expect((await parley(argv, { daemon })).code).toBe(0);
    const address = { conversation: 'c', publisher: 'alice', author: { name: 'Zoë B' }, to: ['pm', 'dev'] };
    expect(daemon.posts).toEqual([{ ...address, content: 'two words', id: 'x', delivery: 'queue' }]);
  });

  it('say prints where the message was appended', async () => {
    const daemon = fakeDaemon();
    const printed = async (...argv: string[]) => (await parley(['say', 'c', ...argv], { daemon })).out;
    daemon.onPost = (message) => posted(message, 4, ['pm', 'dev'], true);
    expect(await printed('hi')).toBe('c 4: had been posted before, for pm, dev (id made)\n');
    daemon.onPost = (message) => posted(message, 5, []);
    expect(await printed('hi')).toBe('c 5: posted, no agent answers (id made)\n');
    const answer = { conversation: 'c', id: 'made', index: 5, duplicate: false, agents: [] };
    expect(JSON.parse(await printed('hi', '--json'))).toEqual(answer);
    daemon.onPost = (message) => ({ ...posted(message, 5, ['pm']), unknownMentions: ['dve', 'q-a'] });
    expect(await printed('@dve')).toBe('c 5: posted, for pm (id made); there is no agent @dve, @q-a\n');
  });

  it('say --session names a session, and prints that it has no effect if the daemon ignored it', async () => {
    const daemon = fakeDaemon();
    const said = await parley(['say', 'c', 'hi', '--session', 's1'], { daemon });
    expect(daemon.posts).toMatchObject([{ sessionId: 's1' }]);
    expect(said.err).toBe('');
    daemon.onPost = (message) => ({ ...posted(message, 5, []), ignored: ['sessionId'] });
    const ignored = await parley(['say', 'c', 'hi', '--session', 's1'], { daemon });
    expect([ignored.code, ignored.err]).toEqual([
      0,
      expect.stringMatching(/^parley: sessionId has no effect.*--operator.*publishers\.NAME\.sessions/),
    ]);
  });

  it('say reads a long text from stdin', async () => {
    const daemon = fakeDaemon();
    await parley(['say', 'c', '-'], { daemon, stdin: 'one\ntwo é\n' });
    expect(daemon.posts).toMatchObject([{ content: 'one\ntwo é' }]);
  });

  it('say keeps a character whole that arrives in two pieces', async () => {
    const daemon = fakeDaemon();
    const bytes = Buffer.from('é');
    const stdin = Readable.from([bytes.subarray(0, 1), bytes.subarray(1)]);
    await parley(['say', 'c', '-'], { daemon, io: { stdin } });
    expect(daemon.posts).toMatchObject([{ content: 'é' }]);
  });

  it('say refuses bytes on stdin that are not UTF-8, and posts nothing', async () => {
    const daemon = fakeDaemon();
    const stdin = Readable.from([Buffer.from([0x63, 0x61, 0x66, 0xe9])]);
    const { code, err } = await parley(['say', 'c', '-'], { daemon, io: { stdin } });
    expect(code).toBe(2);
    expect(err).toContain('the text on stdin is not UTF-8');
    expect(daemon.posts).toEqual([]);
  });

  it('say accepts a text that begins with dashes after --', async () => {
    const daemon = fakeDaemon();
    await parley(['say', 'c', '--', '--json'], { daemon });
    expect(daemon.posts).toMatchObject([{ content: '--json' }]);
  });
});

/** A daemon with one entry that answers a post at index 1 with these. */
const answering = (agents: string[], ...events: readonly (Entry | FollowEvent)[]) =>
  replying(() => events, { agents, before: [person(0, 'before')] });
const WAITS = expect.stringMatching(/^pm waits for your answer: \S+ say c "…" --to pm --wait\n$/);

describe('say --wait', () => {
  it('say --wait streams the answer and returns when its turn has ended', async () => {
    const daemon = answering(
      ['pm'],
      started(2, 'pm', [1]),
      chunk('pm', 0, 'Hel'),
      chunk('pm', 1, 'lo'),
      agent(3, 'pm', 'Hello'),
      ended(4, 'pm'),
      person(5, 'later'),
    );
    const ran = await parley(['say', 'c', 'hi', '--wait'], { daemon });
    expect(ran).toMatchObject({ code: 0, out: 'Hello\n', err: '' });
    expect(daemon.closed).toBe(1);
  });

  const LATE = [started(2, 'pm', [1]), chunk('pm', 3, 'lo'), agent(3, 'pm', 'Hello'), ended(4, 'pm')];
  const BOTH = [started(2, 'pm', [1]), ...turn(3, 'dev', 1, 'B'), agent(6, 'pm', 'A'), ended(7, 'pm')];
  const HANDED = [
    ...[started(2, 'pm', [1]), agent(3, 'pm', 'Dev does that.')],
    ...[entryOf('handoff', 4, { from: 'pm', to: 'dev', summary: 's' }), ended(5, 'pm')],
    ...turn(6, 'dev', 4, 'Done.'),
  ];
  it.each([
    ['prints the whole answer if the live feed was lost', ['pm'], LATE, 'Hello\n'],
    ['names the agents if several answer', ['pm', 'dev'], BOTH, '[dev] B\n[pm] A\n'],
    ['waits through a handoff and names the next agent', ['pm'], HANDED, 'Dev does that.\n[dev] Done.\n'],
    ['returns at once if no agent answers', [], [], ''],
  ])('say --wait %s', async (_, agents, events, out) => {
    const ran = await parley(['say', 'c', 'hi', '--wait'], { daemon: answering(agents, ...events) });
    expect(ran).toMatchObject({ code: 0, out });
  });

  it('say --wait --json prints each entry from the message on', async () => {
    const daemon = answering(['pm'], chunk('pm', 0, 'A'), ...turn(2, 'pm', 1, 'A'));
    const ran = await parley(['say', 'c', 'hi', '--wait', '--json'], { daemon });
    expect(ran.json()).toEqual(daemon.log.slice(1));
  });

  it('say --wait prints the answer again if the id was posted before', async () => {
    const daemon = fakeDaemon();
    daemon.say(person(0, 'hi'), ...turn(1, 'pm', 0, 'Hello'), person(4, 'x'));
    daemon.onPost = (message) => posted(message, 0, ['pm'], true);
    expect((await parley(['say', 'c', 'hi', '--id', 'x', '--wait'], { daemon })).out).toBe('Hello\n');
  });

  it.each([
    ['failed', 1],
    ['limited', 1],
    ['aborted', 0],
  ] as const)('say --wait exits after a turn that is %s with %i', async (outcome, code) => {
    const content = 'Half\n\nLLM_ERROR {"code":"TIMEOUT","message":"too late"}';
    const words =
      outcome === 'failed' ? agent(3, 'pm', content, { partType: 'error' }) : agent(3, 'pm', 'Half');
    const daemon = answering(['pm'], started(2, 'pm', [1]), words, ended(4, 'pm', outcome));
    const ran = await parley(['say', 'c', 'hi', '--wait'], { daemon });
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(outcome);
    expect(ran.out).toBe(outcome === 'failed' ? 'Half\n✗ TIMEOUT: too late\n' : 'Half\n');
  });

  it('say --wait does not wait for a stopped agent', async () => {
    const conversation = { length: 1, agents: { pm: { status: 'stopped' } } };
    const daemon = replying(() => [], { answers: { conversation }, before: [person(0, 'before')] });
    const ran = await parley(['say', 'c', 'hi', '--wait'], { daemon });
    expect([ran.code, ran.err]).toEqual([0, expect.stringContaining('parley resume c')]);
  });

  it('say --wait prints the question of a turn that waits for a person, explains how to answer, and returns', async () => {
    const call = toolCall('ask', '{"question":"Which colour?","options":["red","blue"]}', 'call_0');
    const asks = agent(3, 'pm', 'One thing.', { tool_calls: [call] });
    const daemon = answering(['pm'], started(2, 'pm', [1]), asks, ended(4, 'pm', 'waiting'));
    expect(await parley(['say', 'c', 'hi', '--wait'], { daemon })).toMatchObject({
      code: 0,
      out: 'One thing.\n? Which colour?\n  - red\n  - blue\n',
      err: WAITS,
    });
  });

  it('say --wait waits for an agent that continues, even if another one has ended', async () => {
    const before = [person(0, 'go'), started(1, 'dev', [0])];
    const daemon = replying(() => [], { before });
    const { onPost } = daemon;
    daemon.onPost = (message) => {
      setTimeout(() => daemon.say(ended(3, 'dev'), ...turn(4, 'pm', 2, 'Here.')));
      return onPost(message);
    };
    expect((await parley(['say', 'c', 'hi', '--wait'], { daemon })).out).toContain('Here.');
  });

  it('say --wait ends on a signal and reports that the message is posted', async () => {
    const daemon = answering(['pm'], started(2, 'pm', [1]), chunk('pm', 0, 'Hel'));
    const running = start(['say', 'c', 'hi', '--wait'], { daemon });
    await expect.poll(running.output).toBe('Hel');
    running.signal('SIGINT');
    expect(await running.done).toMatchObject({
      code: 1,
      out: 'Hel\n',
      err: expect.stringContaining('stays posted'),
    });
    expect([running.listeners(), daemon.closed]).toEqual([0, 1]);
  });

  it.each(['conversation', 'post'])(
    'say --wait that is left while %s has no answer says that the message may not be posted',
    async (verb) => {
      const never = new Promise<never>(() => {});
      const daemon = fakeDaemon(verb === 'conversation' ? { conversation: () => never } : {});
      const { post } = daemon.client;
      const asked: AbortSignal[] = [];
      daemon.client.post = async (message, { signal } = {}) => {
        if (verb !== 'post' || !signal) return post(message);
        asked.push(signal);
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      };
      const running = start(['say', 'c', 'hi', '--wait'], { daemon });
      await expect.poll(() => daemon.requests.length + asked.length).toBe(verb === 'post' ? 2 : 1);
      running.signal('SIGINT');
      expect(await running.done).toMatchObject({
        code: 1,
        err: expect.stringContaining('may not be posted'),
      });
      expect(daemon.posts).toEqual([]);
    },
  );

  it('say fails if the post is refused, and leaves no subscription open', async () => {
    const daemon = answering([]);
    daemon.onPost = () => {
      throw new ParleyError('UNKNOWN_AGENT', 'no agent ghost');
    };
    const running = start(['say', 'c', 'hi', '--to', 'ghost', '--wait'], { daemon });
    expect(await running.done).toMatchObject({ code: 1, err: 'parley: no agent ghost\n' });
    expect([running.listeners(), daemon.closed]).toEqual([0, 1]);
  });
});

describe('tail', () => {
  it('tail follows until a signal, with live text', async () => {
    const daemon = fakeDaemon();
    for (let index = 0; index < 12; index++) daemon.say(person(index, `m${index}`));
    const running = start(['tail', 'c'], { daemon });
    await expect.poll(running.output).toContain('m11');
    daemon.say(chunk('pm', 0, 'Hel'));
    await expect.poll(running.output).toContain('pm: Hel');
    daemon.say(agent(12, 'pm', 'Hello'));
    await expect.poll(running.output).toContain('pm: Hello\n');
    running.signal('SIGTERM');
    const { code, out } = await running.done;
    expect(code).toBe(0);
    expect(out.startsWith('Alice: m2\n')).toBe(true);
  });

  it('tail --json prints entries and chunks as values', async () => {
    const daemon = fakeDaemon();
    const running = start(['tail', 'c', '--from', '0', '--json'], { daemon });
    await expect.poll(running.listeners).toBe(1);
    daemon.say(person(0, 'x'));
    await expect.poll(running.output).toContain('"x"');
    daemon.say(chunk('pm', 0, 'Hel'));
    await expect.poll(running.output).toContain('Hel');
    running.signal('SIGINT');
    expect((await running.done).json()).toEqual([
      daemon.log[0],
      { live: { agent: 'pm', turnId: 't-pm', call: 'c-pm', n: 0, type: 'text', delta: 'Hel' } },
    ]);
  });
});

describe('say --wait', () => {
  it('say --wait prints the second question and its agent if the message answered one of two', async () => {
    const ask = (question: string) =>
      toolCall('ask', JSON.stringify({ question, options: ['yes', 'no'] }), 'call_0');
    const asks = agent(2, 'pm', 'Two things.', { tool_calls: [ask('Red?'), ask('Round?')] });
    const before = [person(0, 'go'), started(1, 'pm', [0]), asks, ended(3, 'pm', 'waiting')];
    const result = { role: 'tool' as const, call: { index: 2, position: 0 }, answers: [4] };
    const daemon = replying((_, { content }) => [agent(5, 'pm', content, result)], { before });
    expect(await parley(['say', 'c', 'red', '--wait'], { daemon })).toMatchObject({
      code: 0,
      out: '? Round?\n  - yes\n  - no\n',
      err: WAITS,
    });
  });

  it('say --wait prints once that an agent waits for an answer, while another agent still works', async () => {
    const asks = agent(3, 'pm', 'One thing.', {
      tool_calls: [toolCall('ask', '{"question":"Red?"}', 'call_0')],
    });
    const begun = [started(1, 'pm', [0]), started(2, 'dev', [0]), asks, ended(4, 'pm', 'waiting')];
    const daemon = replying(() => begun, { agents: ['pm', 'dev'] });
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

  const pending = {
    ...{ approvalId: 'ap1', conversation: 'c', agent: 'pm', tool: 'write', arguments: '{"path":"a.txt"}' },
    ...{ risk: 'risky', mayHaveRun: false },
  };
  const answers = { approvals: { approvals: [pending], more: 0 } };

  it('say --wait prints a call that needs approval as `parley approvals` does', async () => {
    const asks = agent(2, 'pm', 'I write.', {
      tool_calls: [toolCall('write', '{"path":"a.txt"}', 'call_0')],
    });
    const asked = { approvalId: 'ap1', risk: 'risky', call: { index: 2, position: 0 } } as const;
    const approval = entryOf('approval-requested', 3, asked);
    const daemon = replying(() => [started(1, 'pm', [0]), asks, approval, ended(4, 'pm', 'waiting')], {
      answers,
    });
    const said = await parley(['say', 'c', 'hi', '--wait'], { daemon });
    const listed = await parley(['approvals', 'c'], { daemon });
    expect(listed.out).toContain('pm wants to call write {"path":"a.txt"}');
    expect(said).toMatchObject({ code: 0, out: 'I write.\n', err: `waiting for a person:\n${listed.out}` });
  });

  it('say --wait prints a call that already waits for approval before the message, since it blocks the answer', async () => {
    const before = [
      person(0, 'go'),
      started(1, 'pm', [0]),
      agent(2, 'pm', 'I write.'),
      ended(3, 'pm', 'waiting'),
    ];
    const daemon = replying(() => [], { answers, before });
    const said = await parley(['say', 'c', 'hello?', '--wait'], { daemon });
    const listed = await parley(['approvals', 'c'], { daemon });
    expect(said).toMatchObject({ code: 0, out: '', err: `waiting for a person:\n${listed.out}` });
  });
});

function failing() {
  const failure = 'LLM_ERROR {"code":"CONTENT_FILTERED","message":"no text"}';
  const fields = { partType: 'error', finishReason: 'content_filter' } as const;
  return replying(() => [started(1, 'pm', [0]), agent(2, 'pm', failure, fields), ended(3, 'pm', 'failed')]);
}

const ONCE = /^parley: the turn of pm ended failed: CONTENT_FILTERED: .*: ask in other words\.\n$/;

it('`say --wait` prints the failure of an answer that was cut before any text once, on stderr', async () => {
  const ran = await parley(['say', 'c', 'hi', '--wait'], { daemon: failing() });
  expect(ran).toMatchObject({ code: 1, out: '', err: expect.stringMatching(ONCE) });
});

it('`say --wait --json` prints the entry of an answer that was cut', async () => {
  const ran = await parley(['say', 'c', 'hi', '--wait', '--json'], { daemon: failing() });
  expect(ran).toMatchObject({ code: 1, err: expect.stringMatching(ONCE) });
  expect(ran.json()).toContainEqual(expect.objectContaining({ finishReason: 'content_filter' }));
});

function limitedBy(limit: string) {
  const fields = { limit, agent: 'pm', turnId: 't-pm', content: 'the turn took too long' };
  return replying(() => [
    started(1, 'pm', [0]),
    entryOf('limit-reached', 2, fields),
    ended(3, 'pm', 'limited'),
  ]);
}

it('`say --wait` reports which limit ended a turn, and how to continue', async () => {
  const ran = await parley(['say', 'c', 'hi', '--wait'], { daemon: limitedBy('turnSeconds') });
  expect(ran.code).toBe(1);
  expect(ran.err).toMatch(
    /^parley: limit turnSeconds reached: the turn took too long\nparley: .* limited; `\S+ resume c` begins another\n$/,
  );
});

it.each(['tokensPerConversation', 'usdPerConversation'])(
  '`say --wait` advises to raise %s before the conversation is resumed',
  async (name) => {
    const ran = await parley(['say', 'c', 'hi', '--wait'], { daemon: limitedBy(name) });
    expect(ran.code).toBe(1);
    expect(ran.err).toMatch(
      new RegExp(
        ` limited; raise limits\\.${name} in parley\\.yaml, then \`\\S+ reload\` and \`\\S+ resume c\`\\n$`,
      ),
    );
    expect(ran.err).not.toContain('begins another');
  },
);
