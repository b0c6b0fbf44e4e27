import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backUpStore } from '../../../src/daemon/offline/backup.ts';
import { ofNewestStream } from '../../../src/daemon/offline/copy.ts';
import { migrateStore } from '../../../src/daemon/offline/migrate.ts';
import type { ConversationStore, MigrationTarget, StoreArchive } from '../../../src/persistence/index.ts';
import {
  openFileArchive,
  openFileSource,
  openFileStore,
  openFileTarget,
} from '../../../src/persistence/jsonl/index.ts';
import type { StorePoint } from '../../../src/persistence/storage.ts';
import { entryWith, putBlob } from '../../contract/blobs.contract.ts';
import { batch, row } from '../../contract/samples.ts';
import { folderPerTest } from '../../support/lifetime.ts';

/** A store whose `open` fails. */
function failing(store: ConversationStore, name: string | symbol, open: () => Promise<never>): unknown {
  const value: unknown = Reflect.get(store, name);
  if (name === 'open') return open;
  return typeof value === 'function' ? value.bind(store) : value;
}

const LIFE = '2026-11-26T02:15:00.000Z';

describe('a backup of a store that changes meanwhile', () => {
  const root = folderPerTest();
  let store: ConversationStore;
  let source: StoreArchive;
  let target: MigrationTarget;

  beforeEach(async () => {
    store = await openFileStore(join(root, 'from'));
    for (const id of ['one', 'two', 'three']) await append(id, 0, 3);
    await store.delete('old', { stream: LIFE, sequence: 2 });
    await store.saveIngressPosition({ stream: LIFE, sequence: 7 });
    source = await openFileArchive(join(root, 'from'));
    target = await openFileTarget(join(root, 'to'));
  });
  afterEach(async () => {
    await target.store.close();
    await store.close();
  });

  async function append(id: string, from: number, count: number): Promise<void> {
    const { log } = await store.open(id);
    await log.append(from, batch(from, count));
    await log.close();
  }
  /** Does something when this conversation is read for the first time, before or after its entries. */
  function reading(id: string, act: { before?: () => Promise<unknown>; after?: () => Promise<unknown> }) {
    let isFirst = true;
    return {
      ...source,
      async entries(asked: string) {
        if (asked !== id || !isFirst) return source.entries(asked);
        isFirst = false;
        await act.before?.();
        const entries = await source.entries(asked);
        await act.after?.();
        return entries;
      },
    };
  }
  const backUp = (from: StoreArchive = source) => backUpStore(from, target);

  it('contains what a store contains, and is marked as a backup', async () => {
    const made = await backUp();
    expect(made).toMatchObject({ conversations: 3, entries: 9, deletions: 1, missing: [] });
    expect(await target.archive.deletions()).toEqual([{ conversation: 'old', stream: LIFE, sequence: 2 }]);
    expect(await target.archive.backup()).toEqual({ from: source.name, madeAt: made.madeAt });
    expect(await target.archive.migration()).toBeNull();
  });

  it('BACKUP-7: a copy has the appends of the original, so that a cut of its log loses the last one alone', async () => {
    await append('one', 3, 2);
    await append('one', 5, 1);
    await append('large', 0, 500);
    await append('large', 500, 1);
    await backUp();
    expect((await stat(join(root, 'to', 'conversations', 'large', 'log.jsonl'))).size).toBeGreaterThan(
      65_536,
    );
    expect(await target.archive.appendEnds?.('large')).toEqual([500, 501]);
    expect(await target.archive.appendEnds?.('one')).toEqual([3, 5, 6]);
    const log = join(root, 'to', 'conversations', 'one', 'log.jsonl');
    await writeFile(log, (await readFile(log)).subarray(0, -5));
    expect(await target.archive.entries('one')).toEqual(batch(0, 5));
  });

  it('BACKUP-1: posts that are settled while it reads do not move its position', async () => {
    const settle = () => store.saveIngressPosition({ stream: '2026-11-26T03:00:00.000Z', sequence: 9 });
    await backUp(reading('one', { before: settle }));
    expect(await target.archive.ingressPosition()).toEqual({ stream: LIFE, sequence: 7 });
  });

  it('BACKUP-2: definitions that are stored while it reads the logs are in it', async () => {
    const hash = 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2';
    await backUp(reading('two', { before: () => store.definitions.put(new Map([[hash, 'test\n']])) }));
    expect(await target.archive.definition(hash)).toBe('test\n');
  });

  async function appendFiles(id: string, ...texts: string[]): Promise<string[]> {
    const blobs = await Promise.all(texts.map((text) => putBlob(store, text)));
    const { log } = await store.open(id);
    await log.append(log.length, [entryWith(log.length, ...blobs.map(({ part }) => part))]);
    await log.close();
    return blobs.map(({ facts }) => facts.sha256);
  }

  it('BACKUP-2: the files that its logs name are in it, each once', async () => {
    const [sha256 = ''] = await appendFiles('one', 'a picture', 'another');
    await appendFiles('two', 'a picture');
    await putBlob(store, 'named by no log');
    expect(await backUp()).toMatchObject({ files: 2, missing: [] });
    expect(await target.archive.blobs.facts(sha256)).toMatchObject({ size: 9, mediaType: 'image/png' });
  });

  it('BACKUP-5: a conversation whose file is gone is named with the entry, and the others are in it', async () => {
    const [sha256 = ''] = await appendFiles('one', 'a picture');
    await rm(join(root, 'from', 'blobs', sha256.slice(0, 2), sha256));
    const { conversations, missing } = await backUp();
    expect(conversations).toBe(2);
    expect(missing).toEqual([
      {
        id: 'one',
        reason: `conversation one, entry 3: its file ${sha256} is missing or damaged in ${source.name}`,
      },
    ]);
  });

  it('BACKUP-3: a conversation that is deleted with its files while it is read is not missing', async () => {
    await appendFiles('two', 'a picture');
    const away = () => store.delete('two', { stream: LIFE, sequence: 9 });
    const made = await backUp(reading('two', { after: away }));
    expect(made).toMatchObject({ conversations: 2, deletions: 2, files: 0, missing: [] });
  });

  it('BACKUP-3: a conversation that is deleted while it is read is not in it, and its deletion is', async () => {
    const away = () => store.delete('two', { stream: LIFE, sequence: 9 });
    expect(await backUp(reading('two', { after: away }))).toMatchObject({ conversations: 2, deletions: 2 });
    expect(await target.archive.conversations()).toEqual(['one', 'three']);
  });

  it('BACKUP-3: a conversation that is deleted and begins again is in it as it is then', async () => {
    const again = async () => {
      await store.delete('two', { stream: LIFE, sequence: 9 });
      await append('two', 0, 1);
    };
    expect(await backUp(reading('two', { after: again }))).toMatchObject({ conversations: 3, entries: 7 });
    expect(await target.archive.entries('two')).toEqual(batch(0, 1));
  });

  it('BACKUP-3: a conversation without posts that is deleted leaves nothing in it', async () => {
    await backUp(reading('two', { after: () => store.delete('two') }));
    expect(await target.archive.conversations()).toEqual(['one', 'three']);
  });

  it('BACKUP-4: a failure of the disk ends it, and its folder stays closed', async () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const open = () => Promise.reject(full);
    const broken = {
      ...target,
      store: new Proxy(target.store, { get: (of, name) => failing(of, name, open) }),
    };
    await expect(backUpStore(source, broken)).rejects.toThrow('ENOSPC');
    expect(await target.archive.migration()).toBe(source.name);
  });
});

