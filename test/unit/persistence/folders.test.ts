import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { folderOf, idOf } from '../../../src/persistence/jsonl/directory/layout.ts';
import { foldCase } from '../../support/folding-disk.mjs';
import { entry, row, storeFolderPerTest } from './support.ts';

const folder = storeFolderPerTest();

const NAME = fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/);

describe('the folder of a conversation', () => {
  it.each([
    ['demo', 'demo'],
    ['cix', 'cix'],
    ['CIX', 'cix+7'],
    ['Demo', 'demo+1'],
    ['photoTool_2-B', 'phototool_2-b+1020'],
  ])('the folder of %s is %s', (id, folder) => {
    expect(folderOf(id)).toBe(folder);
    expect(idOf(folder)).toBe(id);
  });

  it('the folder name has no capitals, fits every file system and identifies one conversation', () => {
    fc.assert(
      fc.property(NAME, (id) => {
        expect(folderOf(id)).toMatch(/^[a-z0-9_+-]{1,200}$/);
        expect(idOf(folderOf(id))).toBe(id);
      }),
      { numRuns: 2_000 },
    );
    expect(folderOf('A'.repeat(128)).length).toBe(161);
  });

  it('another spelling of a folder name belongs to no conversation', () => {
    for (const name of [
      'cix+07',
      'cix+0',
      'cix+8',
      'cix+',
      'CIX+7',
      'CIX',
      'c-x+2',
      'cix+7+7',
      'format.json',
      '+1',
      'cix+F',
    ])
      expect([name, idOf(name)]).toEqual([name, null]);
  });
});

describe('a file system that ignores case', () => {
  it('the conversations CIX and cix and their files stay separate', async () => {
    const restore = foldCase(folder.directory);
    try {
      await folder.session(async (store) => {
        await store.initialiseMarks();
        for (const id of ['CIX', 'cix']) {
          const { log, entries } = await store.open(id);
          expect(entries).toEqual([]);
          await store.markOpen(id);
          await log.append(0, [entry(0, `words of ${id}`)]);
          await store.saveRow(row(id));
          await store.saveState(id, { of: id });
          await store.toolRecords.saveOutput(id, 'e1', `output of ${id}`);
        }
      });
      await folder.session(async (store) => {
        expect(await store.conversations()).toEqual(['CIX', 'cix']);
        expect((await store.rows()).map(({ id }) => id)).toEqual(['CIX', 'cix']);
        expect(await store.openMarks()).toEqual(['CIX', 'cix']);
        expect((await store.open('CIX')).entries).toEqual([entry(0, 'words of CIX')]);
        expect(await store.toolRecords.readOutput('CIX', 'e1')).toBe('output of CIX');
        await store.clearOpen('CIX');
        expect(await store.openMarks()).toEqual(['cix']);
      });
      await folder.session(async (store) => {
        await store.delete('CIX');
        expect(await store.conversations()).toEqual(['cix']);
        expect((await store.open('cix')).entries).toEqual([entry(0, 'words of cix')]);
        expect(await store.toolRecords.readOutput('cix', 'e1')).toBe('output of cix');
      });
    } finally {
      restore();
    }
  });
});
