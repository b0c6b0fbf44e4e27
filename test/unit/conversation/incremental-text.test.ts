import { describe, expect, it } from 'vitest';
import { IncrementalText } from '../../../src/conversation/progress/progress.ts';

const PATH = '\n[Full output: @state/logs/tool-results/demo/01M83AS4VYTZ2MF40Z18CSBTQ5.json]';

describe('a text that is sent while it is generated', () => {
  it('a streamed text whose entry holds only a preview continues with the stored file', () => {
    const text = new IncrementalText();
    text.add('a'.repeat(400));
    text.add('b'.repeat(2_000_000));
    const preview = `${'a'.repeat(400)}${'b'.repeat(100)}`;
    expect(text.end(`${preview}${PATH}`)).toEqual({ isMore: true, words: PATH });
  });

  it('a streamed text is replaced by the preview of a different text', () => {
    const text = new IncrementalText();
    text.add('c'.repeat(1000));
    const preview = `${'a'.repeat(500)}${PATH}`;
    expect(text.end(preview)).toEqual({ isMore: false, words: preview });
  });

  it('a preview is sent alone if nothing was streamed before it', () => {
    const preview = `${'a'.repeat(500)}${PATH}`;
    expect(new IncrementalText().end(preview)).toEqual({ isMore: true, words: preview });
  });
});