it('the deletions of the newest stream are found among any number of deletions', () => {
  const stream = '2026-11-27T02:15:00.000Z';
  const deletions = Array.from({ length: 150_000 }, (_, sequence) => ({
    ...{ conversation: `c${sequence}`, sequence },
    stream: sequence < 2 ? LIFE : stream,
  }));
  expect(ofNewestStream(deletions)).toEqual(deletions.slice(2));
  expect(ofNewestStream([])).toEqual([]);
});

describe('a store with a deletion that a crash interrupted', () => {
  const root = folderPerTest();

  it.each(['deletion-noted', 'log-removed'] as const)(
    'is copied without that conversation, after %s',
    async (point) => {
      const from = join(root, 'from');
      const reach = (at: StorePoint) => {
        if (at === point) throw new Error('killed');
      };
      const killed = await openFileStore(from, { reach });
      for (const id of ['demo', 'other']) {
        const { log } = await killed.open(id);
        await log.append(0, batch(0, 2));
        await log.close();
        await killed.saveRow(row(id));
      }
      await expect(killed.delete('demo', { stream: LIFE, sequence: 5 })).rejects.toThrow('killed');
      await killed.close();
      const backup = await openFileTarget(join(root, 'backup'));
      expect(await backUpStore(await openFileArchive(from), backup)).toMatchObject({ missing: [] });
      const target = await openFileTarget(join(root, 'to'));
      const source = await openFileSource(from);
      await migrateStore(source.archive, target);
      await source.close();
      for (const { archive, store } of [backup, target]) {
        expect(await archive.conversations()).toEqual(['other']);
        expect(await archive.deletions()).toEqual([{ conversation: 'demo', stream: LIFE, sequence: 5 }]);
        await store.close();
      }
    },
  );
});
