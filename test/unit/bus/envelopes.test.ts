import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeAudit, packEntries } from '../../../src/bus/envelopes.ts';
import type { Entry } from '../../../src/conversation/index.ts';
import { anyCharacter } from '../../support/characters.ts';
import { bytes, text } from './support.ts';

const note = (index: number, content: string): Entry => ({
  index,
  id: `e${index}`,
  createdAt: '2026-11-21T20:39:00.000Z',
  type: 'note',
  author: { kind: 'system', id: 'parley', name: 'Parley' },
  content,
});

describe('the log feed', () => {
  it('the feed carries entries in order in messages that fit, and omits only entries that are too large alone', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 600, unit: anyCharacter })),
        fc.integer({ min: 200, max: 2_000 }),
        (contents, max) => {
          const entries = contents.map((content, index) => note(index, content));
          const messages = packEntries(entries, max);
          for (const message of messages) expect(message.length).toBeLessThanOrEqual(max);
          const carried = messages.flatMap((message) => JSON.parse(text(message)).entries as Entry[]);
          const fitting = entries.filter((entry) => bytes(JSON.stringify({ entries: [entry] })).length < max);
          expect(carried).toEqual(fitting);
        },
      ),
    );
  });

  it('the feed sends one message if one is enough, and none for no entries', () => {
    expect(packEntries([note(0, 'a'), note(1, 'b')], 1_000_000)).toHaveLength(1);
    expect(packEntries([], 1_000)).toEqual([]);
  });
});

describe('a record of the audit log', () => {
  const record = { type: 'ToolCallRequested', call: { entry: 3, position: 0 }, tool: 'shell', at: 'now' };

  it('an audit record is published whole if it fits, and otherwise without its long fields', () => {
    const whole = { ...record, arguments: 'x'.repeat(500) };
    expect(JSON.parse(text(encodeAudit(whole, 1_000)))).toEqual(whole);
    expect(JSON.parse(text(encodeAudit(whole, 400)))).toEqual({ ...record, truncated: true });
  });
});
