import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { composeLogReader } from '../../../src/daemon/compose/files.ts';
import { folderOf, idOf } from '../../../src/persistence/jsonl/directory/paths.ts';
import { inspectFiles, openFileSource, openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { foldCase } from '../../support/folding-disk.mjs';
import { batch, entry, logBytes, row, type Scene, withScene } from './support.ts';

const NAME = fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/);

/** Makes a data directory in the old layout, whose folders and marks have the names of their conversations. */
async function makeOldLayout(scene: Scene, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await scene.leave(id, logBytes([[entry(0, `words of ${id}`)]]));
    await mkdir(scene.path('conversations', id, 'outputs'));
    await writeFile(scene.path('conversations', id, 'outputs', '01M80BR2VK.json'), `output of ${id}`);
  }
  await mkdir(scene.path('open'));
  for (const name of [...ids, '.complete']) await writeFile(scene.path('open', name), '');
  const rows = ids.map((id) => row(id));
  await writeFile(scene.path('conversations', 'index.json'), JSON.stringify({ rows }));
  const format = '{"format":{"major":1,"minor":0},"writtenBy":"parleyd 0.1.0"}';
  await writeFile(scene.path('conversations', 'format.json'), format);
}

const folders = async (scene: Scene) =>
  (await readdir(scene.path('conversations'))).filter((name) => !name.endsWith('.json')).sort();

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
  it('the conversations CIX and cix and their files stay separate', () =>
    withScene(async (scene) => {
      const restore = foldCase(scene.directory);
      try {
        await scene.session(async (store) => {
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
        await scene.session(async (store) => {
          expect(await store.conversations()).toEqual(['CIX', 'cix']);
          expect((await store.rows()).map(({ id }) => id)).toEqual(['CIX', 'cix']);
          expect(await store.openMarks()).toEqual(['CIX', 'cix']);
          expect((await store.open('CIX')).entries).toEqual([entry(0, 'words of CIX')]);
          expect(await store.toolRecords.readOutput('CIX', 'e1')).toBe('output of CIX');
          await store.clearOpen('CIX');
          expect(await store.openMarks()).toEqual(['cix']);
        });
        await scene.session(async (store) => {
          await store.delete('CIX');
          expect(await store.conversations()).toEqual(['cix']);
          expect((await store.open('cix')).entries).toEqual([entry(0, 'words of cix')]);
          expect(await store.toolRecords.readOutput('cix', 'e1')).toBe('output of cix');
        });
      } finally {
        restore();
      }
    }));

  it('a folder that an older version used for two conversations is reported, and nothing is merged', () =>
    withScene(async (scene) => {
      await makeOldLayout(scene, ['CIX', 'other']);
      const rows = ['CIX', 'cix', 'other'].map((id) => row(id));
      await writeFile(scene.path('conversations', 'index.json'), JSON.stringify({ rows }));
      const restore = foldCase(scene.directory);
      try {
        await scene.session(async (store) => {
          expect(await store.conversations()).toEqual(['CIX', 'other']);
          expect((await store.open('cix')).entries).toEqual([]);
        });
        expect(scene.events).toMatchObject([
          { type: 'folder-shared', conversation: 'cix', folder: scene.path('conversations', 'cix+7') },
        ]);
      } finally {
        restore();
      }
    }));
});

describe('folders of the old layout', () => {
  it('the next start renames old folders and marks, and later starts change nothing', () =>
    withScene(async (scene) => {
      await makeOldLayout(scene, ['CIX', 'cix', 'Demo']);
      for (let start = 0; start < 2; start++) {
        await scene.session(async (store) => {
          expect(await store.conversations()).toEqual(['CIX', 'Demo', 'cix']);
          expect(await store.openMarks()).toEqual(['CIX', 'Demo', 'cix']);
          expect((await store.rows()).length).toBe(3);
          expect((await store.open('CIX')).entries).toEqual([entry(0, 'words of CIX')]);
          expect(await store.toolRecords.readOutput('Demo', '01M80BR2VK')).toBe('output of Demo');
        });
        expect(await folders(scene)).toEqual(['cix', 'cix+7', 'demo+1']);
        expect((await readdir(scene.path('open'))).sort()).toEqual(['.complete', 'cix', 'cix+7', 'demo+1']);
      }
      expect(scene.events).toEqual([]);
      const format = JSON.parse(await readFile(scene.path('conversations', 'format.json'), 'utf8'));
      expect(format.format).toEqual({ major: 2, minor: 0 });
    }));

  it('a reader without the lock finds old folders and changes nothing', () =>
    withScene(async (scene) => {
      await makeOldLayout(scene, ['CIX', 'cix']);
      const inspector = inspectFiles(scene.directory);
      expect(await inspector.conversations()).toEqual(['CIX', 'cix']);
      const found = await inspector.inspect('CIX');
      expect(found).toMatchObject({
        log: { entries: [entry(0, 'words of CIX')] },
        isMarked: true,
        unreadable: [],
      });
      expect(found.hasOutput('01M80BR2VK')).toBe(true);
      expect(await composeLogReader(scene.directory, 'CIX')).toEqual([entry(0, 'words of CIX')]);
      const { archive, close } = await openFileSource(scene.directory);
      expect(await archive.entries('CIX')).toEqual([entry(0, 'words of CIX')]);
      expect(await archive.output('CIX', '01M80BR2VK')).toBe('output of CIX');
      expect(await archive.outputs('CIX')).toEqual(['01M80BR2VK']);
      await close();
      expect(await folders(scene)).toEqual(['CIX', 'cix']);
    }));

  it('an old folder whose new name is taken stays, and each start reports it', () =>
    withScene(async (scene) => {
      await scene.leave('cix+7', logBytes([[entry(0, 'newer')]]));
      await scene.leave('CIX', logBytes([batch(0, 2)]));
      for (let start = 1; start <= 2; start++) {
        await scene.session(async (store) => {
          expect(await store.conversations()).toEqual(['CIX']);
          expect((await store.open('CIX')).entries).toEqual([entry(0, 'newer')]);
        });
        expect(scene.events.length).toBe(start);
        expect(scene.events.at(-1)).toMatchObject({
          type: 'folder-taken',
          conversation: 'CIX',
          folder: scene.path('conversations', 'CIX'),
        });
      }
      expect(await folders(scene)).toEqual(['CIX', 'cix+7']);
      const { unreadable } = await inspectFiles(scene.directory).inspect('CIX');
      expect(unreadable).toEqual([expect.stringContaining('conversations/CIX')]);
      await expect(openFileSource(scene.directory)).rejects.toMatchObject({
        code: 'MIGRATION_SOURCE_DAMAGED',
      });
    }));

  it('an older version that would not find the renamed folders refuses to open them', () =>
    withScene(async (scene) => {
      await scene.session(async () => undefined);
      const before = openFileStore(scene.directory, { format: { major: 1, minor: 0 } });
      await expect(before).rejects.toMatchObject({ code: 'DATA_FORMAT_UNKNOWN' });
    }));
});
