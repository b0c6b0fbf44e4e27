import { appendFile, lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { describe, expect, it, vi } from 'vitest';
import { readLogFile } from '../../../src/persistence/jsonl/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { batch, entry, logBytes, storeFolderPerTest } from './support.ts';

const { directory, events, leave, path, session } = storeFolderPerTest();

describe('a torn tail', () => {
  it.each([
    { name: 'half a line', tail: logBytes([batch(2, 1)]).subarray(0, 50) },
    { name: 'a line without its newline', tail: logBytes([batch(2, 1)]).subarray(0, -1) },
    {
      name: 'half a batch',
      tail: logBytes([batch(2, 3)]).subarray(0, logBytes([batch(2, 3)]).lastIndexOf(10, -2) + 1),
    },
    { name: 'NUL bytes', tail: Buffer.alloc(4096) },
  ])('a torn tail of $name is cut, kept in a file and reported', async ({ tail }) => {
    const log = await leave('demo', Buffer.concat([logBytes([batch(0, 2)]), tail]));
    await session(async (store) => {
      const opened = await store.open('demo');
      expect(opened.entries).toEqual(batch(0, 2));
      expect(opened.tornTail).toMatchObject({ bytes: tail.length });
      const keptIn = opened.tornTail?.keptIn ?? '';
      expect(keptIn.startsWith(path('conversations', 'demo', 'log.torn-'))).toBe(true);
      expect(await readFile(keptIn)).toEqual(tail);
      expect(events).toEqual([{ type: 'torn-tail-cut', conversation: 'demo', bytes: tail.length, keptIn }]);
      expect(await readFile(log)).toEqual(logBytes([batch(0, 2)]));
      expect(await opened.log.append(2, [entry(2, 'next')])).toEqual({ kind: 'appended', length: 3 });
    });
    await session(async (store) => {
      const opened = await store.open('demo');
      expect(opened.tornTail).toBeNull();
      expect(opened.entries).toEqual([...batch(0, 2), entry(2, 'next')]);
    });
  });

  it('a file that is only a torn tail becomes an empty log that accepts entries', async () => {
    await leave('demo', logBytes([batch(0, 1)]).subarray(0, 20));
    await session(async (store) => {
      const { log, entries, tornTail } = await store.open('demo');
      expect({ entries, tornTail }).toMatchObject({ entries: [], tornTail: { bytes: 20 } });
      expect(await store.exists('demo')).toBe(false);
      expect(await log.append(0, batch(0, 1))).toEqual({ kind: 'appended', length: 1 });
      expect(await log.read(0)).toEqual(batch(0, 1));
    });
  });

  it('each torn tail is kept in a file of its own, even within the same millisecond', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      const log = await leave('demo', logBytes([batch(0, 1)]));
      await session(async (store) => {
        for (const torn of ['first', 'second', 'third']) {
          await appendFile(log, torn);
          const opened = await store.open('demo');
          expect(await readFile(opened.tornTail?.keptIn ?? '', 'utf8')).toBe(torn);
          await opened.log.close();
        }
      });
    } finally {
      vi.useRealTimers();
    }
    const names = await readdir(path('conversations', 'demo'));
    expect(names.filter((name) => name.startsWith('log.torn-'))).toHaveLength(3);
  });
});

