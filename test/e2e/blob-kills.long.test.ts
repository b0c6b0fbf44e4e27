import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { closeConnection, openNats } from '../../src/bus/nats/index.ts';
import { openFileStore } from '../../src/persistence/jsonl/index.ts';
import { checkAfterKill, contentsIn, KILLS, killAt } from '../support/blob-kills.ts';
import { openTestStore } from '../support/jetstream-store.ts';
import { folderPerTest, perTest } from '../support/lifetime.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

/** BLOBS-1 to BLOBS-5, at every step. */

describe('the file store', () => {
  const directory = folderPerTest();
  it.each(KILLS)(
    'a kill at %s loses no file that is named, and leaves none of a deleted conversation',
    { timeout: 60_000 },
    async (point) => {
      const data = join(directory, 'data');
      await killAt('file', data, point);
      const store = await openFileStore(data);
      await checkAfterKill(store, point, () => contentsIn(data)).finally(() => store.close());
      expect(await readdir(join(data, 'deleting')).catch(() => [])).toEqual([]);
    },
  );
});

describe('the jetstream store', () => {
  const nats = perTest(() => startNatsServer());
  it.each(KILLS)(
    'a kill at %s loses no file that is named, and leaves none of a deleted conversation',
    { timeout: 60_000 },
    async (point) => {
      await killAt('jetstream', nats.url, point);
      const store = await openTestStore(nats.url);
      await checkAfterKill(store, point, () => contentsOn(nats)).finally(() => store.close());
    },
  );

  it.each(KILLS)(
    'another daemon finishes what one that was killed at %s began',
    { timeout: 60_000 },
    async (point) => {
      const other = await openTestStore(nats.url);
      await killAt('jetstream', nats.url, point);
      await other.blobs.sweep('2000-01-01T00:00:00.000Z');
      await checkAfterKill(other, point, () => contentsOn(nats)).finally(() => other.close());
    },
  );
});

/** Subjects with pieces. */
async function contentsOn({ url }: TestNatsServer): Promise<number> {
  const connection = await openNats({ url });
  const { streams } = await connection.jetstreamManager();
  const { blobStream, blob } = createSubjects();
  const { state } = await streams.info(blobStream, { subjects_filter: blob('*') });
  await closeConnection(connection);
  return Object.keys(state.subjects ?? {}).length;
}
