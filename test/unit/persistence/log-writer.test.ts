import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ConversationLog } from '../../../src/persistence/index.ts';
import { openFileStore, readLogFile } from '../../../src/persistence/jsonl/index.ts';
import { nodeLogFiles } from '../../../src/persistence/jsonl/log/durable.ts';
import { batch, entry, type Faults, faultyFiles, logBytes, systemError, withDirectory } from './support.ts';

interface OpenedLog {
  readonly log: ConversationLog;
  readonly faults: Faults;
  readonly path: string;
  /** Reopens the log without further faults, and returns its entries. */
  reopened(): Promise<unknown>;
}

/** A log whose file operations fail as the test requests. */
async function withLog(work: (opened: OpenedLog) => Promise<void>): Promise<void> {
  await withDirectory(async (directory) => {
    const { files, faults } = faultyFiles();
    const store = await openFileStore(directory, { files });
    try {
      const { log } = await store.open('demo');
      const path = join(directory, 'conversations', 'demo', 'log.jsonl');
      const reopened = async () => {
        await log.close();
        return (await store.open('demo')).entries;
      };
      await work({ log, faults, path, reopened });
    } finally {
      await store.close();
    }
  });
}

/** Holds the next sync until `release` is called; `reached` resolves when it is waiting. */
function gate(faults: Faults): { reached: Promise<void>; release: () => void } {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const reached = new Promise<void>((resolve) => {
    faults.beforeSync = async () => {
      resolve();
      await released;
    };
  });
  return { reached, release };
}

describe('group commit', () => {
  it('appends that arrive together share one write and one sync (GROUP-COMMIT-1)', () =>
    withLog(async ({ log, faults }) => {
      await Promise.all(Array.from({ length: 256 }, (_, index) => log.append(index, batch(index, 1))));
      expect(faults.done).toMatchObject({ writes: 1, syncs: 1 });
      expect(await log.read(0)).toEqual(batch(0, 256));
    }));

  it('appends during a write form the next group, and no entry is visible before it is durable (GROUP-COMMIT-1)', () =>
    withLog(async ({ log, faults }) => {
      const { reached, release } = gate(faults);
      const first = log.append(0, batch(0, 2));
      await reached;
      const later = [log.append(2, batch(2, 1)), log.append(3, batch(3, 2)), log.append(5, [])];
      expect(log.length).toBe(5);
      expect(await log.read(0)).toEqual([]);
      expect(await log.append(2, batch(2, 1))).toEqual({ kind: 'conflict', length: 5 });
      release();
      expect(await first).toEqual({ kind: 'appended', length: 2 });
      expect(await Promise.all(later)).toEqual([3, 5, 5].map((length) => ({ kind: 'appended', length })));
      expect(faults.done).toMatchObject({ writes: 2, syncs: 2 });
      expect(await log.read(1, 4)).toEqual(batch(1, 3));
    }));

  it('appends that the end of a group resumes form the next group (GROUP-COMMIT-1)', () =>
    withLog(async ({ log, faults }) => {
      const appendThree = async () => {
        for (let round = 0; round < 3; round += 1) await log.append(log.length, batch(log.length, 1));
      };
      await Promise.all(Array.from({ length: 20 }, appendThree));
      expect(faults.done).toMatchObject({ writes: 3, syncs: 3 });
      expect(await log.read(0)).toEqual(batch(0, 60));
    }));

  it('the rest of a partial write is written again', () =>
    withLog(async ({ log, faults, path, reopened }) => {
      faults.write.push(1, 30, 7);
      await log.append(0, batch(0, 4));
      expect(faults.done.writes).toBe(4);
      expect(await readFile(path)).toEqual(logBytes([batch(0, 4)]));
      expect(await reopened()).toEqual(batch(0, 4));
    }));

  it('close waits for queued appends', () =>
    withLog(async ({ log, faults, reopened }) => {
      const { reached, release } = gate(faults);
      const first = log.append(0, batch(0, 1));
      await reached;
      const second = log.append(1, batch(1, 1));
      const closing = log.close();
      release();
      await closing;
      expect(await Promise.all([first, second])).toEqual(
        [1, 2].map((length) => ({ kind: 'appended', length })),
      );
      expect(await reopened()).toEqual(batch(0, 2));
    }));
});

