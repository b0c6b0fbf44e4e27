import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeLine, isSealed } from '../../../src/persistence/jsonl/line.ts';
import { batch, entry, logBytes } from './support.ts';

function lines(bytes: Buffer): string[] {
  return bytes.toString('utf8').split('\n').slice(0, -1);
}

describe('a line of a log', () => {
  it('is the JSON of the entry with the sum of all that stands before it (F2)', () => {
    const [line] = lines(logBytes([[entry(0, 'grüße ☕')]]));
    const body = JSON.stringify(entry(0, 'grüße ☕')).slice(0, -1);
    expect(line).toBe(`${body},"sum":"${crc32(Buffer.from(body)).toString(16).padStart(8, '0')}"}`);
    expect(JSON.parse(line ?? '')).toMatchObject(entry(0, 'grüße ☕'));
  });

  it('says how many lines of its batch follow, and nothing on the last one (F1)', () => {
    const parsed = lines(logBytes([batch(0, 3), batch(3, 1)])).map((line) => JSON.parse(line).left);
    expect(parsed).toEqual([2, 1, undefined, undefined]);
  });

  it.each([
    { more: {}, left: undefined },
    { more: { upTo: 5 }, left: undefined },
    { more: { left: 5 }, left: ',"left":0,"sum"' },
    { more: { sum: 'mine' }, left: ',"left":0,"sum"' },
    { more: { left: 5, sum: 'mine', last: 7 }, left: ',"left":0,"sum"' },
  ])('gives the entry back as it was, with the fields $more (F3)', ({ more, left }) => {
    const [line = ''] = lines(logBytes([[entry(0, 'a', more)]]));
    const decoded = decodeLine(line);
    expect(decoded?.left).toBe(0);
    expect(JSON.stringify(decoded?.entry)).toBe(JSON.stringify(entry(0, 'a', more)));
    expect(line.includes(left ?? '"left"')).toBe(left !== undefined);
  });

  it('does not fit its sum when any bit of it is flipped', () => {
    const bytes = logBytes([[entry(0, 'short')]]);
    const end = bytes.length - 1;
    expect(isSealed(bytes, 0, end)).toBe(true);
    for (let bit = 0; bit < end * 8; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(isSealed(flipped, 0, end), `bit ${bit}`).toBe(false);
    }
  });

  it.each(['', '{', '"sum"', ',"sum":"00000000"}', '\0'.repeat(64)])('is not %j', (text) => {
    const bytes = Buffer.from(text);
    expect(isSealed(bytes, 0, bytes.length)).toBe(false);
  });

  it.each(['null', '[]', '{"index":"0"}', '{"id":"no index"}', '{'])('holds an entry, not %s', (json) => {
    expect(decodeLine(json)).toBeNull();
  });
});
