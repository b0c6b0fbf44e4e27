import { describe, expect, it } from 'vitest';
import { createPalette } from '../../../src/cli/render/text.ts';
import { renderView } from '../../../src/cli/render/view.ts';
import {
  agent,
  chunk,
  ended,
  entryOf,
  fakeDaemon,
  parley,
  person,
  posted,
  reportOf,
  start,
  started,
} from './support.ts';

const ACTOR = 'Bob: approve it, please';
const NOTICE = '· phase chat → plan by Bob';

/** The lines at the left margin. Each begins with its author or with a mark of Parley. */
const atMargin = (text: string) => text.split('\n').filter((line) => /^\S/.test(line));

describe('a message whose later lines imitate lines of others', () => {
  it.each([
    ['chat', 'hello\n'],
    ['tail', undefined],
  ])('%s prints no imitated line at the left margin', async (command, stdin) => {
    const daemon = fakeDaemon();
    const forged = `hm\n\n${ACTOR}\r\n${NOTICE}\n\u0001\n\u2028${ACTOR}`;
    const ask = { question: `Which?\n${ACTOR}`, options: [`one\n${ACTOR}`] };
    const question = {
      ...{ id: 'c', type: 'function' as const },
      function: { name: 'ask', arguments: JSON.stringify(ask) },
    };
    const failure = `${forged}\nLLM_ERROR ${JSON.stringify({ code: 'BAD', message: `no\n${ACTOR}` })}`;
    const all = [
      person(0, forged),
      started(1, 'pm', [0]),
      chunk('pm', 0, 'a\n'),
      chunk('pm', 1, `\u0001${ACTOR}\n`),
      chunk('pm', 2, '\u0007'),
      chunk('pm', 3, NOTICE),
      agent(2, 'pm', `a\n\u0001${ACTOR}\n\u0007${NOTICE}\n${ACTOR}`, { tool_calls: [question] }),
      agent(3, 'dev', forged),
      agent(4, 'dev', failure, { partType: 'error' }),
      entryOf('note', 5, { content: forged }),
      ended(6, 'pm'),
    ];
    if (command === 'tail') daemon.say(person(0, 'the first'));
    daemon.onPost = (message) => {
      daemon.say(...all);
      return posted(message, 0, ['pm']);
    };
    const running = start([command, 'c'], { daemon, stdin });
    if (command === 'tail') {
      await expect.poll(running.output).toContain('the first');
      daemon.say(...all.slice(1));
    }
    if (command === 'tail') {
      await expect.poll(running.output).toContain('· hm');
      running.signal('SIGTERM');
    }
    const { out } = await running.done;
    expect(out.match(/Bob: approve it/g)?.length).toBeGreaterThan(6);
    expect(atMargin(out).filter((line) => line === ACTOR || line === NOTICE)).toEqual([]);
  });

  it('show prints no imitated line at the left margin', async () => {
    const daemon = fakeDaemon();
    const imitation = '    7  10:00:00  Bob';
    daemon.say(
      person(0, `hm\n${imitation}`),
      entryOf('note', 1, { content: `hm\n${imitation}` }),
      person(2, 'x', { author: { kind: 'person', id: 'eve', name: `Eve\n${imitation}` } }),
    );
    const { out } = await parley(['show', 'c'], { daemon });
    expect(out.match(/10:00:00 {2}Bob/g)).toHaveLength(3);
    expect(out.split('\n')).not.toContain(imitation);
  });

  it('say --wait keeps an imitated line distinct from answers of other agents and from notices', async () => {
    const daemon = fakeDaemon();
    const imitation = '[qa] ship it\nwaiting for a person:';
    daemon.onPost = (message) => {
      daemon.say(
        person(0, message.content),
        started(1, 'pm', [0]),
        started(2, 'dev', [0]),
        agent(3, 'pm', `a\n${imitation}`),
        agent(4, 'dev', `b\n${imitation}`),
        ended(5, 'pm'),
        ended(6, 'dev'),
      );
      return posted(message, 0, ['pm', 'dev']);
    };
    const several = await parley(['say', 'c', 'x', '--wait'], { daemon });
    expect(atMargin(several.out)).toEqual(['[pm] a', '[dev] b']);
  });

  it('say --wait indents a message for a person at a terminal, and prints it unchanged for a program', async () => {
    const said = async (isTerminal: boolean) => {
      const daemon = fakeDaemon();
      daemon.onPost = (message) => {
        daemon.say(person(0, 'x'), started(1, 'pm', [0]), agent(2, 'pm', 'a\n\n[qa] b'), ended(3, 'pm'));
        return posted(message, 0, ['pm']);
      };
      return (await parley(['say', 'c', 'x', '--wait'], { daemon, isTerminal })).out;
    };
    expect(await said(true)).toBe('a\n\n  [qa] b\n');
    expect(await said(false)).toBe('a\n\n[qa] b\n');
  });

  it('explain keeps an imitated line distinct from the heading of another message', () => {
    const heading = '── 1 system · prefix · 12 tokens ──';
    const view = { messages: [{ role: 'user' as const, content: `x\n${heading}` }], report: reportOf() };
    const lines = renderView(view as never, createPalette(false)).split('\n');
    expect(lines).toContain(`  ${heading}`);
    expect(lines).not.toContain(heading);
  });
});
