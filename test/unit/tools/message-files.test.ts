import { createHash } from 'node:crypto';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFAULT_VIEW_POLICY, type Entry, type FilePart, partsOf } from '../../../src/conversation/index.ts';
import { logOf } from '../conversation/recall-log.ts';
import { content, failed, openTools, SECRET, type TestTools } from './support.ts';

/** Files of messages: `@blob/…`, and `attach`. */

const ALICE = { kind: 'person', id: 'alice', name: 'Alice' } as const;

const hashOf = (bytes: string) => createHash('sha256').update(bytes, 'latin1').digest('hex');
const fileOf = (bytes: string, name?: string): FilePart => ({
  ...{ type: 'file', sha256: hashOf(bytes), mediaType: 'application/x-test', size: bytes.length },
  ...(name !== undefined && { name }),
});
const pathOf = (bytes: string) => `@blob/${hashOf(bytes).slice(0, 12)}`;

const TEXT = 'one\ntwo\nthree';
const ZIP = 'PK\x03\x04\0';
const OTHER = 'of another conversation';

const log = logOf({
  ...{ type: 'message', role: 'user', author: ALICE, content: '' },
  parts: partsOf('', [fileOf(TEXT, 'a.txt'), fileOf(ZIP, 'a.zip')]),
});

function opened(
  stored: readonly string[] = [TEXT, ZIP, OTHER],
  entries: readonly Entry[] = log,
): Promise<TestTools> {
  const bytes = new Map(stored.map((one) => [hashOf(one), Buffer.from(one, 'latin1')]));
  return openTools({
    conversations: {
      entriesOf: async (conversation) => (conversation === 'work' ? entries : []),
      viewPolicyOf: () => DEFAULT_VIEW_POLICY,
    },
    blobs: async (sha256) => bytes.get(sha256) ?? null,
  });
}

describe('a path @blob/…', () => {
  it('fs_read reads a text as a text, page by page', async () => {
    const { run } = await opened();
    expect(content(await run('fs_read', { path: pathOf(TEXT) }))).toBe(TEXT);
    expect(content(await run('fs_read', { path: pathOf(TEXT), from: 2, lines: 1 }))).toBe(
      'two\n[there is more: continue with from: 3]',
    );
  });

  it('fs_read reads a large output that was copied with its entry, by the path of the other conversation', async () => {
    const [entry] = logOf({
      ...{ type: 'message', role: 'tool', author: ALICE, content: '' },
      copiedFrom: 'first',
    });
    const entries = [{ ...entry, id: 'e0' } as Entry];
    const { run, file } = await opened([], entries);
    await file('outputs/work/e0.json', 'whole');
    await file('outputs/first/e1.json', OTHER);
    const path = (owner: string, id: string) => ({ path: `@state/logs/tool-results/${owner}/${id}.json` });
    expect(content(await run('fs_read', path('first', 'e0')))).toBe('whole');
    for (const other of [path('first', 'e1'), path('other', 'e0')])
      expect(await run('fs_read', other)).toMatchObject({ kind: 'failed', code: 'PATH_REFUSED' });
  });

  it('fs_read gives anything else as a file', async () => {
    const { run } = await opened();
    expect(await run('fs_read', { path: pathOf(ZIP) })).toEqual({
      kind: 'completed',
      content: `[file 1: ${pathOf(ZIP)}, 5 B]`,
      files: [{ bytes: Buffer.from(ZIP, 'latin1'), name: 'a.zip', mediaType: 'application/x-test' }],
    });
  });

  it.each(['fs_read', 'attach'])('%s reads no file that only another conversation names', async (name) => {
    const { run } = await opened();
    const outcome = await run(name, { path: pathOf(OTHER) });
    expect(outcome).toEqual(failed('NOT_FOUND', 'no message of this conversation has the file'));
    expect(JSON.stringify(outcome)).not.toContain(OTHER);
  });

  it('fs_read reports a file whose bytes are gone', async () => {
    const { run } = await opened([]);
    expect(await run('fs_read', { path: pathOf(TEXT) })).toEqual(failed('NOT_FOUND', 'has the file'));
  });

  it('no tool writes, lists or searches there', async () => {
    const { run } = await opened();
    const path = pathOf(TEXT);
    for (const [name, more] of [
      ['fs_write', { content: 'x' }],
      ['fs_edit', { find: 'one', replace: 'two' }],
      ['fs_list', {}],
      ['fs_search', { query: 'one' }],
    ] as const)
      expect(await run(name, { path, ...more })).toEqual(
        failed('PATH_REFUSED', 'files of messages can only be read, with fs_read'),
      );
  });
});

describe('attach', () => {
  it('gives a file of the project with its name, whatever its type is', async () => {
    const { run, file } = await opened();
    await file('project/reports/a.csv', 'a;b');
    expect(await run('attach', { path: '@project/reports/a.csv' })).toEqual({
      kind: 'completed',
      content: '[file 1: @project/reports/a.csv, 3 B] is attached to your next message.',
      files: [{ bytes: Buffer.from('a;b'), name: 'a.csv' }],
    });
  });

  it('gives a file of an earlier message with its name', async () => {
    const { run } = await opened();
    expect(await run('attach', { path: pathOf(TEXT) })).toMatchObject({
      files: [{ bytes: Buffer.from(TEXT), name: 'a.txt' }],
    });
  });

  it('reads no folder, no output of a call, no closed file and nothing outside', async () => {
    const { run, file, project, directory } = await opened();
    await file('project/data/key', SECRET);
    await symlink(join(directory, 'secret'), join(project, 'link'));
    for (const path of [
      '@project',
      '@project/',
      '@state/logs/tool-results/work/1.json',
      '@project/data/key',
      '@project/link',
    ])
      expect(await run('attach', { path })).toMatchObject({
        kind: 'failed',
        code: expect.stringMatching(/^(PATH_REFUSED|NOT_A_FILE)$/),
      });
  });
});
