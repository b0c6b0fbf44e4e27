import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeLines, isSealed, joinLines, sealLines } from '../../../src/persistence/jsonl/log/line.ts';
import { batch, entry, logBytes } from './support.ts';

function lines(bytes: Buffer): string[] {
  return bytes.toString('utf8').split('\n').slice(0, -1);
}

/** Seals these texts as lines; each text ends with a brace, as an entry does. */
function sealed(texts: readonly string[]): { bytes: Buffer; ends: number[] } {
  const bytes = joinLines(texts);
  return { ends: sealLines(bytes).map((end) => end - 1), bytes };
}

function decoded(texts: readonly string[]): unknown[] {
  const { bytes, ends } = sealed(texts);
  return decodeLines(bytes, 0, ends).map((line) => line?.entry ?? null);
}

describe('a line of a log', () => {
  it('a line is the JSON of its entry with a checksum of everything before it (LINE-2)', () => {
    const [line] = lines(logBytes([[entry(0, 'grüße ☕')]]));
    const body = JSON.stringify(entry(0, 'grüße ☕')).slice(0, -1);
    expect(line).toBe(`${body},"sum":"${crc32(Buffer.from(body)).toString(16).padStart(8, '0')}"}`);
    expect(JSON.parse(line ?? '')).toMatchObject(entry(0, 'grüße ☕'));
  });

  it('a line has the number of lines that follow in its batch, except the last one (LINE-1)', () => {
    const parsed = lines(logBytes([batch(0, 3), batch(3, 1)])).map((line) => JSON.parse(line).left);
    expect(parsed).toEqual([2, 1, undefined, undefined]);
  });

  it.each([
    { more: {}, left: undefined },
    { more: { upTo: 5 }, left: undefined },
    { more: { left: 5 }, left: ',"left":0,"sum"' },
    { more: { sum: 'mine' }, left: ',"left":0,"sum"' },
    { more: { left: 5, sum: 'mine', last: 7 }, left: ',"left":0,"sum"' },
  ])('an entry is decoded unchanged with its own fields $more (LINE-3)', ({ more, left }) => {
    const [line = ''] = lines(logBytes([[entry(0, 'a', more)]]));
    const [read] = decodeLines(Buffer.from(line), 0, [Buffer.byteLength(line)]);
    expect(read?.left).toBe(0);
    expect(JSON.stringify(read?.entry)).toBe(JSON.stringify(entry(0, 'a', more)));
    expect(line.includes(left ?? '"left"')).toBe(left !== undefined);
  });

  it('the checksum is wrong after a flip of any bit', () => {
    const bytes = logBytes([[entry(0, 'short')]]);
    const end = bytes.length - 1;
    expect(isSealed(bytes, 0, end)).toBe(true);
    for (let bit = 0; bit < end * 8; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(isSealed(flipped, 0, end), `bit ${bit}`).toBe(false);
    }
  });

  it.each(['', '{', '"sum"', ',"sum":"00000000"}', '\0'.repeat(64)])('the text %j is not a line', (text) => {
    const bytes = Buffer.from(text);
    expect(isSealed(bytes, 0, bytes.length)).toBe(false);
  });

  it.each(['null', '[]', '{"index":"0"}', '{"id":"no index"}', '{"index":0}}', '{"index":0},{"index":1}'])(
    'a line that contains %s instead of an entry is not decoded',
    (json) => {
      expect(decoded([json])).toEqual([null]);
    },
  );
});

describe('lines of a log that are parsed together', () => {
  it.each([1, 40, 400])('each of %i lines is decoded to its entry', (count) => {
    const entries = batch(0, count, 'grüße ☕ "quoted" \n'.repeat(20));
    expect(decoded(entries.map((one) => JSON.stringify(one)))).toEqual(entries);
  });

  it('lines of any length are decoded', () => {
    const long = [entry(0, 'long ☕ '.repeat(20_000)), entry(1, 'short'), entry(2, 'b'.repeat(70_000))];
    const texts = long.map((one) => JSON.stringify(one));
    expect(decoded(texts)).toEqual(long);
    expect(decoded(texts.slice(0, 1))).toEqual(long.slice(0, 1));
  });

  it('each line keeps its own number of following lines', () => {
    const bytes = logBytes([batch(0, 12), batch(12, 1), batch(13, 2)]);
    const ends = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at] : []));
    const lefts = decodeLines(bytes, 0, ends).map((line) => line?.left);
    expect(lefts).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 1, 0]);
  });

  it.each([
    { bad: '{"index":0', why: 'no JSON' },
    { bad: '{"index":"0"}', why: 'no entry' },
    { bad: '{"index":1},{"index":2}', why: 'two' },
  ])('a line that is $why does not affect the other lines', ({ bad }) => {
    expect(decoded(['{"index":0}', bad, '{"index":2}'])).toEqual([{ index: 0 }, null, { index: 2 }]);
  });

  it('a line cannot close what the previous line opened', () => {
    expect(decoded(['{"index":0,"more":[{"a":1}', '{"index":1}]}'])).toEqual([null, null]);
  });

  it('an entry keeps every character, whatever the other lines contain', () => {
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

  it('a sealed line that is not UTF-8 is decoded with replacement characters', () => {
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
