import { describe, expect, it } from 'vitest';
import {
  dataUrlsIn,
  type Entry,
  entriesFromMessages,
  exportEntries,
  type FilePart,
} from '../../../src/conversation/index.ts';

const picture: FilePart = {
  type: 'file',
  sha256: 'a'.repeat(64),
  name: 'plan.png',
  mediaType: 'image/png',
  size: 9,
};
const paper: FilePart = {
  type: 'file',
  sha256: 'b'.repeat(64),
  name: 'a.pdf',
  mediaType: 'application/pdf',
  size: 2_000,
};
const LINES = [
  '[file plan.png: image/png, 9 B, @blob/aaaaaaaaaaaa]',
  '[file a.pdf: application/pdf, 2 kB, @blob/bbbbbbbbbbbb]',
];
const urls = new Map([
  [picture.sha256, 'data:image/png;base64,AAAA'],
  [paper.sha256, 'data:application/pdf;base64,BBBB'],
]);
const urlOf = ({ sha256 }: FilePart) => urls.get(sha256);
const said = (index: number, more: object) => ({
  index,
  id: `m${index}`,
  createdAt: '2026-03-01T10:00:00.000Z',
  type: 'message',
  ...more,
});
const ann = { kind: 'person', id: 'ann', name: 'ann' };
const lead = { kind: 'agent', id: 'lead', name: 'Lead' };
const call = { id: 'c', type: 'function', function: { name: 'shot', arguments: '{}' } };
const entries = [
  said(0, {
    role: 'user',
    author: ann,
    content: 'Look:\nand this',
    parts: [{ type: 'text', text: 'Look:' }, picture, paper, { type: 'text', text: 'and this' }],
  }),
  said(1, { role: 'assistant', author: lead, content: null, tool_calls: [call] }),
  said(2, {
    role: 'tool',
    author: lead,
    content: 'Shot.',
    call: { index: 1, position: 0 },
    parts: [{ type: 'text', text: 'Shot.' }, picture],
  }),
  said(3, {
    role: 'assistant',
    author: lead,
    content: 'Here.',
    parts: [{ type: 'text', text: 'Here.' }, picture],
  }),
] as unknown as Entry[];

describe('files of an exported conversation', () => {
  it('are named in each message of an export for chat completions', () => {
    const contents = JSON.parse(exportEntries(entries, 'openai')).map(
      ({ content }: { content: unknown }) => content,
    );
    expect(contents).toEqual([
      `Look:\nand this\n${LINES.join('\n')}`,
      null,
      `Shot.\n${LINES[0]}`,
      `Here.\n${LINES[0]}`,
    ]);
  });

  it('are parts of the messages of people if their bytes are asked for, and named elsewhere', () => {
    const contents = JSON.parse(exportEntries(entries, 'openai', urlOf)).map(
      ({ content }: { content: unknown }) => content,
    );
    expect(contents).toEqual([
      [
        { type: 'text', text: 'Look:' },
        { type: 'image_url', image_url: { url: urlOf(picture) } },
        { type: 'file', file: { filename: 'a.pdf', file_data: urlOf(paper) } },
        { type: 'text', text: 'and this' },
      ],
      null,
      `Shot.\n${LINES[0]}`,
      `Here.\n${LINES[0]}`,
    ]);
  });

  it('are named where their bytes are missing', () => {
    const only = ({ sha256 }: FilePart) => (sha256 === picture.sha256 ? urlOf(picture) : undefined);
    const [{ content }] = JSON.parse(exportEntries(entries, 'openai', only));
    expect(content[2]).toEqual({ type: 'text', text: LINES[1] });
  });

  it('are named in Markdown, within the quote of their message', () => {
    const markdown = exportEntries(entries, 'markdown');
    expect(markdown).toContain(`> Look:\n> and this\n> ${LINES.join('\n> ')}`);
    expect(markdown).toContain(`\`\`\`\nShot.\n${LINES[0]}\n\`\`\``);
  });

  it('are the same after an import, which stores the bytes of each once', () => {
    const messages = JSON.parse(exportEntries(entries, 'openai', urlOf));
    expect(dataUrlsIn([...messages, ...messages])).toEqual([...urls.values()]);
    const stored = new Map([
      [urlOf(picture), { ...picture, name: 'other.png' }],
      [urlOf(paper), paper],
    ]);
    const made = entriesFromMessages(messages, 'lead', (url) => stored.get(url));
    if (!made.ok) throw new Error(made.reason);
    expect(made.entries[0]).toMatchObject({
      content: 'Look:\nand this',
      parts: [{}, { sha256: picture.sha256 }, { ...paper }, {}],
    });
    expect(JSON.stringify(made.entries)).not.toContain('base64');
    expect(JSON.parse(exportEntries(made.entries, 'openai', urlOf))).toEqual(messages);
  });

  it('stay in the fields of the message if they are not stored', () => {
    const messages = JSON.parse(exportEntries(entries.slice(0, 1), 'openai', urlOf));
    const made = entriesFromMessages(messages, 'lead');
    expect(made).toMatchObject({ entries: [{ meta: { imported: { content: messages[0].content } } }] });
    expect(made.ok && made.entries[0]).not.toHaveProperty('parts');
  });
});
