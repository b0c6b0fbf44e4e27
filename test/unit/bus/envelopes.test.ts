import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  encodeAudit,
  encodeDeadLetter,
  MAX_ORIGINAL_BYTES,
  packEntries,
} from '../../../src/bus/envelopes.ts';
import type { Entry } from '../../../src/conversation/index.ts';
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
  it('carries entries in order, in messages that fit, leaving out only what cannot fit alone', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 600, unit: 'binary' })),
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

  it('sends one message when one is enough, and none for nothing', () => {
    expect(packEntries([note(0, 'a'), note(1, 'b')], 1_000_000)).toHaveLength(1);
    expect(packEntries([], 1_000)).toEqual([]);
  });
});

describe('a dead letter', () => {
  const refusal = { code: 'MALFORMED_JSON', message: 'no JSON', hint: 'mend it' };
  const letter = (original: Uint8Array, max = 1_000_000) =>
    JSON.parse(text(encodeDeadLetter(refusal, original, max))) as { original: string; truncated?: true };

  it('says code, reason, hint and the whole body when that fits', () => {
    expect(letter(bytes('{oops'))).toEqual({
      reason: 'no JSON',
      code: 'MALFORMED_JSON',
      hint: 'mend it',
      original: '{oops',
    });
  });

  it('replaces what is not UTF-8', () => {
    expect(letter(Uint8Array.of(0x61, 0xff, 0x62)).original).toBe('a\uFFFDb');
  });

  it('keeps at most 128 KiB of the body and never half a character', () => {
    const { original, truncated } = letter(bytes(`x${'😀'.repeat(50_000)}`));
    expect(truncated).toBe(true);
    expect(bytes(original).length).toBeLessThanOrEqual(MAX_ORIGINAL_BYTES);
    expect(original).toMatch(/^x(😀)+$/u);
  });

  it('fits any payload, also when escaping makes the body six times longer', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 5_000 }),
        fc.integer({ min: 300, max: 4_000 }),
        (body, max) => {
          expect(encodeDeadLetter(refusal, bytes(body), max).length).toBeLessThanOrEqual(max);
        },
      ),
    );
    expect(encodeDeadLetter(refusal, new Uint8Array(200_000), 10_000).length).toBeLessThanOrEqual(10_000);
  });
});

describe('a record of the audit log', () => {
  const record = { type: 'ToolCallRequested', call: { entry: 3, position: 0 }, tool: 'shell', at: 'now' };

  it('is published as it is where it fits, else without what is long in it', () => {
    const whole = { ...record, arguments: 'x'.repeat(500) };
    expect(JSON.parse(text(encodeAudit(whole, 1_000)))).toEqual(whole);
    expect(JSON.parse(text(encodeAudit(whole, 400)))).toEqual({ ...record, truncated: true });
  });
});
