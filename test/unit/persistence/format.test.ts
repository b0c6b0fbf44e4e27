import { readdir, readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type Entry, viewOf } from '../../../src/conversation/index.ts';
import { VERSION } from '../../../src/kernel/index.ts';
import { checkFormat } from '../../../src/persistence/jsonl/directory/layout.ts';
import { errorWith } from '../../support/error-with.ts';
import { batch, entry, logBytes, type StoreFolder, storeFolderPerTest } from './support.ts';

const folder = storeFolderPerTest();

const formatFile = ({ path }: StoreFolder) => path('conversations', 'format.json');
const stored = async (folder: StoreFolder) => JSON.parse(await readFile(formatFile(folder), 'utf8'));

describe('the version of the stored format', () => {
  it('a new directory gets a format file that names the version of its writer', async () => {
    await folder.session(async () => undefined);
    expect(await stored(folder)).toEqual({ format: 1, writtenBy: `parleyd ${VERSION}` });
  });

  it('logs without a format file get one, and additions to it are kept', async () => {
    await folder.leave('demo', logBytes([batch(0, 2)]));
    await folder.session(async (store) => expect((await store.open('demo')).entries).toEqual(batch(0, 2)));
    expect((await stored(folder)).format).toBe(1);
    const text = '{"format":1,"writtenBy":"parleyd 0.9.0","more":true}';
    await writeFile(formatFile(folder), text);
    await folder.session(async () => undefined);
    expect(await readFile(formatFile(folder), 'utf8')).toBe(text);
  });

  it('entries with unknown fields and types are kept', async () => {
    const later = { ...entry(1), type: 'mood-set', mood: 'glad' } as unknown as Entry;
    await folder.leave('demo', logBytes([[entry(0), later]]));
    const before = await readFile(folder.path('conversations', 'demo', 'log.jsonl'));
    await folder.session(async (store) => {
      const { log, entries } = await store.open('demo');
      expect(entries).toEqual([entry(0), later]);
      await log.append(2, [entry(2)]);
    });
    const after = await readFile(folder.path('conversations', 'demo', 'log.jsonl'));
    expect(after.subarray(0, before.length).equals(before)).toBe(true);
  });

  it('another version is refused by name before anything is changed', async () => {
    await folder.leave('demo', logBytes([batch(0, 2)]));
    await writeFile(formatFile(folder), '{"format":3,"writtenBy":"parleyd 4.5.6"}');
    await writeFile(folder.path('conversations', 'index.json'), 'a list of another kind');
    const refusal = errorWith('DATA_FORMAT_UNKNOWN', /format 3.*parleyd 4\.5\.6/);
    await expect(folder.session(async () => undefined)).rejects.toMatchObject(refusal);
    await expect(checkFormat(folder.directory)).rejects.toMatchObject(refusal);
    expect((await readdir(folder.path('conversations'))).sort()).toEqual([
      'demo',
      'format.json',
      'index.json',
    ]);
    // The lock is released: the right version can open the directory at once.
    await writeFile(folder.path('conversations', 'index.json'), '{"rows":[]}');
    await writeFile(formatFile(folder), '{"format":1,"writtenBy":"parleyd 0.1.0"}');
    await folder.session(async (store) => expect((await store.open('demo')).entries).toEqual(batch(0, 2)));
  });

  it.each([
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[1]'],
    ['no version', '{"writtenBy":"parleyd 0.1.0"}'],
    ['a version that is no number', '{"format":"1"}'],
    ['a version below the first', '{"format":0}'],
    ['half of a file', '{"form'],
  ])('a format file that contains %s is refused and not changed', async (_what, text) => {
    await folder.session(async () => undefined);
    await writeFile(formatFile(folder), text);
    await expect(folder.session(async () => undefined)).rejects.toMatchObject({
      code: 'DATA_FORMAT_UNREADABLE',
    });
    expect(await readFile(formatFile(folder), 'utf8')).toBe(text);
  });
});

describe('an entry type that only a newer version knows', () => {
  it('an entry of an unknown type changes nothing in the view of agents', () => {
    const later = { ...entry(1), type: 'mood-set', mood: 'glad' } as unknown as Entry;
    const view = (entries: Entry[]) => JSON.stringify(viewOf(entries, 'pm'));
    expect(view([entry(0, 'hello'), later])).toBe(view([entry(0, 'hello')]));
  });
});
