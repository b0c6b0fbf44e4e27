import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { renderResult, toolResult } from '../../../../src/tools/mcp/render-result.ts';

function shown(result: object): string {
  return renderResult(toolResult.parse(result)).text;
}

function base64(bytes: number): string {
  return Buffer.alloc(bytes).toString('base64');
}

/** Base64 of bytes without repetition. */
function noise(bytes: number): string {
  const seed = Buffer.from('parley');
  const hashes = Array.from({ length: Math.ceil(bytes / 32) }, (_, n) =>
    createHash('sha256').update(seed).update(String(n)).digest(),
  );
  return Buffer.concat(hashes).subarray(0, bytes).toString('base64');
}

describe('the rendered result of an MCP tool', () => {
  it('text blocks are rendered one per line', () => {
    const content = [
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
    ];
    expect(shown({ content })).toBe('one\ntwo');
  });

  it('images and audio are files, named by number, type and size (RENDER-RESULT-1)', () => {
    const content = [
      { type: 'image', data: base64(12_345), mimeType: 'image/png' },
      { type: 'audio', data: base64(7), mimeType: 'audio/wav' },
      { type: 'image', data: base64(2_345_678), mimeType: 'image/jpeg' },
    ];
    expect(shown({ content })).toBe(
      '[file 1: image/png, 12 kB]\n[file 2: audio/wav, 7 B]\n[file 3: image/jpeg, 2.3 MB]',
    );
  });

  it('the bytes, name and declared type of each picture and binary resource are returned, each once', () => {
    const image = { type: 'image', data: 'cGljdHVyZQ==', mimeType: 'image/png' };
    const resource = { uri: 'file:///a/b%20c.bin?v=1#x', blob: 'AAEC' };
    const content = [image, { type: 'text', text: 'and' }, { type: 'resource', resource }, image];
    const { text, files } = renderResult(toolResult.parse({ content }));
    expect(text).toBe(
      '[file 1: image/png, 7 B]\nand\n[file 2: file:///a/b%20c.bin?v=1#x, application/octet-stream, 3 B]\n[file 1: image/png, 7 B]',
    );
    expect(files).toEqual([
      { bytes: Buffer.from('picture'), mediaType: 'image/png' },
      { bytes: Buffer.from([0, 1, 2]), name: 'b c.bin', mediaType: 'application/octet-stream' },
    ]);
  });

  it.each([
    [
      'an image without data',
      { type: 'image', data: '', mimeType: 'image/png' },
      '[image/png, 0 B: not kept]',
    ],
    [
      'a resource without content',
      { type: 'resource', resource: { uri: 'a' } },
      '[a, application/octet-stream, 0 B: not kept]',
    ],
  ])('%s is no file and is named', (_, given, words) => {
    expect(renderResult(toolResult.parse({ content: [given] }))).toEqual({ text: words, files: [] });
  });

  it('resources are rendered as their text, other resources and links by name', () => {
    const content = [
      { type: 'resource', resource: { uri: 'file:///a.md', mimeType: 'text/markdown', text: '# A' } },
      { type: 'resource', resource: { uri: 'file:///a.bin', blob: base64(2000) } },
      { type: 'resource_link', uri: 'file:///b.md', name: 'b', description: 'the other', size: 4000 },
    ];
    expect(shown({ content })).toBe(
      '[file:///a.md]\n# A\n[file 1: file:///a.bin, application/octet-stream, 2 kB]\n[link to b (file:///b.md, 4 kB): the other]',
    );
  });

  it('structured content is rendered beside a text (RENDER-RESULT-2)', () => {
    const structuredContent = { degrees: 20 };
    expect(shown({ structuredContent })).toBe('{"degrees":20}');
    const content = [{ type: 'text', text: 'It is mild.' }];
    expect(shown({ structuredContent, content })).toBe('It is mild.\n{"degrees":20}');
    expect(shown({ structuredContent, content: [{ type: 'text', text: '20' }] })).toBe('20\n{"degrees":20}');
    const image = { type: 'image', data: base64(1), mimeType: 'image/png' };
    expect(shown({ structuredContent, content: [image] })).toBe('[file 1: image/png, 1 B]\n{"degrees":20}');
  });

  it.each<[string, unknown, string[]]>([
    ['as JSON', { degrees: 20 }, ['{"degrees":20}']],
    ['as JSON in lines', { degrees: 20 }, ['{\n  "degrees": 20\n}']],
    ['with a text before it', { degrees: 20 }, ['It is mild.', '{"degrees":20}']],
    ['as a wrapped text', { result: '20°' }, ['20°']],
    ['as a text under another key', { content: 'remember' }, ['remember']],
    ['as a wrapped number', { result: 20 }, ['20']],
    ['as wrapped texts', { result: ['a', 'b'] }, ['a', 'b']],
    ['as wrapped objects', { result: [{ a: 1 }, { a: 2 }] }, ['{"a":1}', '{"a":2}']],
    ['as an empty wrapped list', { result: [] }, []],
  ])(
    'structured content is not repeated if the text has it %s (RENDER-RESULT-2)',
    (_, structuredContent, texts) => {
      const content = texts.map((text) => ({ type: 'text', text }));
      expect(shown({ structuredContent, content })).toBe(texts.join('\n'));
    },
  );

  describe('binary data in structured content', () => {
    const png = noise(3_000);
    const image = { type: 'image', data: png, mimeType: 'image/png' };
    const notShown = '[file 1: image/png, 3 kB]';

    it.each<[string, object, string]>([
      ['a content block', { picture: image }, `{"picture":"${notShown}"}`],
      ['the data of a block of the content', { raw: png }, `{"raw":"${notShown}"}`],
      ['a data URL', { url: `data:image/png;base64,${png}` }, `{"url":"${notShown}"}`],
      [
        'an embedded resource',
        { list: [{ uri: 'a', blob: png, mimeType: 'image/png' }] },
        `{"list":["${notShown}"]}`,
      ],
      [
        'small data that names its type',
        { type: 'audio', data: noise(9), mimeType: 'audio/wav' },
        '"[audio/wav, 9 B: not kept]"',
      ],
    ])(
      'binary data in structured content is replaced by kind and size: %s (R3)',
      (_, structuredContent, words) => {
        expect(shown({ structuredContent, content: [image] })).toBe(`${notShown}\n${words}`);
      },
    );

    it('binary data is recognized by its characters alone (RENDER-RESULT-3)', () => {
      const jpeg = `/9j/${noise(3_000)}`;
      const lines = noise(3_000).replaceAll(/(.{76})/g, '$1\n');
      expect(shown({ structuredContent: { a: jpeg, b: noise(3_000), c: lines } })).toBe(
        '{"a":"[base64, 3 kB: not kept]","b":"[base64, 3 kB: not kept]","c":"[base64, 3 kB: not kept]"}',
      );
    });

    it('binary data is recognized in a text that repeats the structured content (RENDER-RESULT-3)', () => {
      const structuredContent = { picture: image, name: 'chart' };
      const content = [{ type: 'text', text: JSON.stringify(structuredContent, null, 2) }];
      expect(shown({ structuredContent, content })).toBe(
        '{"picture":"[image/png, 3 kB: not kept]","name":"chart"}',
      );
    });

    it('long words, numbers and texts are not taken for binary data', () => {
      const structuredContent = {
        hex: 'deadbeef01'.repeat(200),
        words: 'Some words and then some more. '.repeat(100),
        path: 'a/'.repeat(1_000),
        typed: { mimeType: 'text/plain', data: 'YWJj' },
      };
      expect(shown({ structuredContent })).toBe(JSON.stringify(structuredContent));
      const text = `{"picture": "${png}"}`;
      expect(shown({ content: [{ type: 'text', text }] })).toBe(text); // A text is what the tool itself wrote.
    });
  });

  it('an empty result is rendered as such', () => {
    expect(shown({})).toBe('');
  });

  it('a content block of an unknown kind is named (RENDER-RESULT-1)', () => {
    const content = [{ type: 'video', data: '…' }, 7, { type: 'text' }, { type: 'text', text: 'well' }];
    expect(shown({ content })).toBe(
      '[content of type video: not kept]\n[content of no type: not kept]\n[content of type text: not kept]\nwell',
    );
  });
});
