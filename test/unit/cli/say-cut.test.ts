import { expect, it } from 'vitest';
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

it('`say --wait --json` prints its entry too', async () => {
  const ran = await parley(['say', 'c', 'hi', '--wait', '--json'], { daemon: failing() });
  expect(ran).toMatchObject({ code: 1, err: expect.stringMatching(ONCE) });
  expect(ran.json()).toContainEqual(expect.objectContaining({ finishReason: 'content_filter' }));
});
