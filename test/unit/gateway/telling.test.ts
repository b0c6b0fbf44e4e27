import { describe, expect, it } from 'vitest';
import { IncrementalText } from '../../../src/gateway/progress/incremental-text.ts';

const PATH = '\n[Full output: @state/logs/tool-results/demo/01M83AS4VYTZ2MF40Z18CSBTQ5.json]';

describe('a text that is sent while it is generated', () => {
  it('is continued with the file if its entry holds only a preview of what was told', () => {
    const text = new IncrementalText();
    text.add('a'.repeat(400));
    text.add('b'.repeat(2_000_000));
    const preview = `${'a'.repeat(400)}${'b'.repeat(100)}`;
    expect(text.end(`${preview}${PATH}`)).toEqual({ isMore: true, words: PATH });
  });

  it('is replaced by a preview of another text', () => {
    const text = new IncrementalText();
    text.add('c'.repeat(1000));
    const preview = `${'a'.repeat(500)}${PATH}`;
    expect(text.end(preview)).toEqual({ isMore: false, words: preview });
  });

  it('is the preview alone if nothing was told before', () => {
    const preview = `${'a'.repeat(500)}${PATH}`;
    expect(new IncrementalText().end(preview)).toEqual({ isMore: true, words: preview });
  });
});
