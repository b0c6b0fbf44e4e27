import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeLines, isSealed, joinLines, sealLines } from '../../../src/persistence/jsonl/log/line.ts';
import { batch, entry, logBytes } from './support.ts';

function lines(bytes: Buffer): string[] {
  return bytes.toString('utf8').split('\n').slice(0, -1);
}

/** Lines that hold these texts; a brace is put back behind each, as behind an entry. */
function sealed(texts: readonly string[]): { bytes: Buffer; ends: number[] } {
  const bytes = joinLines(texts);
  return { ends: sealLines(bytes).map((end) => end - 1), bytes };
}

function decoded(texts: readonly string[]): unknown[] {
  const { bytes, ends } = sealed(texts);
  return decodeLines(bytes, 0, ends).map((line) => line?.entry ?? null);
}

describe('a line of a log', () => {
  it('is the JSON of the entry with the sum of all that stands before it (LINE-2)', () => {
    const [line] = lines(logBytes([[entry(0, 'grüße ☕')]]));
    const body = JSON.stringify(entry(0, 'grüße ☕')).slice(0, -1);
    expect(line).toBe(`${body},"sum":"${crc32(Buffer.from(body)).toString(16).padStart(8, '0')}"}`);
    expect(JSON.parse(line ?? '')).toMatchObject(entry(0, 'grüße ☕'));
  });

  it('says how many lines of its batch follow, and nothing on the last one (LINE-1)', () => {
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
    const [read] = decodeLines(Buffer.from(line), 0, [Buffer.byteLength(line)]);
    expect(read?.left).toBe(0);
    expect(JSON.stringify(read?.entry)).toBe(JSON.stringify(entry(0, 'a', more)));
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

  it.each(['null', '[]', '{"index":"0"}', '{"id":"no index"}', '{"index":0}}', '{"index":0},{"index":1}'])(
    'holds an entry, not %s',
    (json) => {
      expect(decoded([json])).toEqual([null]);
    },
  );
});

describe('lines of a log that are parsed together', () => {
  it.each([1, 40, 400])('are the entries that each of %i lines holds', (count) => {
    const entries = batch(0, count, 'grüße ☕ "quoted" \n'.repeat(20));
    expect(decoded(entries.map((one) => JSON.stringify(one)))).toEqual(entries);
  });

  it('may be of any length', () => {
    const long = [entry(0, 'long ☕ '.repeat(20_000)), entry(1, 'short'), entry(2, 'b'.repeat(70_000))];
    const texts = long.map((one) => JSON.stringify(one));
    expect(decoded(texts)).toEqual(long);
    expect(decoded(texts.slice(0, 1))).toEqual(long.slice(0, 1));
  });

  it('say how many of their batch follow, each its own', () => {
    const bytes = logBytes([batch(0, 12), batch(12, 1), batch(13, 2)]);
    const ends = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at] : []));
    const lefts = decodeLines(bytes, 0, ends).map((line) => line?.left);
    expect(lefts).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 1, 0]);
  });

  it.each([
    { bad: '{"index":0', why: 'no JSON' },
    { bad: '{"index":"0"}', why: 'no entry' },
    { bad: '{"index":1},{"index":2}', why: 'two' },
  ])('are told apart where one of them is $why', ({ bad }) => {
    expect(decoded(['{"index":0}', bad, '{"index":2}'])).toEqual([{ index: 0 }, null, { index: 2 }]);
  });

  it('are not parsed across: what one opens, the next cannot close', () => {
    expect(decoded(['{"index":0,"more":[{"a":1}', '{"index":1}]}'])).toEqual([null, null]);
  });

  it('keeps every character of its entry, whatever stands beside it', () => {
    const contents = [
      'plain',
      'grüße',
      '☕',
      '😀 and \ud83d alone',
      '\u0000\u2028',
      'x'.repeat(70_000),
      '—'.repeat(40_000),
    ];
    const entries = contents.map((content, index) => ({ index, content }));
    const texts = entries.map((value) => JSON.stringify(value).slice(0, -1));
    expect(decoded(texts.map((text) => `${text}}`))).toEqual(entries);
  });

  it('is read as far as it can be when it is sealed and is not UTF-8', () => {
    const broken = Buffer.concat([
      Buffer.from('{"index":0,"content":"é'),
      Buffer.from([0xff]),
      Buffer.from('"'),
    ]);
    const line = Buffer.concat([
      broken,
      Buffer.from(`,"sum":"${crc32(broken).toString(16).padStart(8, '0')}"}`),
    ]);
    expect(isSealed(line, 0, line.length)).toBe(true);
    expect(decodeLines(line, 0, [line.length])).toEqual([
      { entry: { index: 0, content: 'é\ufffd' }, left: 0 },
    ]);
  });
});
