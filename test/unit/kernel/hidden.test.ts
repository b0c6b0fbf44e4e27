import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalArguments,
  hasVisible,
  hideInside,
  hideValues,
  visibleArguments,
  visibleCall,
  visibleText,
} from '../../../src/kernel/index.ts';
import { anyCharacter } from '../../support/characters.ts';
import { runs } from '../../support/runs.ts';

/** Independent of the code: characters that a terminal or browser does not draw, or draws elsewhere. */
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\p{Surrogate}\u2800]|(?! )\p{White_Space}/u;

const sly = fc.constantFrom(
  ...['\u202e', '\u2066', '\u200b', '\u200d', '\ufe0f', '\u{e0041}', '\u00ad', '\u3164', '\u115f', '\u034f'],
  '\u00a0',
  '\u3000',
  '\u2028',
  '\u0000',
  '\u001b',
  '\u009b',
  '\r',
  '\n',
  '\t',
  '\ud800',
  '\udc00',
  '\ufdd0',
  ...['\\', '\\u202e', '\\n', '"', 'a', ' ', '😀', '\u2800', '(not JSON) ', '{', '}'],
);
const text = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.array(sly).map((parts) => parts.join('')),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
);

const NESTED = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;

/** The inverse of `visibleText`. */
function recovered(shown: string): string {
  return shown.replace(/\\(?:u([0-9a-f]{4})|([\\nt]))/g, (_, hex: string | undefined, sign: string) =>
    hex === undefined
      ? { '\\': '\\', n: '\n', t: '\t' }[sign]!
      : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

describe('text for a person who approves', () => {
  it('no control, bidi or invisible character remains in any text (HIDDEN-1)', () => {
    fc.assert(
      fc.property(text, text, (name, given) => {
        expect(visibleCall(name, given)).not.toMatch(UNSEEN);
        expect(visibleCall(name, JSON.stringify({ [given]: given }))).not.toMatch(UNSEEN);
      }),
      { numRuns: runs(500) },
    );
  });

  it('the original text can be recovered from the shown one (HIDDEN-2)', () => {
    fc.assert(
      fc.property(text, (given) => {
        expect(recovered(visibleText(given))).toBe(given);
      }),
      { numRuns: runs(500) },
    );
  });

  it('shown JSON is the same JSON, however it was written (HIDDEN-2)', () => {
    fc.assert(
      fc.property(fc.dictionary(text, text), fc.constantFrom('', '\t', '\n', '\r\n  '), (value, blank) => {
        const raw = JSON.stringify(value)
          .replace(/\\u([0-9a-f]{4})/g, (escaped, hex: string) => {
            const character = String.fromCharCode(Number.parseInt(hex, 16));
            return /[\p{Cc}"\\]/u.test(character) ? escaped : character;
          })
          .replace(/^\{/, `${blank}{${blank}`);
        fc.pre(isJson(raw));
        expect(JSON.parse(visibleArguments(raw))).toEqual(JSON.parse(raw));
      }),
      { numRuns: runs(500) },
    );
  });

  it('what is shown is what runs: the canonical arguments are the same when read, written and shown again (HIDDEN-4)', () => {
    fc.assert(
      fc.property(fc.jsonValue(), text, fc.double(), (value, key, number) => {
        const raw = `{${JSON.stringify(key)}:1,${JSON.stringify(key)}:${number},"value":${JSON.stringify(value)}}`;
        fc.pre(isJson(raw));
        const canonical = canonicalArguments(raw);
        expect(visibleArguments(canonical)).toBe(canonical);
        expect(canonicalArguments(JSON.stringify(JSON.parse(canonical)))).toBe(canonical);
      }),
      { numRuns: runs(500) },
    );
  });

  it.each(['[1, 2]', '{"a":1e999}', NESTED, 'rm x', 'null'])(
    'what cannot run stays as it is: %.20s',
    (given) => {
      expect(canonicalArguments(given)).toBe(given);
    },
  );

  it('text that is not JSON is marked, so that it cannot look like JSON (HIDDEN-2)', () => {
    fc.assert(
      fc.property(text, (given) => {
        const shown = visibleArguments(given);
        if (given.trim() === '') expect(shown).toBe('{}');
        else if (isJson(given)) expect(shown).not.toMatch(/^\(not JSON\)/);
        else expect(recovered(shown.replace(/^\(not JSON\) /, ''))).toBe(given);
      }),
      { numRuns: runs(500) },
    );
  });

  it('no arguments are shown as the object that runs (HIDDEN-4)', () => {
    for (const given of ['', ' \n']) expect(visibleArguments(given)).toBe('{}');
  });

  it.each([
    ['a bidi override', '{"command":"echo \u202egpj.exe"}', String.raw`{"command":"echo \u202egpj.exe"}`],
    ['a no-break space', '{"command":"rm\u00a0x"}', String.raw`{"command":"rm\u00a0x"}`],
    ['a filler that is drawn as nothing', '{"a":"\u3164"}', String.raw`{"a":"\u3164"}`],
    ['a tag character', '{"a":"\u{e0041}"}', String.raw`{"a":"\udb40\udc41"}`],
    ['a backslash before such an escape', String.raw`{"a":"\\u202e"}`, String.raw`{"a":"\\u202e"}`],
    ['line breaks between values', '{\n\t"a": 1\r\n}', '{"a":1}'],
    ['a key that is there twice', String.raw`{"command":"ls","comm\u0061nd":"rm x"}`, '{"command":"rm x"}'],
    ['a number that is rounded', '{"a":12345678901234567}', '{"a":12345678901234568}'],
    ['a zero below zero', '{"a":-0}', '{"a":0}'],
    ['half a surrogate', String.raw`{"a":"\ud800"}`, String.raw`{"a":"\ud800"}`],
    ['what is nested too deeply to be written again', NESTED, NESTED],
    ['no JSON', 'rm\n\\u202e', String.raw`(not JSON) rm\n\\u202e`],
  ])('visible text shows %s', (_, given, shown) => {
    expect(visibleArguments(given)).toBe(shown);
  });
});

function isJson(given: string): boolean {
  try {
    JSON.parse(given);
    return true;
  } catch {
    return false;
  }
}

describe('the values of secrets in a text', () => {
  const hide = hideValues([
    's3cret/"one"',
    'Bearer key-123',
    'key-1234',
    'abc',
    '',
    'true',
    'a+(b)|[c]$',
    'secret',
  ]);

  it.each([
    ['a s3cret/"one" b', 'a [secret] b'],
    ['https://x/?key=s3cret%2F%22one%22', 'https://x/?key=[secret]'],
    [JSON.stringify({ a: 's3cret/"one"' }), '{"a":"[secret]"}'],
    ['the key-123 of Bearer key-123', 'the [secret] of [secret]'],
    ['key-1234', '[secret]'],
    ['abc is too short to be hidden', 'abc is too short to be hidden'],
    ['{"is":true}', '{"is":true}'],
    ['a+(b)|[c]$ and a secret', '[secret] and a [secret]'],
  ])(
    'the secrets of %j are hidden, also in a URL, in JSON and without the scheme of a header',
    (text, shown) => {
      expect(hide(text)).toBe(shown);
    },
  );

  it('secrets are hidden in each text and key of a value, and other values are kept', () => {
    const date = new Date(0);
    expect(hideInside(hide, { a: ['key-1234', 1, null, date], 'key-1234': { b: 'key-1234' } })).toEqual({
      a: ['[secret]', 1, null, date],
      '[secret]': { b: '[secret]' },
    });
  });
});

const named = (text: string) =>
  [...text].map((one) => `U+${one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`).join(' ');
const table = (texts: readonly string[]) => texts.map((text): [string, string] => [named(text), text]);

describe('hasVisible', () => {
  it.each(
    table([
      ...['', ' ', '\n\t\r', '\u00a0', '\u3000', '\u2028', '\u0085', '\0', '\u001b'],
      ...['\u200b', '\u2060', '\u00ad', '\u202e', '\u2066', '\ufeff', '\u200d', '\ufe0f', '\u061c'],
      ...['\u2800', '\u3164', '\uffa0', '\u115f', '\u034f', '\u180e', '\u17b4', '\u{e0041}', '\u{1d159}'],
      ...['\ufffe', '\ufff9', '\u{1d173}', ' \u200b\u2800\n\u3164 '],
    ]),
  )('the text %s has no visible character', (_, text) => {
    expect(hasVisible(text)).toBe(false);
  });

  it.each(
    table([
      ...['a', '.', '0', '上', 'ß', '\u0301', '\u20e3', '\u093f', '\u{1f600}', '\ue000', '\ufffd', '\ufffc'],
      ...['\u2764\ufe0f', '\u{1f469}\u200d\u{1f4bb}', '\u{1f1e9}\u{1f1ea}', '\u200b\u202ex', '\n\u2800-\n'],
    ]),
  )('the text %s has a visible character', (_, text) => {
    expect(hasVisible(text)).toBe(true);
  });
});
