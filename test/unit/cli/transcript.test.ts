import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPalette } from '../../../src/cli/render/text.ts';
import { Transcript } from '../../../src/cli/render/transcript.ts';
import { renderView } from '../../../src/cli/render/view.ts';
import type { Entry, FollowEvent } from '../../../src/client/index.ts';
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
  reportOf,
  start,
  started,
} from './support.ts';

const label = (slug: string) => `${slug}: `;

function write(events: (Entry | FollowEvent)[], details = false): string {
  const transcript = new Transcript({ palette: createPalette(false), label, details });
  const written = events.map((event) => {
    if (!('kind' in event)) return transcript.entry(event);
    return event.kind === 'entry' ? transcript.entry(event.entry) : transcript.live(event.agent, event.chunk);
  });
  return written.join('') + transcript.close();
}

describe('the live text of a conversation', () => {
  it('the transcript streams an answer and does not repeat it when its entry arrives (TRANSCRIPT-1)', () => {
    expect(write([chunk('pm', 0, 'Hel'), chunk('pm', 1, 'lo'), agent(0, 'pm', 'Hello')])).toBe('pm: Hello\n');
  });

  it('the transcript writes from the log what the live feed lost', () => {
    expect(write([agent(0, 'pm', 'Hello')])).toBe('pm: Hello\n');
    expect(write([chunk('pm', 0, 'Hel'), agent(0, 'pm', 'Hello')])).toBe('pm: Hello\n');
    expect(write([chunk('pm', 0, 'He'), chunk('pm', 2, 'o'), agent(0, 'pm', 'Hello')])).toBe('pm: Hello\n');
    expect(write([chunk('pm', 1, 'llo'), agent(0, 'pm', 'Hello')])).toBe('pm: Hello\n');
  });

  it('the transcript ignores chunks that arrive after their entry or their turn', () => {
    expect(write([chunk('pm', 0, 'Hi'), agent(0, 'pm', 'Hi!'), chunk('pm', 1, '!')])).toBe('pm: Hi!\n');
    expect(write([agent(0, 'pm', 'Hi'), ended(1, 'pm'), chunk('pm', 0, 'Hi')])).toBe('pm: Hi\n');
  });

  it('the transcript holds back other messages until the answer on the screen is complete (TRANSCRIPT-2)', () => {
    const events = [
      chunk('pm', 0, 'One '),
      chunk('dev', 0, 'Three '),
      person(0, 'And me?'),
      chunk('dev', 1, 'four'),
      chunk('pm', 1, 'two'),
      agent(1, 'pm', 'One two'),
      agent(2, 'dev', 'Three four.'),
    ];
    expect(write(events)).toBe('pm: One two\nAlice: And me?\ndev: Three four.\n');
  });

  it('the transcript counts chunks of every kind and prints only text', () => {
    const reasoning: FollowEvent = {
      kind: 'live',
      agent: 'pm',
      chunk: { turnId: 't-pm', call: 'c-pm', n: 0, type: 'reasoning', delta: 'hm' },
    };
    expect(write([reasoning, chunk('pm', 1, 'Hi'), agent(0, 'pm', 'Hi')])).toBe('pm: Hi\n');
  });

  it('the transcript reports that an answer was restarted', () => {
    const events = [
      chunk('pm', 0, 'Old', 'first'),
      chunk('pm', 0, 'New', 'second'),
      agent(0, 'pm', 'New one'),
    ];
    expect(write(events)).toBe('pm: Old … (repeated)\npm: New one\n');
  });

  it('the transcript prints the whole answer on a new line if it differs from what was streamed', () => {
    expect(write([chunk('pm', 0, 'Old'), agent(0, 'pm', 'New')])).toBe('pm: Old\npm: New\n');
  });

  it('the transcript prints the text of a failed call, and the reason', () => {
    const content = 'Half an ans\n\nLLM_ERROR {"code":"TIMEOUT","message":"no answer in time"}';
    const failed = agent(0, 'pm', content, { partType: 'error' });
    expect(write([chunk('pm', 0, 'Half an'), failed])).toBe(
      'pm: Half an ans\n✗ TIMEOUT: no answer in time\n',
    );
    const silent = agent(0, 'pm', 'LLM_ERROR {"code":"UNAUTHORIZED","message":"bad key"}', {
      partType: 'error',
    });
    expect(write([silent])).toBe('✗ UNAUTHORIZED: bad key\n');
  });

  it('the transcript ends the line of a turn that ended without an entry for its text', () => {
    expect(write([chunk('pm', 0, 'Half'), ended(0, 'pm', 'aborted'), person(1, 'Thanks')])).toBe(
      'pm: Half\nAlice: Thanks\n',
    );
  });

  it('the transcript prints tool calls and notices only with details', () => {
    const call = toolCall('fs_read', '{"path":"a"}', 'c');
    const events = [
      agent(0, 'pm', null, { tool_calls: [call] }),
      entryOf('handoff', 1, { from: 'pm', to: 'dev', summary: 'build it' }),
      ended(2, 'pm'),
    ];
    expect(write(events)).toBe('');
    expect(write(events, true)).toBe('⚙ fs_read {"path":"a"}\n· pm hands over to dev: build it\n');
  });

  it('the transcript passes no escape sequence of an answer to the terminal', () => {
    expect(write([chunk('pm', 0, 'a\u001b[2J'), agent(0, 'pm', 'a\u001b[2Jb\u0007')])).toBe('pm: a[2Jb\n');
  });

  it('the transcript prints every word of every answer once, whatever chunks are lost or reordered', () => {
    const speech = fc.record({
      slug: fc.constantFrom('pm', 'dev', 'qa'),
      words: fc.array(fc.stringMatching(/^[a-z]{1,4} $/), { minLength: 1, maxLength: 6 }),
      lost: fc.array(fc.nat(5), { maxLength: 3 }),
    });
    const speeches = fc.uniqueArray(speech, { minLength: 1, maxLength: 3, selector: ({ slug }) => slug });
    fc.assert(
      fc.property(speeches, fc.infiniteStream(fc.nat(2)), (spoken, order) => {
        const queues = spoken.map(({ slug, words, lost }, place) => [
          ...words.flatMap((word, n) => (lost.includes(n) ? [] : [chunk(slug, n, word)])),
          agent(place, slug, words.join('')),
          ended(place + 10, slug),
        ]);
        const events: (Entry | FollowEvent)[] = [];
        for (let left = queues; left.length > 0; left = left.filter((queue) => queue.length > 0)) {
          const next = left[(order.next().value ?? 0) % left.length]!.shift();
          if (next) events.push(next);
        }
        const lines = write(events).split('\n').slice(0, -1);
        expect(lines.sort()).toEqual(spoken.map(({ slug, words }) => `${slug}: ${words.join('')}`).sort());
      }),
    );
  });
});

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
