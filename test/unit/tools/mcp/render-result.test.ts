import { describe, expect, it } from 'vitest';
import { renderResult, toolResult } from '../../../../src/tools/mcp/render-result.ts';

function shown(result: object): string {
  return renderResult(toolResult.parse(result));
}

function base64(bytes: number): string {
  return Buffer.alloc(bytes).toString('base64');
}

describe('the result of a tool, as a model reads it', () => {
  it('is its text, line by line', () => {
    const content = [
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
    ];
    expect(shown({ content })).toBe('one\ntwo');
  });

  it('names images and sound with kind and size (R1)', () => {
    const content = [
      { type: 'image', data: base64(12_345), mimeType: 'image/png' },
      { type: 'audio', data: base64(7), mimeType: 'audio/wav' },
      { type: 'image', data: base64(2_345_678), mimeType: 'image/jpeg' },
    ];
    expect(shown({ content })).toBe(
      '[image/png, 12 kB: not shown]\n[audio/wav, 7 B: not shown]\n[image/jpeg, 2.3 MB: not shown]',
    );
  });

  it('holds the text of resources, names other ones, and names links', () => {
    const content = [
      { type: 'resource', resource: { uri: 'file:///a.md', mimeType: 'text/markdown', text: '# A' } },
      { type: 'resource', resource: { uri: 'file:///a.bin', blob: base64(2000) } },
      { type: 'resource_link', uri: 'file:///b.md', name: 'b', description: 'the other', size: 4000 },
    ];
    expect(shown({ content })).toBe(
      '[file:///a.md]\n# A\n[file:///a.bin, application/octet-stream, 2 kB: not shown]\n[link to b (file:///b.md, 4 kB): the other]',
    );
  });

  it('is the structured content where there are no words (R2)', () => {
    const structuredContent = { degrees: 20 };
    expect(shown({ structuredContent })).toBe('{"degrees":20}');
    expect(shown({ structuredContent, content: [{ type: 'text', text: '20°' }] })).toBe('20°');
    const image = { type: 'image', data: base64(1), mimeType: 'image/png' };
    expect(shown({ structuredContent, content: [image] })).toBe(
      '[image/png, 1 B: not shown]\n{"degrees":20}',
    );
  });

  it('may be empty', () => {
    expect(shown({})).toBe('');
  });

  it('says of what it does not know that it is there (R1)', () => {
    const content = [{ type: 'video', data: '…' }, 7, { type: 'text' }, { type: 'text', text: 'well' }];
    expect(shown({ content })).toBe(
      '[content of type video: not shown]\n[content of no type: not shown]\n[content of type text: not shown]\nwell',
    );
  });
});
