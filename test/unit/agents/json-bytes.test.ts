import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonElements } from '../../../src/agents/requests/json-bytes.ts';
import { anyCharacter } from '../../support/characters.ts';

const encoded = (values: readonly object[]) => Buffer.concat(jsonElements(values));
/** The expected bytes, by JSON.stringify. */
const expectedBytes = (values: readonly object[]) =>
  Buffer.from(values.map((value) => `,${JSON.stringify(value)}`).join(''));

function expectSameBytes(values: readonly object[]): void {
  // Compared as bytes: two texts may be equal although their bytes differ.
  expect(encoded(values).equals(expectedBytes(values))).toBe(true);
}

/** Characters that JSON, UTF-8 or surrogates treat specially, and ordinary ones. */
const UNITS = [
  'a',
  ' ',
  '"',
  '\\',
  '\n',
  '\u0000',
  '\u001f',
  '\u007f',
  '\u0080',
  'é',
  '\u07ff',
  '\u0800',
  '—',
];
const HALVES = [
  '\ud83d',
  '\ude00',
  '😀',
  '\ud800',
  '\udbff',
  '\udc00',
  '\udfff',
  '\ue000',
  '\u2028',
  '\uffff',
];
const anyUnit = fc.oneof(fc.constantFrom(...UNITS, ...HALVES), fc.nat(0xffff).map(String.fromCharCode));
const text = fc.oneof(
  fc.array(anyUnit, { maxLength: 60 }).map((units) => units.join('')),
  fc.string({ maxLength: 60 }),
  fc.string({ unit: anyCharacter, maxLength: 60 }),
);

describe('JSON encoded directly into bytes', () => {
  it('the bytes of each character, at any of four positions, equal those of JSON.stringify in UTF-8', () => {
    for (let unit = 0; unit <= 0xffff; unit += unit < 0x900 || unit > 0xd7f0 ? 1 : 37) {
      const character = String.fromCharCode(unit);
      for (const before of ['', 'a', 'ab', 'abc']) {
        const content = `${before}${character}xyz and as much as makes it a long one`;
        if (!encoded([{ content }]).equals(expectedBytes([{ content }])))
          expect.fail(`U+${unit.toString(16)}`);
      }
    }
  });

  it('the bytes of any text equal those of JSON.stringify in UTF-8', () => {
    fc.assert(
      fc.property(text, text, (content, more) => {
        expectSameBytes([{ role: 'user', content }, { content: more + content }]);
      }),
      { numRuns: 500 },
    );
  });

  it('the bytes of any plain data equal those of JSON.stringify in UTF-8', () => {
    const field = fc.oneof(fc.jsonValue(), text, fc.constant(undefined));
    fc.assert(
      fc.property(fc.array(fc.dictionary(text, field), { maxLength: 4 }), (values) =>
        expectSameBytes(values),
      ),
    );
  });

  it.each([4_095, 4_096, 4_097, 8_192, 70_000])(
    'the bytes are correct for texts of %d code units',
    (length) => {
      for (const word of ['a', '"', '—', '😀', 'a😀', 'abc😀', '\ud83d', 'x\u001f'])
        expectSameBytes([{ content: word.repeat(length).slice(0, length) }, { content: word }]);
    },
  );

  it('the bytes are correct across several buffers, whatever character is at a boundary', () => {
    const call = { id: 'c1_0', type: 'function', function: { name: 'shell', arguments: '{"a":"—"}' } };
    const values = Array.from({ length: 9_000 }, (_, number) => ({
      role: 'assistant',
      content: number % 3 === 0 ? null : '"—'.repeat(number % 50),
      tool_calls: Array.from({ length: number % 4 }, () => call),
    }));
    expectSameBytes(values);
    expectSameBytes([{ content: '\u0001'.repeat(300_000), flags: Array(150_000).fill(true) }]);
  });

  it('returned buffers are not written to again (JSON-BYTES-2)', () => {
    const long = [{ content: 'first '.repeat(100_000) }];
    const first = jsonElements(long);
    const short = jsonElements([{ content: 'a short one' }]);
    jsonElements([{ content: 'second '.repeat(100_000) }]);
    expect(Buffer.concat(first).equals(expectedBytes(long))).toBe(true);
    expect(Buffer.concat(short).toString()).toBe(',{"content":"a short one"}');
  });

  it('a value that throws leaves nothing in the next result', () => {
    const unreadable = {
      get content(): string {
        throw new Error('unreadable');
      },
    };
    expect(() => jsonElements([{ content: 'before' }, unreadable])).toThrow('unreadable');
    expectSameBytes([{ content: 'next' }]);
  });

  it('no values give no bytes', () => {
    expect(jsonElements([])).toEqual([]);
  });
});