describe('damage in the middle of a log', () => {
  function damagedLog(): Buffer {
    const bytes = logBytes([batch(0, 1), batch(1, 1), batch(2, 1)]);
    const at = logBytes([batch(0, 1)]).length + 20;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return bytes;
  }

  it('a damaged log is refused with file, line and hint; it is not changed, gets a note, and other logs still open', async () => {
    const log = await leave('bad', damagedLog());
    await leave('good', logBytes([batch(0, 3)]));
    await session(async (store) => {
      for (let attempt = 0; attempt < 3; attempt += 1) {
        await expect(store.open('bad')).rejects.toMatchObject(
          errorWith(
            'LOG_CORRUPT',
            /bad\/log\.jsonl is damaged at line 2 .*checksum/,
            /its first line alone.*troubleshooting/,
          ),
        );
      }
      expect((await store.open('good')).entries).toEqual(batch(0, 3));
      expect(await store.exists('bad')).toBe(true);
      expect(await store.conversations()).toEqual(['bad', 'good']);
    });
    expect(await readFile(log)).toEqual(damagedLog());
    const notes = (await readdir(path('conversations', 'bad'))).filter((name) =>
      name.startsWith('quarantine-'),
    );
    expect(notes).toHaveLength(1);
    const note = path('conversations', 'bad', notes[0] ?? '');
    expect(JSON.parse(await readFile(note, 'utf8'))).toMatchObject({ file: 'log.jsonl', line: 2 });
    expect(events[0]).toMatchObject({ type: 'log-quarantined', conversation: 'bad', line: 2, note });
  });

  it('the error names the expected index, and mentions intact lines only if there are some', async () => {
    await leave('twice', logBytes([batch(0, 1), batch(0, 1)]));
    await session(async (store) => {
      await expect(store.open('twice')).rejects.toThrow(/: it holds index 0 where 1 belongs$/);
    });
  });

  it('a conversation with a damaged log can be deleted', async () => {
    await leave('bad', damagedLog());
    await session(async (store) => {
      await expect(store.open('bad')).rejects.toMatchObject({ code: 'LOG_CORRUPT' });
      await store.delete('bad');
      expect(await store.conversations()).toEqual([]);
    });
  });

  it('damage after the opening is detected by the next read (PERSISTENCE-PORT-4)', async () => {
    const path = await leave('demo', logBytes([batch(0, 3)]));
    await session(async (store) => {
      const { log } = await store.open('demo');
      const bytes = await readFile(path);
      bytes[30] = (bytes[30] ?? 0) ^ 1;
      await writeFile(path, bytes);
      await expect(log.read(0)).rejects.toMatchObject(errorWith('LOG_CORRUPT', 'line 1'));
      expect(await log.read(1)).toEqual(batch(1, 2));
      await writeFile(path, bytes.subarray(0, 10));
      await expect(log.read(2)).rejects.toMatchObject({ code: 'LOG_CORRUPT' });
    });
  });
});

describe('reading a log without a store', () => {
  it('reading a log file changes nothing and takes no lock', async () => {
    const bytes = Buffer.concat([logBytes([batch(0, 2)]), Buffer.from('{"torn')]);
    const log = await leave('demo', bytes);
    await session(async () => {
      expect(await readLogFile(log)).toMatchObject({ entries: batch(0, 2), tornTail: { bytes: 6 } });
    });
    expect(await readFile(log)).toEqual(bytes);
    expect(await readdir(path('conversations', 'demo'))).toEqual(['log.jsonl']);
    await writeFile(log, logBytes([batch(0, 2)]));
    expect(await readLogFile(log)).toEqual({ entries: batch(0, 2), ends: [2], tornTail: null });
  });

  it('a missing, unreadable or damaged log file is reported', async () => {
    await expect(readLogFile(path('nowhere'))).rejects.toMatchObject({ code: 'LOG_NOT_FOUND' });
    await expect(readLogFile(directory)).rejects.toMatchObject({ code: 'LOG_UNREADABLE' });
    const log = await leave('bad', logBytes([batch(1, 1)]));
    await expect(readLogFile(log)).rejects.toMatchObject(errorWith('LOG_CORRUPT', 'line 1'));
    expect(await readdir(path('conversations', 'bad'))).toEqual(['log.jsonl']);
  });
});

describe('something else in the place of a log', () => {
  it.each<[string, (log: string) => Promise<unknown>]>([
    ['a folder', (log) => mkdir(log)],
    ['a link to itself', (log) => symlink('log.jsonl', log)],
  ])(
    '%s in the place of a log is refused by path with a hint; it stays, and other logs still open',
    async (_, make) => {
      await leave('good', logBytes([batch(0, 3)]));
      await mkdir(path('conversations', 'odd'));
      const log = path('conversations', 'odd', 'log.jsonl');
      await make(log);
      const refused = errorWith('LOG_UNREADABLE', log, 'plain file');
      await session(async (store) => {
        await expect(store.open('odd')).rejects.toMatchObject(refused);
        expect((await store.open('good')).entries).toEqual(batch(0, 3));
      });
      await expect(readLogFile(log)).rejects.toMatchObject(refused);
      await expect(lstat(log)).resolves.toBeDefined();
    },
  );

  it('a broken link in the place of a log is not a missing log', async () => {
    await mkdir(path('conversations', 'odd'), { recursive: true });
    await symlink('nothing', path('conversations', 'odd', 'log.jsonl'));
    await expect(readLogFile(path('conversations', 'odd', 'log.jsonl'))).rejects.toMatchObject({
      code: 'LOG_UNREADABLE',
    });
    await expect(readLogFile(path('conversations', 'none', 'log.jsonl'))).rejects.toMatchObject({
      code: 'LOG_NOT_FOUND',
    });
  });

  it('unreadable marks are refused with a hint', async () => {
    await session(async (store) => {
      await writeFile(path('open'), '');
      await expect(store.openMarks()).rejects.toMatchObject(
        errorWith('MARKS_UNREADABLE', '', 'may be removed'),
      );
    });
  });
});
