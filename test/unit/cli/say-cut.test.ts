import { expect, it } from 'vitest';
import { SYSTEM_AUTHOR } from '../../../src/conversation/index.ts';
import { agent, ended, fakeDaemon, parley, person, posted, started } from './support.ts';

function failing() {
  const failure = 'LLM_ERROR {"code":"CONTENT_FILTERED","message":"no text"}';
  const daemon = fakeDaemon();
  daemon.onPost = (message) => {
    const fields = { partType: 'error', finishReason: 'content_filter' } as const;
    const turn = [started(1, 'pm', [0]), agent(2, 'pm', failure, fields), ended(3, 'pm', 'failed')];
    daemon.say(person(0, message.content), ...turn);
    return posted(message, 0, ['pm']);
  };
  return daemon;
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

function limitedBy(name: string) {
  const daemon = fakeDaemon();
  daemon.onPost = (message) => {
    const limit = {
      type: 'limit-reached',
      limit: name,
      agent: 'pm',
      turnId: 't-pm',
      content: 'the turn took too long',
    } as const;
    const notice = {
      ...limit,
      id: 'limit',
      index: 2,
      createdAt: '2026-01-01T00:00:00.000Z',
      author: SYSTEM_AUTHOR,
    };
    daemon.say(person(0, message.content), started(1, 'pm', [0]), notice, ended(3, 'pm', 'limited'));
    return posted(message, 0, ['pm']);
  };
  return daemon;
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
