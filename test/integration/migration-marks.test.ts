import { describe, expect, it, onTestFinished } from 'vitest';
import { watchConnection } from '../../src/bus/nats/index.ts';
import { migrateStore } from '../../src/daemon/offline/migrate.ts';
import type { MigrationSource } from '../../src/persistence/index.ts';
import { openStreamTarget } from '../../src/persistence/jetstream/index.ts';
import { openFileSource, openFileStore } from '../../src/persistence/jsonl/index.ts';
import { batch } from '../contract/samples.ts';
import { record } from '../contract/tool-records.contract.ts';
import { newFolder } from '../support/lifetime.ts';
import { aClient, aServer, aStore, names } from './jetstream-support.ts';

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function aTarget(url: string) {
  const connection = await aClient(url);
  const watch = watchConnection(connection, SILENT, () => undefined);
  return openStreamTarget({ connection, watch, names });
}

async function aSource(): Promise<MigrationSource> {
  const root = await newFolder();
  const files = await openFileStore(root);
  const { log } = await files.open('demo');
  await log.append(0, batch(0, 3));
  await log.close();
  await files.toolRecords.append('demo', [record(0)]);
  await files.close();
  const source = await openFileSource(root);
  onTestFinished(() => source.close());
  return source;
}

it('BACKUP-7: a store in streams tells where each append of a log ended', async () => {
  const { store, archive } = await aTarget((await aServer()).url);
  const { log } = await store.open('demo');
  await log.append(0, batch(0, 2));
  await log.append(2, batch(2, 1));
  expect(await archive.appendEnds('demo')).toEqual([2, 3]);
  expect(await archive.entries('demo')).toEqual(batch(0, 3));
  await log.close();
  await store.close();
});

describe('two migrations from one source into one target', () => {
  it('a migration that is frozen before its mark until the other ended writes nothing and leaves the target open', async () => {
    const { url } = await aServer();
    const { archive } = await aSource();
    const [frozen, other] = [await aTarget(url), await aTarget(url)];
    const manager = await (await aClient(url)).jetstreamManager();
    const written = async () =>
      (await manager.streams.list().next()).map(({ config, state }) => [config.name, state.last_seq]);
    let atItsMark: unknown;
    const begin = async (from: string) => {
      await migrateStore(archive, other);
      await frozen.begin(from);
      atItsMark = await written();
    };
    await expect(migrateStore(archive, { ...frozen, begin })).rejects.toMatchObject({
      code: 'MIGRATION_TARGET_IN_USE',
    });
    expect(await written()).toEqual(atItsMark);
    await frozen.store.close();
    await (await aStore(url)).close();
  });
});
