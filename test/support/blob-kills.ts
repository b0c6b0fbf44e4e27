import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { filesOf } from '../../src/conversation/index.ts';
import type { ConversationStore } from '../../src/persistence/index.ts';
import { blobOf, textOf } from '../contract/blobs.contract.ts';

/** `use-blobs.ts`, killed at a point, and what must be true afterwards. */

export const BLOBS = {
  one: 'in the deleted conversation',
  own: 'too, and large '.repeat(20_000),
  both: 'in both conversations',
  unnamed: 'uploaded, and in no conversation '.repeat(10_000),
};

/** In the order of the work: an upload, appends, a deletion. */
export const KILLS = [
  'half-uploaded:1',
  'blob-stored:1',
  'blob-stored:2',
  'blob-stored:4',
  'uploaded:1',
  'before-append:1',
  'blob-claimed:1',
  'after-append:1',
  'blob-claimed:2',
  'blob-claimed:3',
  'blob-claimed:4',
  'after-append:2',
  'before-deletion:1',
  'deletion-noted:1',
  'blob-erasing:1',
  'blob-erased:1',
  'blob-erasing:2',
  'blob-erased:2',
  'log-removed:1',
  'deleted:1',
] as const;
export type Kill = (typeof KILLS)[number];

const PROGRAM = join(import.meta.dirname, '../integration/store-fixtures/use-blobs.ts');
const LATER = '9999-01-01T00:00:00.000Z';

/** Resolves when the program killed itself there. */
export async function killAt(kind: 'file' | 'jetstream', place: string, point: Kill): Promise<void> {
  const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, kind, place, point], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  expect(signal).toBe('SIGKILL');
}

/** The store was opened after the kill, or has swept. `contents`: how many it has, without a reading of the records. */
export async function checkAfterKill(
  store: ConversationStore,
  point: Kill,
  contents: () => Promise<number>,
): Promise<void> {
  const has = async (text: string) => (await store.blobs.facts(blobOf(text).facts.sha256)) !== null;
  const isAfter = (other: Kill) => KILLS.indexOf(point) >= KILLS.indexOf(other);
  expect(await store.exists('other')).toBe(isAfter('after-append:1'));
  expect(await store.exists('demo')).toBe(isAfter('after-append:2') && !isAfter('deletion-noted:1'));
  await expectWhole(store);
  if (isAfter('deletion-noted:1')) {
    expect([await has(BLOBS.one), await has(BLOBS.own)]).toEqual([false, false]);
    expect(await store.blobs.of('demo')).toEqual([]);
  }
  await store.blobs.sweep(LATER);
  const named = await expectWhole(store);
  expect(await contents()).toBe(named.size);
  for (const conversation of ['demo', 'other']) await store.delete(conversation);
  expect(await contents()).toBe(0);
  for (const text of Object.values(BLOBS)) expect(await has(text)).toBe(false);
}

/** Every file that a log names is whole. Returns their hashes. */
async function expectWhole(store: ConversationStore): Promise<ReadonlySet<string>> {
  const named = new Set<string>();
  for (const conversation of await store.conversations()) {
    const { log, entries } = await store.open(conversation);
    await log.close();
    for (const entry of entries)
      for (const { sha256 } of entry.type === 'message' ? filesOf(entry) : []) named.add(sha256);
  }
  for (const text of Object.values(BLOBS)) {
    const { sha256 } = blobOf(text).facts;
    if (named.has(sha256)) expect(await textOf(store, sha256)).toBe(text);
  }
  return named;
}

/** Files below the folders of contents of a data directory. */
export async function contentsIn(data: string): Promise<number> {
  const folders = (await readdir(join(data, 'blobs'))).filter((name) => /^[0-9a-f]{2}$/.test(name));
  return (await Promise.all(folders.map((folder) => readdir(join(data, 'blobs', folder))))).flat().length;
}
