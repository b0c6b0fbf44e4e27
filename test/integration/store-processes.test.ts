import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { tryLockFile } from '../../src/persistence/jsonl/directory/lock.ts';
import { openFileStore, readLogFile } from '../../src/persistence/jsonl/index.ts';
import { itLong } from '../support/long.ts';
import { withDirectory } from '../unit/persistence/support.ts';

const FIXTURES = join(import.meta.dirname, 'store-fixtures');

async function withChild(child: ChildProcess, work: () => Promise<void>): Promise<void> {
  const ended = once(child, 'exit');
  try {
    await work();
  } finally {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await ended;
  }
}

describe('two processes and one data directory', () => {
  it('a second process is refused until the kernel frees the lock of a killed one', { timeout: 30_000 }, () =>
    withDirectory(async (directory) => {
      const child = spawn(process.execPath, ['--import', 'tsx', join(FIXTURES, 'hold-store.ts'), directory], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let acknowledged = 0;
      await withChild(child, async () => {
        const lines = createInterface({ input: child.stdout });
        for await (const line of lines) {
          if (line === 'held') {
            await expect(openFileStore(directory)).rejects.toMatchObject({
              code: 'DATA_DIRECTORY_IN_USE',
              message: `The data directory ${directory} is in use by process ${child.pid}`,
              hint: expect.stringContaining('--data'),
            });
          }
          if (line.startsWith('durable ')) acknowledged = Number(line.slice('durable '.length));
          if (acknowledged === 50) child.kill('SIGKILL');
        }
      });
      const store = await openFileStore(directory);
      try {
        const { entries } = await store.open('demo');
        expect(entries.length).toBeGreaterThanOrEqual(acknowledged);
        expect(acknowledged).toBeGreaterThanOrEqual(50);
        expect(entries.map((entry) => entry.index)).toEqual(entries.map((_, index) => index));
        expect(await store.openMarks()).toEqual(['demo']);
      } finally {
        await store.close();
      }
    }),
  );
});

describe('a disk that is really full', () => {
  itLong(
    'a full disk refuses what does not fit, keeps what fits, and accepts later writes that fit',
    { timeout: 30_000 },
    () =>
      withDirectory(async (directory) => {
        // The limit on a file's size acts like a full disk: a part is written, then the system refuses.
        const script = `ulimit -f 64; exec "$0" --import tsx "$@"`;
        const child = spawn(
          'bash',
          ['-c', script, process.execPath, join(FIXTURES, 'fill-disk.ts'), directory],
          {
            stdio: ['ignore', 'pipe', 'inherit'],
          },
        );
        let output = '';
        await withChild(child, async () => {
          for await (const chunk of child.stdout) output += String(chunk);
        });
        const { code, cause, before, after } = JSON.parse(output);
        expect({ code, cause }).toEqual({
          code: 'LOG_WRITE_FAILED',
          cause: expect.stringContaining('EFBIG'),
        });
        expect(before).toBe(12);
        expect(after).toBe(13);
        const path = join(directory, 'conversations', 'demo', 'log.jsonl');
        expect(await readLogFile(path)).toMatchObject({ tornTail: null, entries: { length: 13 } });
      }),
  );
});

describe('a lock file', () => {
  it('a lock is held once, also within a process, names its holder, and is free after its release', () =>
    withDirectory(async (directory) => {
      const path = join(directory, 'LOCK');
      const first = await tryLockFile(path);
      if (first.kind === 'held') return expect.unreachable();
      expect(first.lock.fd).toBeGreaterThan(2);
      expect(await tryLockFile(path)).toEqual({ kind: 'held', pid: process.pid });
      expect(await readFile(path, 'utf8')).toBe(`${process.pid}\n`);
      first.lock.release();
      first.lock.release();
      const again = await tryLockFile(path);
      if (again.kind === 'held') return expect.unreachable();
      again.lock.release();
    }));

  it('a lock file that cannot be created is an error of the system', () =>
    withDirectory(async (directory) => {
      await expect(tryLockFile(join(directory, 'missing', 'LOCK'))).rejects.toMatchObject({ code: 'ENOENT' });
    }));
});
