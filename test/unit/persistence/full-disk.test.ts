import { existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, readlink, realpath, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ConversationStore } from '../../../src/persistence/index.ts';
import { storePaths } from '../../../src/persistence/jsonl/directory/layout.ts';
import { openFileStore, type StoreEvent } from '../../../src/persistence/jsonl/index.ts';
import { nodeLogFiles } from '../../../src/persistence/jsonl/log/durable.ts';
import { entry } from '../../contract/samples.ts';
import { errorWith } from '../../support/error-with.ts';
import { fillWhile } from '../../support/full-disk.mjs';
import { folderPerTest } from '../../support/lifetime.ts';
import { hasLongTests } from '../../support/runs.ts';

describe('a simulated full disk', () => {
  const directory = folderPerTest();
  let flag: string;
  let store: ConversationStore;
  let restore: () => void;
  beforeEach(async () => {
    flag = join(directory, 'is-full');
    restore = fillWhile(flag);
    store = await openFileStore(join(directory, 'data'));
  });
  afterEach(async () => {
    restore();
    await store.close();
  });

  it('no log grows while the disk is full, nothing is half-written, and appends work again afterwards', async () => {
    const { log } = await store.open('demo');
    await log.append(0, [entry(0)]);
    await writeFile(flag, '');
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(log.append(1, [entry(1)])).rejects.toThrow('ENOSPC');
    }
    const fresh = await store.open('fresh');
    await expect(fresh.log.append(0, [entry(0)])).rejects.toThrow('ENOSPC');
    expect(await log.read(0)).toHaveLength(1);
    await rm(flag);
    expect(await log.append(1, [entry(1)])).toEqual({ kind: 'appended', length: 2 });
    expect(await fresh.log.append(0, [entry(0)])).toEqual({ kind: 'appended', length: 1 });
    await log.close();
    const again = await store.open('demo');
    expect(again).toMatchObject({ tornTail: null, entries: [{ index: 0 }, { index: 1 }] });
  });

  it('a write at the end of the disk stores one half, which the next start cuts off', async () => {
    const { log } = await store.open('demo');
    await log.append(0, [entry(0)]);
    await writeFile(flag, '');
    const file = await nodeLogFiles.open(join(directory, 'data/conversations/demo/log.jsonl'));
    const { length } = (await file?.readAll()) ?? [];
    expect(await file?.write(Buffer.from('half a line that'), length ?? 0)).toBe(8);
    await expect(file?.write(Buffer.from('is'), (length ?? 0) + 8)).rejects.toMatchObject({ code: 'ENOSPC' });
    await file?.close();
    await log.close();
    await rm(flag);
    expect(await store.open('demo')).toMatchObject({ entries: [{ index: 0 }], tornTail: { bytes: 8 } });
  });
});

describe('a full disk', () => {
  const directory = folderPerTest();
  let events: StoreEvent[];
  let store: ConversationStore;
  beforeEach(async () => {
    events = [];
    store = await openFileStore(directory, { log: (event) => events.push(event) });
  });
  afterEach(async () => {
    full.clear();
    await store.close();
  });
  /** Makes every write of these files fail with a full disk. */
  const full = new Set<string>();
  let restore: () => void;
  beforeAll(async () => {
    const handle = await open(process.execPath);
    const methods = Object.getPrototypeOf(handle) as { writeFile: FileHandle['writeFile'] };
    await handle.close();
    const { writeFile: write } = methods;
    methods.writeFile = async function (this: FileHandle, ...given) {
      if (full.has(await readlink(`/proc/self/fd/${this.fd}`)))
        throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
      return write.apply(this, given);
    };
    restore = () => Object.assign(methods, { writeFile: write });
  });
  afterAll(() => restore());
  const noRoomFor = async (path: string) =>
    void full.add(`${await realpath(dirname(path))}/${basename(path)}.tmp`);
  const { deleted, ingress } = storePaths('');

  it.skipIf(!existsSync('/proc/self/fd'))(
    'a deletion on a full disk is refused with STORE_FULL and a hint',
    async () => {
      await noRoomFor(join(directory, deleted));
      await expect(store.delete('demo', { stream: 's', sequence: 3 })).rejects.toMatchObject(
        errorWith('STORE_FULL', `the disk of ${directory} is full`, 'free space'),
      );
    },
  );

  it.skipIf(!existsSync('/proc/self/fd'))(
    'a start without space for the id of the directory is refused with STORE_FULL, not with a hint about permissions',
    async () => {
      const fresh = join(directory, 'fresh');
      const path = storePaths(fresh).identity;
      await mkdir(dirname(path), { recursive: true });
      await noRoomFor(path);
      await expect(openFileStore(fresh)).rejects.toMatchObject(
        errorWith('STORE_FULL', `the disk of ${fresh} is full`, 'free space'),
      );
      full.clear();
      await (await openFileStore(fresh)).close();
    },
  );

  it.runIf(hasLongTests && existsSync('/proc/self/fd'))(
    'a failed save is logged once, not at each retry, and again after a save that worked',
    async () => {
      const path = join(directory, ingress);
      const told = () => events.filter(({ type }) => type === 'projection-not-saved').length;
      await noRoomFor(path);
      await expect(store.saveIngressPosition({ stream: 's', sequence: 3 })).rejects.toThrow('ENOSPC');
      await expect.poll(told).toBe(1);
      await sleep(1_300); // Two more attempts.
      expect(told()).toBe(1);
      full.clear();
      await expect.poll(() => existsSync(path)).toBe(true);
      await noRoomFor(path);
      await store.saveIngressPosition({ stream: 's', sequence: 4 });
      await expect.poll(told).toBe(2);
      full.clear();
    },
  );
});
