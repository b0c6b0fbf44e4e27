import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPalette } from '../../../src/cli/render/text.ts';
import { Transcript } from '../../../src/cli/render/transcript.ts';
import type { Entry, FollowEvent } from '../../../src/client/index.ts';
import { toolCall } from '../../support/log.ts';
import { agent, chunk, ended, entryOf, person } from './support.ts';

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
