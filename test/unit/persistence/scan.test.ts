import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { scanLog } from '../../../src/persistence/jsonl/log/recovery.ts';
import { size } from '../../support/runs.ts';
import { batch, entry, logBytes } from './support.ts';

const BATCHES = [batch(0, 1), batch(1, 3), batch(4, 1), batch(5, 3, 'grüße ☕ "quoted" \n')];
const WHOLE = logBytes(BATCHES);
const ALL = BATCHES.flat();
/** The end of each batch, in bytes and in entries. */
const ENDS = BATCHES.map((_, position) => ({
  bytes: logBytes(BATCHES.slice(0, position + 1)).length,
  entries: BATCHES.slice(0, position + 1).flat().length,
}));

/** The end of the last whole batch within this number of bytes. */
function wholeWithin(bytes: number): { bytes: number; entries: Entry[] } {
  const end = ENDS.filter((each) => each.bytes <= bytes).at(-1) ?? { bytes: 0, entries: 0 };
  return { bytes: end.bytes, entries: ALL.slice(0, end.entries) };
}

describe('scanning a log', () => {
  it('the scan returns every entry and its offset', () => {
    const verdict = scanLog(WHOLE);
    expect(verdict).toMatchObject({ kind: 'whole', entries: ALL, bytes: WHOLE.length });
    if (verdict.kind !== 'whole') return;
    expect(verdict.offsets).toHaveLength(ALL.length);
    for (const [index, offset] of verdict.offsets.entries()) {
      expect(WHOLE.toString('utf8', offset, offset + 10)).toBe(`{"index":${index}`);
    }
    expect(scanLog(Buffer.alloc(0))).toEqual({ kind: 'whole', entries: [], ends: [], offsets: [], bytes: 0 });
  });

  it('a log that is cut at any byte contains the whole batches before that byte (SCAN-2)', () => {
    for (let length = 0; length <= WHOLE.length; length += 1) {
      const expected = wholeWithin(length);
      const verdict = scanLog(WHOLE.subarray(0, length));
      expect(verdict, `cut at ${length}`).toMatchObject({
        kind: expected.bytes === length ? 'whole' : 'torn',
        ...expected,
      });
      if (verdict.kind !== 'damaged') expect(verdict.offsets).toHaveLength(expected.entries.length);
    }
  });

  it.each([1, 17, 4096])('a log that is cut and filled with %i NUL bytes is torn (SCAN-2)', (count) => {
    for (let length = 0; length <= WHOLE.length; length += 7) {
      const filled = Buffer.concat([WHOLE.subarray(0, length), Buffer.alloc(count)]);
      expect(scanLog(filled), `cut at ${length}`).toMatchObject({ kind: 'torn', ...wholeWithin(length) });
    }
  });

  it('a flipped bit anywhere before the last line, including newlines, is damage (SCAN-3)', () => {
    const lastLine = WHOLE.lastIndexOf(10, WHOLE.length - 2) + 1;
    for (let at = 0; at < lastLine; at += 1) {
      const flipped = Buffer.from(WHOLE);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (at & 7));
      const line = WHOLE.subarray(0, at).toString('latin1').split('\n').length;
      expect(scanLog(flipped), `byte ${at}`).toMatchObject({ kind: 'damaged', line });
    }
  });

  it('a flipped bit in the last line is a torn tail: no acknowledged entry follows', () => {
    const lastLine = WHOLE.lastIndexOf(10, WHOLE.length - 2) + 1;
    for (let at = lastLine; at < WHOLE.length; at += 1) {
      const flipped = Buffer.from(WHOLE);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (at & 7));
      expect(scanLog(flipped), `byte ${at}`).toMatchObject({ kind: 'torn', ...wholeWithin(lastLine) });
    }
  });

  it.each([
    { name: 'an index is missing', bytes: logBytes([batch(0, 1), batch(2, 1)]), line: 2 },
    { name: 'an index is there twice', bytes: logBytes([batch(0, 1), batch(0, 1)]), line: 2 },
    { name: 'it does not begin at 0', bytes: logBytes([batch(1, 1)]), line: 1 },
    {
      name: 'a batch is interrupted by another',
      bytes: Buffer.concat([
        logBytes([batch(0, 3)]).subarray(0, logBytes([batch(0, 3)]).indexOf(10) + 1),
        logBytes([batch(1, 1)]),
      ]),
      line: 2,
    },
    { name: 'a line is not an entry', bytes: logBytes([batch(0, 1), [{ id: 'x' } as Entry]]), line: 2 },
    ...['id', 'type', 'author'].map((field) => ({
      name: `an entry has no ${field}`,
      bytes: logBytes([batch(0, 1), [{ ...entry(1), [field]: null } as unknown as Entry]]),
      line: 2,
    })),
  ])('a log is damaged when $name, even with correct checksums (SCAN-1)', ({ bytes, line }) => {
    expect(scanLog(bytes)).toMatchObject({ kind: 'damaged', line });
  });

  it('an empty line before a good line is damage, not a torn tail', () => {
    expect(scanLog(Buffer.concat([Buffer.from('\n'), logBytes([batch(0, 1)])]))).toMatchObject({
      kind: 'damaged',
      line: 1,
      offset: 0,
    });
  });

  it.each([
    ['whole seals', ',"sum":"00000000"}'],
    ['beginnings of seals', ',"sum":"'],
  ])('a torn line that consists of %s is scanned once, whatever its length', (_, text) => {
    const tail = Buffer.from(`{"index":3,"meta":[{"a":1${text.repeat(size(50_000))}`);
    const good = logBytes([batch(0, 3)]);
    expect(scanLog(Buffer.concat([good, tail]))).toMatchObject({ kind: 'torn', bytes: good.length });
    const followed = Buffer.concat([good, tail, Buffer.from('\n'), logBytes([batch(3, 1)])]);
    expect(scanLog(followed)).toMatchObject({ kind: 'damaged', line: 4, offset: good.length });
  });

  it('an entry whose text looks like a line of the log is kept', () => {
    const [inner = ''] = logBytes([[entry(0)]])
      .toString('utf8')
      .split('\n');
    const bytes = logBytes([[entry(0, inner)], [entry(1, `\n${inner}\n`)]]);
    expect(scanLog(bytes)).toMatchObject({
      kind: 'whole',
      entries: [entry(0, inner), entry(1, `\n${inner}\n`)],
    });
    expect(scanLog(bytes.subarray(0, bytes.length - 3))).toMatchObject({
      kind: 'torn',
      entries: [entry(0, inner)],
    });
  });
});