describe('a failing disk', () => {
  it.each([
    { name: 'a full disk', fault: { error: systemError('ENOSPC'), partial: 40 }, hint: /Free space/ },
    { name: 'a faulty disk', fault: systemError('EIO'), hint: /kernel log/ },
    { name: 'a write that takes nothing', fault: 0, hint: /Check the disk/ },
  ])(
    'nothing is appended on $name, and later appends continue at the same length (FILE-LOG-2)',
    ({ fault, hint }) =>
      withLog(async ({ log, faults, path, reopened }) => {
        await log.append(0, batch(0, 2));
        faults.write.push(fault);
        await expect(log.append(2, batch(2, 3))).rejects.toMatchObject({
          code: 'LOG_WRITE_FAILED',
          message: expect.stringContaining(path),
          hint: expect.stringMatching(hint),
          cause: expect.any(Error),
        });
        expect(log.length).toBe(2);
        expect(await readFile(path)).toEqual(logBytes([batch(0, 2)]));
        expect(await log.append(2, batch(2, 1))).toEqual({ kind: 'appended', length: 3 });
        expect(await reopened()).toEqual(batch(0, 3));
      }),
  );

  it('the remains of a failed sync are durably truncated (FILE-LOG-2)', () =>
    withLog(async ({ log, faults, path }) => {
      await log.append(0, batch(0, 1));
      const syncs = faults.done.syncs;
      faults.sync.push(systemError('EIO'));
      await expect(log.append(1, batch(1, 1))).rejects.toMatchObject({ code: 'LOG_WRITE_FAILED' });
      expect(faults.done).toMatchObject({ truncates: 1, syncs: syncs + 2 });
      expect(await readFile(path)).toEqual(logBytes([batch(0, 1)]));
    }));

  it('appends queued after a failure fail too, and later appends use the real length (GROUP-COMMIT-3)', () =>
    withLog(async ({ log, faults, reopened }) => {
      await log.append(0, batch(0, 1));
      const { reached, release } = gate(faults);
      faults.sync.push(systemError('ENOSPC'));
      const doomed = [log.append(1, batch(1, 1)), log.append(2, batch(2, 1))];
      await reached;
      doomed.push(log.append(3, batch(3, 1)), log.append(4, []));
      release();
      const outcomes = await Promise.allSettled(doomed);
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOG_WRITE_FAILED' } });
      }
      expect(await log.append(5, batch(5, 1))).toEqual({ kind: 'conflict', length: 1 });
      expect(await log.append(1, [entry(1, 'instead')])).toEqual({ kind: 'appended', length: 2 });
      expect(await reopened()).toEqual([entry(0), entry(1, 'instead')]);
    }));

  it.each([
    { name: 'truncate', fail: (faults: Faults) => faults.truncate.push(systemError('EIO')) },
    { name: 'sync after it', fail: (faults: Faults) => faults.sync.push(systemError('EIO')) },
  ])('every append is refused until a reopening when the $name fails too (GROUP-COMMIT-4)', ({ fail }) =>
    withLog(async ({ log, faults, reopened }) => {
      await log.append(0, batch(0, 2));
      faults.write.push({ error: systemError('EIO'), partial: 25 });
      fail(faults);
      const both = await Promise.allSettled([log.append(2, batch(2, 1)), log.append(3, batch(3, 1))]);
      for (const outcome of both) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOG_UNAVAILABLE' } });
      }
      await expect(log.append(2, batch(2, 1))).rejects.toMatchObject({
        code: 'LOG_UNAVAILABLE',
        hint: expect.stringContaining('open the conversation again'),
      });
      expect(await log.read(0)).toEqual(batch(0, 2));
      expect(await reopened()).toEqual(batch(0, 2));
    }),
  );

  it('a log that could not be created is tried again', () =>
    withLog(async ({ log, faults, path, reopened }) => {
      faults.create.push(systemError('ENOSPC'), systemError('EACCES'));
      for (let attempt = 0; attempt < 2; attempt += 1) {
        await expect(log.append(0, batch(0, 1))).rejects.toMatchObject({ code: 'LOG_WRITE_FAILED' });
        expect(log.length).toBe(0);
      }
      expect(await log.append(0, batch(0, 1))).toEqual({ kind: 'appended', length: 1 });
      expect((await readLogFile(path)).entries).toEqual(batch(0, 1));
      expect(await reopened()).toEqual(batch(0, 1));
    }));

  it('the remains of a failed first append are not overwritten when the log is created again', () =>
    withLog(async ({ log, faults, reopened }) => {
      faults.write.push({ error: systemError('ENOSPC'), partial: 10 });
      await expect(log.append(0, batch(0, 1))).rejects.toMatchObject({ code: 'LOG_WRITE_FAILED' });
      expect(await log.append(0, batch(0, 2))).toEqual({ kind: 'appended', length: 2 });
      expect(await reopened()).toEqual(batch(0, 2));
    }));
});

const BYTES = Buffer.from('a line\n');

describe('the file of a log', () => {
  it('a closed file writes and syncs nothing, although another file may have its descriptor now', () =>
    withDirectory(async (directory) => {
      const other = join(directory, 'other');
      const file = await nodeLogFiles.create(join(directory, 'log.jsonl'));
      await file.close();
      const reused = openSync(other, 'w'); // the system gives it the descriptor that has become free
      try {
        await expect(file.write(BYTES, 0)).rejects.toThrow('out of range');
        await expect(file.sync()).rejects.toThrow('out of range');
        expect(await readFile(other, 'utf8')).toBe('');
      } finally {
        closeSync(reused);
      }
    }));
});
