import { readdir, readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type Entry, viewOf } from '../../../src/conversation/index.ts';
import { VERSION } from '../../../src/kernel/index.ts';
import { checkFormat, type StoredFormat } from '../../../src/persistence/jsonl/directory/format.ts';
import { openFileStore, type StoreEvent } from '../../../src/persistence/jsonl/index.ts';
import { batch, entry, logBytes, type Scene, withScene } from './support.ts';

const formatFile = ({ path }: Scene) => path('conversations', 'format.json');
const stored = async (scene: Scene) => JSON.parse(await readFile(formatFile(scene), 'utf8'));

/** Opens the directory with a store of that version, and appends the entries. */
async function openWithVersion(scene: Scene, format: StoredFormat, writes: readonly Entry[] = []) {
  const events: StoreEvent[] = [];
  const store = await openFileStore(scene.directory, { format, log: (event) => events.push(event) });
  try {
    const { log, entries } = await store.open('demo');
    if (writes.length > 0) await log.append(entries.length, writes);
    return { entries, events };
  } finally {
    await store.close();
  }
}

describe('the version of the stored format', () => {
  it('a new directory gets a format file that names the version of its writer', () =>
    withScene(async (scene) => {
      await scene.session(async () => undefined);
      expect(await stored(scene)).toEqual({
        format: { major: 2, minor: 0 },
        writtenBy: `parleyd ${VERSION}`,
      });
    }));

  it('logs without a format file have format 1.0', () =>
    withScene(async (scene) => {
      await scene.leave('demo', logBytes([batch(0, 2)]));
      expect((await openWithVersion(scene, { major: 1, minor: 3 })).entries).toEqual(batch(0, 2));
      expect((await stored(scene)).format).toEqual({ major: 1, minor: 3 });
    }));

  it('a newer minor version reads older data and raises the version', () =>
    withScene(async (scene) => {
      await openWithVersion(scene, { major: 1, minor: 0 }, batch(0, 2));
      const { entries, events } = await openWithVersion(scene, { major: 1, minor: 1 });
      expect(entries).toEqual(batch(0, 2));
      expect(events).toEqual([]);
      expect((await stored(scene)).format).toEqual({ major: 1, minor: 1 });
    }));

  it('an older minor version can work on newer data: unknown fields and the version are kept', () =>
    withScene(async (scene) => {
      const later = { ...entry(1), type: 'mood-set', mood: 'glad' } as unknown as Entry;
      await openWithVersion(scene, { major: 1, minor: 7 }, [entry(0), later]);
      const before = await readFile(scene.path('conversations', 'demo', 'log.jsonl'));
      const { events } = await openWithVersion(scene, { major: 1, minor: 0 }, [entry(2)]);
      expect(events).toMatchObject([{ type: 'format-newer', stored: '1.7', own: '1.0' }]);
      expect((await stored(scene)).format).toEqual({ major: 1, minor: 7 });
      const after = await readFile(scene.path('conversations', 'demo', 'log.jsonl'));
      expect(after.subarray(0, before.length).equals(before)).toBe(true);
      expect((await openWithVersion(scene, { major: 1, minor: 7 })).entries).toEqual([
        entry(0),
        later,
        entry(2),
      ]);
    }));

  it('additions of a later version to the format file are kept', () =>
    withScene(async (scene) => {
      await scene.session(async () => undefined);
      const text = '{"format":{"major":2,"minor":9,"patch":1},"writtenBy":"parleyd 2.9.0","more":true}';
      await writeFile(formatFile(scene), text);
      await scene.session(async () => undefined);
      expect(await readFile(formatFile(scene), 'utf8')).toBe(text);
    }));

  it('another major version is refused by name before anything is changed', () =>
    withScene(async (scene) => {
      await openWithVersion(scene, { major: 3, minor: 1 }, batch(0, 2));
      await writeFile(formatFile(scene), '{"format":{"major":3,"minor":1},"writtenBy":"parleyd 4.5.6"}');
      await writeFile(scene.path('conversations', 'index.json'), 'a list of another kind');
      const refusal = {
        code: 'DATA_FORMAT_UNKNOWN',
        message: expect.stringMatching(/3\.1.*parleyd 4\.5\.6/),
      };
      await expect(scene.session(async () => undefined)).rejects.toMatchObject(refusal);
      await expect(checkFormat(scene.directory)).rejects.toMatchObject(refusal);
      expect((await readdir(scene.path('conversations'))).sort()).toEqual([
        'demo',
        'format.json',
        'identity.json',
        'index.json',
      ]);
      // The lock is released: the right version can open the directory at once.
      await writeFile(scene.path('conversations', 'index.json'), '{"rows":[]}');
      expect((await openWithVersion(scene, { major: 3, minor: 1 })).entries).toEqual(batch(0, 2));
    }));

  it.each([
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[1,0]'],
    ['no minor version', '{"format":{"major":1}}'],
    ['a version that is no number', '{"format":{"major":"1","minor":0}}'],
    ['a version below the first', '{"format":{"major":0,"minor":4}}'],
    ['half of a file', '{"format":{"maj'],
  ])('a format file that contains %s is refused and not changed', (_what, text) =>
    withScene(async (scene) => {
      await scene.session(async () => undefined);
      await writeFile(formatFile(scene), text);
      await expect(scene.session(async () => undefined)).rejects.toMatchObject({
        code: 'DATA_FORMAT_UNREADABLE',
      });
      expect(await readFile(formatFile(scene), 'utf8')).toBe(text);
    }),
  );
});

describe('an entry type that only a newer version knows', () => {
  it('an entry of an unknown type changes nothing in the view of agents', () => {
    const later = { ...entry(1), type: 'mood-set', mood: 'glad' } as unknown as Entry;
    const view = (entries: Entry[]) => JSON.stringify(viewOf(entries, 'pm'));
    expect(view([entry(0, 'hello'), later])).toBe(view([entry(0, 'hello')]));
  });
});
