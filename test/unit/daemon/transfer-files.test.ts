import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exportConversation, exportToFile, importConversation } from '../../../src/daemon/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { PNG } from '../../support/uploaded-files.ts';

const NOTES = Buffer.from('a,b\n1,2\n').toString('base64');

describe('files of conversations that are exported and imported', () => {
  const root = folderPerTest();
  const at = (...names: string[]) => join(root, ...names);

  const bring = (file: string, data: string) =>
    importConversation({ dataDirectory: at(data), file, conversation: 'work', agent: 'pm' });
  async function bringUrls(...urls: string[]) {
    const parts = urls.map((url) => ({ type: 'file', file: { filename: 'notes.csv', file_data: url } }));
    await writeFile(
      at('messages.json'),
      JSON.stringify(parts.map((part) => ({ role: 'user', content: [part] }))),
    );
    return bring(at('messages.json'), 'data');
  }

  it('an own export is imported, whatever the names of its files say of their type', async () => {
    await bringUrls(`data:text/plain;base64,${NOTES}`, `data:image/png;base64,${PNG.toString('base64')}`);
    await exportToFile(at('data'), 'work', 'jsonl', at('work.jsonl'));
    expect(await bring(at('work.jsonl'), 'other')).toMatchObject({ duplicate: false });
    const exported = await exportConversation(at('other'), 'work', 'jsonl');
    expect(exported).toContain('"mediaType":"text/plain","name":"notes.csv"');
    expect(exported).toContain('"mediaType":"image/png"');
  });

  it.each([
    ['data:image/png;base64,%%%', 'message 1 (from 0): the base64 of its file is broken'],
    [`data:image/png;base64,${NOTES.slice(1)}%`, 'message 1 (from 0): the base64 of its file is broken'],
    ['data:image/png;base64,', 'message 1 (from 0): its file has no bytes'],
  ])('an import refuses the data URL %s with its place', async (url, why) => {
    await expect(bringUrls(`data:text/plain;base64,${NOTES}`, url)).rejects.toMatchObject(
      errorWith('IMPORT_INVALID', why),
    );
    await expect(exportConversation(at('data'), 'work', 'jsonl')).rejects.toThrow();
  });
});
