import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { ParleyError } from '../../../src/client/index.ts';
import {
  agent,
  chunk,
  ended,
  entryOf,
  fakeDaemon,
  parley,
  person,
  posted,
  start,
  started,
} from './support.ts';

describe('say', () => {
  it('posts what was said with what was asked for', async () => {
    const daemon = fakeDaemon();
    const argv = [
      'say',
      'c',
      'two',
      'words',
      '--to',
      'pm, dev',
      '--id',
      'x',
      '--as',
      'Zoë B',
      '--delivery',
      'queue',
    ];
    expect((await parley(argv, { daemon })).code).toBe(0);
    expect(daemon.posts).toEqual([
      {
        conversation: 'c',
        content: 'two words',
        publisher: 'alice',
        author: { name: 'Zoë B' },
        to: ['pm', 'dev'],
        id: 'x',
        delivery: 'queue',
      },
    ]);
  });

  it('tells where the message went', async () => {
    const daemon = fakeDaemon();
    daemon.onPost = (message) => posted(message, 4, ['pm', 'dev'], true);
    expect((await parley(['say', 'c', 'hi'], { daemon })).out).toBe(
      'c 4: had been posted before, for pm, dev (id made)\n',
    );
    daemon.onPost = (message) => posted(message, 5, []);
    expect((await parley(['say', 'c', 'hi'], { daemon })).out).toBe(
      'c 5: posted, nobody answers (id made)\n',
    );
    const answer = { conversation: 'c', id: 'made', index: 5, duplicate: false, agents: [] };
    expect((await parley(['say', 'c', 'hi', '--json'], { daemon })).json()).toEqual([answer]);
  });

  it('reads a long text from stdin', async () => {
    const daemon = fakeDaemon();
    await parley(['say', 'c', '-'], { daemon, stdin: 'one\ntwo é\n' });
    expect(daemon.posts).toMatchObject([{ content: 'one\ntwo é' }]);
  });

  it('keeps a character whole that arrives in two pieces', async () => {
    const daemon = fakeDaemon();
    const bytes = Buffer.from('é');
    const stdin = Readable.from([bytes.subarray(0, 1), bytes.subarray(1)]);
    await parley(['say', 'c', '-'], { daemon, io: { stdin } });
    expect(daemon.posts).toMatchObject([{ content: 'é' }]);
  });

  it('refuses bytes on stdin that are not UTF-8, and posts nothing', async () => {
    const daemon = fakeDaemon();
    const stdin = Readable.from([Buffer.from([0x63, 0x61, 0x66, 0xe9])]);
    const { code, err } = await parley(['say', 'c', '-'], { daemon, io: { stdin } });
    expect(code).toBe(2);
    expect(err).toContain('the text on stdin is not UTF-8');
    expect(daemon.posts).toEqual([]);
  });

  it('takes a text that begins with dashes after --', async () => {
    const daemon = fakeDaemon();
    await parley(['say', 'c', '--', '--json'], { daemon });
    expect(daemon.posts).toMatchObject([{ content: '--json' }]);
  });
});

/** A daemon that has one entry already and answers a post at index 1 with these. */
function answering(agents: string[], ...events: Parameters<ReturnType<typeof fakeDaemon>['say']>) {
  const daemon = fakeDaemon();
  daemon.say(person(0, 'before'));
  daemon.onPost = (message) => {
    daemon.say(person(1, message.content), ...events);
    return posted(message, 1, agents);
  };
  return daemon;
}

