import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { describe, expect, it, vi } from 'vitest';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { type LogFiles, nodeLogFiles } from '../../../src/persistence/jsonl/log/durable.ts';
import type { StorePoint } from '../../../src/persistence/storage.ts';
import { errorWith } from '../../support/error-with.ts';
import { shortenWaits } from '../../support/short-waits.ts';
import { batch, logBytes, row, storeFolderPerTest } from './support.ts';

const { directory, events, leave, path, session } = storeFolderPerTest();

describe('the data directory', () => {
  it('the store creates the documented files and folders', async () => {
    await session(async (store) => {
      const { log } = await store.open('demo');
      await log.append(0, batch(0, 1));
      await store.saveState('demo', { phase: 'chat' });
      await store.saveRow(row('demo'));
      await store.saveIngressPosition({ stream: 's', sequence: 3 });
      await store.initialiseMarks();
      await store.markOpen('demo');
      expect(await readFile(path('LOCK'), 'utf8')).toBe(`${process.pid}\n`);
    });
    expect((await readdir(directory)).sort()).toEqual(['LOCK', 'conversations', 'ingress.json', 'open']);
    expect((await readdir(path('conversations'))).sort()).toEqual([
      'demo',
      'format.json',
      'identity.json',
      'index.json',
    ]);
    expect((await readdir(path('conversations', 'demo'))).sort()).toEqual(['log.jsonl', 'state.json']);
    expect((await stat(path('open', 'demo'))).size).toBe(0);
    expect(JSON.parse(await readFile(path('conversations', 'demo', 'state.json'), 'utf8'))).toEqual({
      phase: 'chat',
    });
    expect(JSON.parse(await readFile(path('conversations', 'index.json'), 'utf8'))).toEqual({
      rows: [row('demo')],
    });
  });

  it('the store reads only the log that is opened', async () => {
    await leave('good', logBytes([batch(0, 1)]));
    await leave('unread', Buffer.from('not a log at all\n'));
    await session(async (store) => {
      expect((await store.open('good')).entries).toEqual(batch(0, 1));
      expect(await store.conversations()).toEqual(['good', 'unread']);
      expect(await store.exists('unread')).toBe(true);
    });
  });

  it('a conversation that is being deleted opens only after its deletion', async () => {
    await leave('demo', logBytes([batch(0, 1)]));
    const found: boolean[] = [];
    const files: LogFiles = {
      ...nodeLogFiles,
      async open(log) {
        found.push(existsSync(path('conversations', 'demo')));
        return nodeLogFiles.open(log);
      },
    };
    const store = await openFileStore(directory, { files });
    try {
      const [, opened] = await Promise.all([store.delete('demo'), store.open('demo')]);
      expect(opened.entries).toEqual([]);
      expect(found).toEqual([true, false]); // the deletion reads which files it names
    } finally {
      await store.close();
    }
  });

  it('the next start finishes a deletion that was noted, also of a conversation without files', async () => {
    await leave('demo', logBytes([batch(0, 1)]));
    const reach = (point: StorePoint) => {
      if (point === 'deletion-noted') throw new Error('killed');
    };
    const killed = await openFileStore(directory, { reach });
    await killed.people.change('a'.repeat(64), () => ({ lengths: { demo: 1, other: 2 } }));
    const tombstone = { stream: 's', sequence: 5 };
    await expect(killed.delete('demo', tombstone)).rejects.toThrow('killed');
    await killed.close();
    await session(async (store) => {
      expect(await store.conversations()).toEqual([]);
      expect(await store.deletedUpTo('demo')).toEqual(tombstone);
      expect(await store.people.get('a'.repeat(64))).toEqual({ lengths: { other: 2 } });
    });
    expect(await readdir(path('deleting'))).toEqual([]);
  });

  it.each(['', '{"lengths":'])(
    'a damaged file of a person (%j) counts as none, and prevents no deletion',
    async (damage) => {
      await leave('demo', logBytes([batch(0, 1)]));
      const person = 'a'.repeat(64);
      await session(async (store) => {
        await store.people.change(person, () => ({ lengths: { demo: 1 } }));
        await writeFile(path('people', `${person}.json`), damage);
        await store.delete('demo');
        expect(await store.exists('demo')).toBe(false);
        const known: unknown[] = [];
        await store.people.change(person, (stored) => {
          known.push(stored);
          return { lengths: {} };
        });
        expect(known).toEqual([damage]);
        expect(await store.people.get(person)).toEqual({ lengths: {} });
      });
    },
  );

  it('the next start finishes a deletion that a crash interrupted', async () => {
    await leave('.deleted-demo-20260101T000000000Z', logBytes([batch(0, 1)]));
    await session(async (store) => expect(await store.conversations()).toEqual([]));
    expect(await readdir(path('conversations'))).toEqual(['format.json', 'identity.json']);
  });

  it('a data directory that cannot be created or written is refused at once', async () => {
    await writeFile(path('file'), '');
    for (const directory of [path('file'), path('file', 'below'), '/proc/parley-data']) {
      await expect(openFileStore(directory), directory).rejects.toMatchObject(
        errorWith('DATA_DIRECTORY_UNWRITABLE', directory, '--data'),
      );
    }
  });
});

