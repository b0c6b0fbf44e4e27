import { describe, expect, it } from 'vitest';
import { hasVisible } from '../../../src/kernel/index.ts';

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