describe('say --wait', () => {
  it('streams the answer and returns when its turn has ended', async () => {
    const daemon = answering(
      ['pm'],
      started(2, 'pm', [1]),
      chunk('pm', 0, 'Hel'),
      chunk('pm', 1, 'lo'),
      agent(3, 'pm', 'Hello'),
      ended(4, 'pm'),
      person(5, 'later'),
    );
    expect(await parley(['say', 'c', 'hi', '--wait'], { daemon })).toMatchObject({
      code: 0,
      out: 'Hello\n',
      err: '',
    });
    expect(daemon.closed).toBe(1);
  });

  it('prints the whole answer though the live feed was lost', async () => {
    const daemon = answering(
      ['pm'],
      started(2, 'pm', [1]),
      chunk('pm', 3, 'lo'),
      agent(3, 'pm', 'Hello'),
      ended(4, 'pm'),
    );
    expect((await parley(['say', 'c', 'hi', '--wait'], { daemon })).out).toBe('Hello\n');
  });

  it('names the agents when several speak', async () => {
    const daemon = answering(
      ['pm', 'dev'],
      started(2, 'pm', [1]),
      started(3, 'dev', [1]),
      agent(4, 'dev', 'B'),
      ended(5, 'dev'),
      agent(6, 'pm', 'A'),
      ended(7, 'pm'),
    );
    expect((await parley(['say', 'c', 'hi', '--wait'], { daemon })).out).toBe('[dev] B\n[pm] A\n');
  });

  it('stays while the floor is handed over, and names the newcomer', async () => {
    const daemon = answering(
      ['pm'],
      started(2, 'pm', [1]),
      agent(3, 'pm', 'Dev does that.'),
      entryOf('handoff', 4, { from: 'pm', to: 'dev', summary: 's' }),
      ended(5, 'pm'),
      started(6, 'dev', [4]),
      agent(7, 'dev', 'Done.'),
      ended(8, 'dev'),
    );
    expect((await parley(['say', 'c', 'hi', '--wait'], { daemon })).out).toBe(
      'Dev does that.\n[dev] Done.\n',
    );
  });

  it('returns at once when nobody answers', async () => {
    expect(await parley(['say', 'c', 'hi', '--wait'], { daemon: answering([]) })).toMatchObject({
      code: 0,
      out: '',
    });
  });

  it('prints each entry from the message on, with --json', async () => {
    const daemon = answering(
      ['pm'],
      started(2, 'pm', [1]),
      chunk('pm', 0, 'A'),
      agent(3, 'pm', 'A'),
      ended(4, 'pm'),
    );
    expect((await parley(['say', 'c', 'hi', '--wait', '--json'], { daemon })).json()).toEqual(
      daemon.log.slice(1),
    );
  });

  it('tells an answer again when the id was posted before', async () => {
    const daemon = fakeDaemon();
    daemon.say(
      person(0, 'hi'),
      started(1, 'pm', [0]),
      agent(2, 'pm', 'Hello'),
      ended(3, 'pm'),
      person(4, 'x'),
    );
    daemon.onPost = (message) => posted(message, 0, ['pm'], true);
    expect((await parley(['say', 'c', 'hi', '--id', 'x', '--wait'], { daemon })).out).toBe('Hello\n');
  });

  it.each([
    ['failed', 1],
    ['limited', 1],
    ['aborted', 0],
  ] as const)('a turn that is %s exits with %i', async (outcome, code) => {
    const content = 'Half\n\nLLM_ERROR {"code":"TIMEOUT","message":"too late"}';
    const words =
      outcome === 'failed' ? agent(3, 'pm', content, { partType: 'error' }) : agent(3, 'pm', 'Half');
    const daemon = answering(['pm'], started(2, 'pm', [1]), words, ended(4, 'pm', outcome));
    const ran = await parley(['say', 'c', 'hi', '--wait'], { daemon });
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(outcome);
    expect(ran.out).toBe(outcome === 'failed' ? 'Half\n✗ TIMEOUT: too late\n' : 'Half\n');
  });

  it('does not wait for an agent that is stopped', async () => {
    const conversation = { length: 1, agents: { pm: { status: 'stopped' } } };
    const daemon = fakeDaemon({ conversation });
    daemon.say(person(0, 'before'));
    daemon.onPost = (message) => {
      daemon.say(person(1, message.content));
      return posted(message, 1, ['pm']);
    };
    const ran = await parley(['say', 'c', 'hi', '--wait'], { daemon });
    expect([ran.code, ran.err]).toEqual([0, expect.stringContaining('parley resume c')]);
  });

  it('shows the question of a turn that waits for a person, says how to answer it, and returns', async () => {
    const call = {
      id: 'call_0',
      type: 'function' as const,
      function: { name: 'ask', arguments: '{"question":"Which colour?","options":["red","blue"]}' },
    };
    const asks = agent(3, 'pm', 'One thing.', { tool_calls: [call] });
    const daemon = answering(['pm'], started(2, 'pm', [1]), asks, ended(4, 'pm', 'waiting'));
    expect(await parley(['say', 'c', 'hi', '--wait'], { daemon })).toMatchObject({
      code: 0,
      out: 'One thing.\n? Which colour?\n  - red\n  - blue\n',
      err: expect.stringMatching(/^pm waits for your answer: \S+ say c "…" --to pm --wait\n$/),
    });
  });

  it('waits for an agent that goes on elsewhere, though another one has ended', async () => {
    const daemon = fakeDaemon();
    daemon.say(person(0, 'go'), started(1, 'dev', [0]));
    daemon.onPost = (message) => {
      daemon.say(person(2, message.content));
      setTimeout(() => {
        daemon.say(ended(3, 'dev'), started(4, 'pm', [2]), agent(5, 'pm', 'Here.'), ended(6, 'pm'));
      });
      return posted(message, 2, ['pm']);
    };
    expect((await parley(['say', 'c', 'hi', '--wait'], { daemon })).out).toContain('Here.');
  });

  it('leaves on a signal and says that the message stays', async () => {
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

  it('fails when the post is refused, and leaves nothing behind', async () => {
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
  it('follows until a signal, with the live words', async () => {
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

  it('prints entries and chunks as values with --json', async () => {
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
