import { appendFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fsck } from '../../../src/daemon/index.ts';
import { migrateStore } from '../../../src/daemon/offline/migrate.ts';
import type { MigrationSource, MigrationTarget, StoreArchive } from '../../../src/persistence/index.ts';
import { openFileSource, openFileStore, openFileTarget } from '../../../src/persistence/jsonl/index.ts';
import { entryWith, putBlob, textOf } from '../../contract/blobs.contract.ts';
import { batch } from '../../contract/samples.ts';
import { errorWith } from '../../support/error-with.ts';
import { folderPerTest } from '../../support/lifetime.ts';

/** From one directory into another, which no command offers: the same work without a server. */
describe('a migration of all conversations', () => {
  const root = folderPerTest();
  let source: MigrationSource;
  let target: MigrationTarget;

  beforeEach(async () => {
    const store = await openFileStore(join(root, 'from'));
    for (const id of ['one', 'two']) {
      const { log } = await store.open(id);
      await log.append(0, batch(0, 3));
      await log.close();
    }
    await store.close();
    source = await openFileSource(join(root, 'from'));
    target = await openFileTarget(join(root, 'to'));
  });
  afterEach(async () => {
    await target.store.close();
    await source.close();
  });

  async function fill(id: string, count: number): Promise<void> {
    const { log } = await target.store.open(id);
    await log.append(log.length, batch(log.length, count - log.length));
    await log.close();
  }
  /** As a stream that has kept what a daemon with the file store published. */
  const withFeed = (archive: StoreArchive): StoreArchive => ({
    ...archive,
    conversations: async () => [...(await archive.conversations()), 'zfeed'],
    entries: async (id) => (id === 'zfeed' ? [] : archive.entries(id)),
  });
  const move = () => migrateStore(source.archive, target);

  it('begins again after an interruption, and removes what the source has deleted since', async () => {
    await target.begin(source.archive.name);
    await fill('one', 2);
    await fill('two', 3);
    await fill('stray', 1);
    expect(await move()).toMatchObject({ conversations: 2, entries: 6 });
    expect(await target.archive.conversations()).toEqual(['one', 'two']);
    expect(await target.archive.entries('one')).toEqual(batch(0, 3));
    expect(await target.archive.migration()).toBeNull();
    await (await openFileStore(join(root, 'to'))).close();
  });

  /** As the command is given again. */
  async function again() {
    await target.store.close();
    target = await openFileTarget(join(root, 'to'));
    return move();
  }

  it('MIGRATE-8: a repetition after the last step reports the same and writes nothing', async () => {
    const first = await move();
    const { store, archive } = target;
    const refuse = () => Promise.reject(new Error('it was written'));
    target = { store, archive, begin: refuse, end: refuse };
    expect(await move()).toEqual(first);
    expect(await again()).toEqual(first);
  });

  it.each([
    ['an entry more', () => fill('one', 4)],
    ['another conversation', () => fill('other', 1)],
    ['one conversation less', () => target.store.delete('one').then(() => undefined)],
  ])('MIGRATE-8: a target with %s is refused', async (_, change) => {
    await move();
    target = await openFileTarget(join(root, 'to'));
    await change();
    await expect(again()).rejects.toMatchObject({ code: 'MIGRATION_TARGET_IN_USE' });
    expect(await target.archive.migration()).toBeNull();
  });

  describe('with files', () => {
    it('MIGRATE-8: a repetition after the last step refuses a target without a file of the source', async () => {
      const [facts] = await bringFiles('three', 'a picture');
      const first = await move();
      expect(await again()).toEqual(first);
      const { sha256 } = facts ?? { sha256: '' };
      await rm(join(root, 'to', 'blobs', sha256.slice(0, 2), sha256));
      await expect(again()).rejects.toMatchObject({ code: 'MIGRATION_TARGET_IN_USE' });
    });

    const place = ({ sha256 }: { sha256: string }) => join(root, 'from', 'blobs', sha256.slice(0, 2), sha256);
    /** A conversation of the source with these files, of which it has two entries each. */
    async function bringFiles(id: string, ...texts: string[]) {
      await source.close();
      const store = await openFileStore(join(root, 'from'));
      const blobs = await Promise.all(texts.map((text) => putBlob(store, text)));
      const { log } = await store.open(id);
      await log.append(
        0,
        [...blobs, ...blobs].map(({ part }, index) => entryWith(index, part)),
      );
      await log.close();
      await store.close();
      source = await openFileSource(join(root, 'from'));
      return blobs.map(({ facts }) => facts);
    }
    /** The source, with the hashes of the files that are read from it. */
    function watched(): { readonly archive: StoreArchive; readonly read: string[] } {
      const read: string[] = [];
      const { blobs } = source.archive;
      const reading = (sha256: string) => {
        read.push(sha256);
        return blobs.read(sha256);
      };
      return {
        read,
        archive: { ...source.archive, blobs: { facts: (hash) => blobs.facts(hash), read: reading } },
      };
    }

    it('copies each file once before the entries that name it, and the copy is sound', async () => {
      const facts = await bringFiles('three', 'a picture', 'another');
      await bringFiles('four', 'another');
      const { archive, read } = watched();
      expect(await migrateStore(archive, target)).toMatchObject({ conversations: 4, entries: 12, files: 2 });
      expect(read.sort()).toEqual(facts.map(({ sha256 }) => sha256).sort());
      expect(await fsck({ dataDirectory: join(root, 'to'), repair: false })).toEqual(
        ['four', 'one', 'three', 'two'].map((conversation) => ({ conversation, findings: [] })),
      );
      const moved = await openFileStore(join(root, 'to'));
      expect(await moved.delete('four')).toMatchObject({ files: 0 });
      expect(await textOf(moved, facts[1]?.sha256 ?? '')).toBe('another');
      expect(await moved.delete('three')).toMatchObject({ files: 2 });
      await moved.close();
    });

    it('continues after an interruption, and reads no file again that it copied', async () => {
      const [first] = await bringFiles('three', 'a picture');
      const [, second] = await bringFiles('four', 'a picture', 'another');
      await target.begin(source.archive.name);
      const { log } = await target.store.open('three');
      await putBlob(target.store, 'a picture');
      await log.append(0, await source.archive.entries('three'));
      await log.close();
      const { archive, read } = watched();
      expect(await migrateStore(archive, target)).toMatchObject({ conversations: 4, files: 2 });
      expect(read).toEqual([second?.sha256]);
      expect(await target.archive.blobs.facts(first?.sha256 ?? '')).toEqual(first);
    });

    it.each([
      ['is missing', (path: string) => rm(path)],
      ['is damaged', (path: string) => appendFile(path, '!')],
    ])('is refused when a file of the source %s, with the conversation and the entry', async (_, spoil) => {
      const [, facts] = await bringFiles('three', 'a picture', 'another');
      await spoil(place(facts ?? { sha256: '' }));
      await expect(move()).rejects.toMatchObject(
        errorWith('MIGRATION_SOURCE_DAMAGED', `conversation three, entry 1: its file ${facts?.sha256}`),
      );
      expect(await target.archive.migration()).toBe(source.archive.name);
    });

    it('keeps the target closed when a file read back differs', async () => {
      await bringFiles('three', 'a picture');
      const archive: StoreArchive = {
        ...target.archive,
        blobs: { ...target.archive.blobs, read: async () => null },
      };
      await expect(migrateStore(source.archive, { ...target, archive })).rejects.toMatchObject(
        errorWith('MIGRATION_NOT_SAME', 'the file'),
      );
    });
  });

  it('leaves out logs without entries, such as the feed of another store', async () => {
    expect(await migrateStore(withFeed(source.archive), target)).toMatchObject({
      conversations: 2,
      entries: 6,
    });
    expect(await target.archive.conversations()).toEqual(['one', 'two']);
  });

  it('treats a target with only the feed of another store as empty', async () => {
    const archive = withFeed(target.archive);
    expect(await migrateStore(source.archive, { ...target, archive })).toMatchObject({ conversations: 2 });
  });

  it('is refused when the target has conversations, and changes nothing', async () => {
    await fill('one', 2);
    await expect(move()).rejects.toMatchObject({ code: 'MIGRATION_TARGET_IN_USE' });
    expect(await target.archive.entries('one')).toEqual(batch(0, 2));
    expect(await target.archive.migration()).toBeNull();
  });

  it.each([
    ['a position of its own', () => target.store.saveIngressPosition({ stream: 'x', sequence: 1 })],
    ['a deletion of its own', () => target.store.delete('gone', { stream: 'x', sequence: 1 })],
  ])('is refused where there is %s', async (_, prepare) => {
    await prepare();
    await target.store.close();
    target = await openFileTarget(join(root, 'to'));
    await expect(move()).rejects.toMatchObject({ code: 'MIGRATION_TARGET_IN_USE' });
  });

  it('is refused while another migration into the same target is unfinished', async () => {
    await target.begin('jetstream:OTHER_LOG');
    await expect(move()).rejects.toMatchObject(
      errorWith('MIGRATION_UNFINISHED', 'from jetstream:OTHER_LOG, not from'),
    );
  });

  it('checks again after the target is marked, and leaves a target that was filled meanwhile unchanged and open', async () => {
    const writes: string[] = [];
    const store = new Proxy(target.store, {
      get: (real, name) => {
        const value = Reflect.get(real, name);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) => {
          writes.push(String(name));
          return value.apply(real, given);
        };
      },
    });
    const begin = async (from: string) => {
      await fill('one', 3);
      await fill('two', 3);
      await target.begin(from);
    };
    await expect(migrateStore(source.archive, { ...target, store, begin })).rejects.toMatchObject(
      errorWith('MIGRATION_TARGET_IN_USE', 'is not empty'),
    );
    expect(writes).toEqual([]);
    expect(await target.archive.migration()).toBeNull();
  });

  it('keeps the target closed when the content read back differs', async () => {
    const archive: StoreArchive = { ...target.archive, entries: async () => batch(0, 2) };
    await expect(migrateStore(source.archive, { ...target, archive })).rejects.toMatchObject(
      errorWith('MIGRATION_NOT_SAME', /conversation (one|two): entries differ at 2/),
    );
    await target.store.close();
    await expect(openFileStore(join(root, 'to'))).rejects.toMatchObject({ code: 'MIGRATION_UNFINISHED' });
  });

  it.each([
    ['a conversation', { conversations: async () => ['one'] }, /1 conversations instead of 2/],
    ['a place', { ingressPosition: async () => null }, /position/],
    ['a deletion', { deletions: async () => [] }, /the deletion of conversation gone is missing/],
  ])('notices that %s is missing at the end', async (_, lacking, expected) => {
    const place = { stream: '2026-11-22T00:00:00.000Z', sequence: 4 };
    const from: StoreArchive = {
      ...source.archive,
      ingressPosition: async () => place,
      deletions: async () => [{ conversation: 'gone', ...place }],
    };
    let asked = 0;
    const archive: StoreArchive = {
      ...target.archive,
      conversations: async () => (asked++ === 0 ? [] : ['one', 'two']),
      ...lacking,
    };
    await target.begin(from.name);
    await expect(migrateStore(from, { ...target, archive })).rejects.toThrow(expected);
  });

  it('reports which conversation could not be copied, and why', async () => {
    const store = Object.create(target.store) as MigrationTarget['store'];
    store.delete = (...given) => target.store.delete(...given);
    store.open = async (id) => {
      const opened = await target.store.open(id);
      opened.log.append = async () => {
        throw new Error('no space left');
      };
      return opened;
    };
    await expect(migrateStore(source.archive, { ...target, store })).rejects.toMatchObject(
      errorWith('MIGRATION_FAILED', /conversation (one|two) could not be copied: no space left/),
    );
  });
});