describe('projections', () => {
  const BAD = [
    '',
    '{',
    'null',
    '[]',
    '{"rows":[{"id":"../x"}]}',
    '{"rows":[7]}',
    '{"stream":1,"sequence":2}',
    JSON.stringify({ rows: [{ ...row('demo'), tokens: -1 }] }),
    JSON.stringify({ rows: [{ ...row('demo'), usd: '0.03' }] }),
  ];

  it.each(BAD)('a projection that contains %j is set aside and starts empty', async (content) => {
    await leave('demo', logBytes([batch(0, 1)]));
    await writeFile(path('conversations', 'index.json'), content);
    await writeFile(path('ingress.json'), content);
    await session(async (store) => {
      expect(await store.rows()).toEqual([]);
      expect(await store.ingressPosition()).toBeNull();
      await store.saveRow(row('demo'));
      await store.saveIngressPosition({ stream: 's', sequence: 3 });
    });
    expect(events.map((event) => event.type)).toEqual(['projection-set-aside', 'projection-set-aside']);
    for (const event of events) {
      if (event.type === 'projection-set-aside') expect(await readFile(event.keptIn, 'utf8')).toBe(content);
    }
    await session(async (store) => {
      expect(await store.rows()).toEqual([row('demo')]);
      expect(await store.ingressPosition()).toEqual({ stream: 's', sequence: 3 });
    });
  });

  it('deleting all projections loses nothing but projections (L1)', async () => {
    await session(async (store) => {
      const { log } = await store.open('demo');
      await log.append(0, batch(0, 2));
      await store.initialiseMarks();
      await store.markOpen('demo');
      await store.saveRow(row('demo'));
      await store.saveState('demo', {});
      await store.saveIngressPosition({ stream: 's', sequence: 3 });
    });
    for (const name of [
      'open',
      'ingress.json',
      'conversations/index.json',
      'conversations/demo/state.json',
    ]) {
      await rm(path(name), { recursive: true });
    }
    await session(async (store) => {
      expect(await store.openMarks()).toBeNull();
      expect(await store.rows()).toEqual([]);
      expect(await store.ingressPosition()).toBeNull();
      expect((await store.open('demo')).entries).toEqual(batch(0, 2));
    });
  });

  it('projections are saved without a request, and again after a failed save', async () => {
    shortenWaits();
    await leave('demo', logBytes([batch(0, 1)]));
    await mkdir(path('ingress.json.tmp'));
    await session(async (store) => {
      await store.saveRow(row('demo'));
      await expect(store.saveIngressPosition({ stream: 's', sequence: 3 })).rejects.toThrow();
      const rows = await vi.waitFor(() => readFile(path('conversations', 'index.json'), 'utf8'), 4000);
      expect(JSON.parse(rows)).toEqual({ rows: [row('demo')] });
      await vi.waitFor(() => expect(events).toMatchObject([{ type: 'projection-not-saved' }]), 4000);
      await rm(path('ingress.json.tmp'), { recursive: true });
      const position = await vi.waitFor(() => readFile(path('ingress.json'), 'utf8'), 4000);
      expect(JSON.parse(position)).toEqual({ stream: 's', sequence: 3 });
    });
  });

  it('a list row of a conversation without a directory is dropped', async () => {
    await leave('demo', logBytes([batch(0, 1)]));
    await session((store) => store.saveRow(row('demo')));
    await rm(path('conversations', 'demo'), { recursive: true });
    await session(async (store) => expect(await store.rows()).toEqual([]));
  });

  it('a mark is cleared only after the row is on disk, and is kept if the row cannot be saved', async () => {
    await leave('demo', logBytes([batch(0, 1)]));
    await session(async (store) => {
      await store.initialiseMarks();
      await store.markOpen('demo');
      await mkdir(path('conversations', 'index.json.tmp'));
      await store.saveRow(row('demo'));
      await expect(store.clearOpen('demo')).rejects.toThrow();
      expect(await store.openMarks()).toEqual(['demo']);
      await rm(path('conversations', 'index.json.tmp'), { recursive: true });
      await store.clearOpen('demo');
      expect(await store.openMarks()).toEqual([]);
      expect(JSON.parse(await readFile(path('conversations', 'index.json'), 'utf8'))).toEqual({
        rows: [row('demo')],
      });
    });
    expect(events).toEqual([]);
  });

  it('close reports projections that cannot be saved, and succeeds', async () => {
    await session(async (store) => {
      await mkdir(path('ingress.json.tmp'));
      await expect(store.saveIngressPosition({ stream: 's', sequence: 3 })).rejects.toThrow();
    });
    expect(events).toMatchObject([{ type: 'projection-not-saved', file: path('ingress.json') }]);
    await session(async (store) => expect(await store.ingressPosition()).toBeNull());
  });
});
