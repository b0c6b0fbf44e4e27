import { link, lstat, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isLockFree } from '../../../src/bus/nats/managed/directory.ts';
import { replaceFile } from '../../../src/kernel/index.ts';
import { nodeLogFiles } from '../../../src/persistence/jsonl/log/durable.ts';
import { errorWith } from '../../support/error-with.ts';
import { storeFolderPerTest } from './support.ts';

const { path, session } = storeFolderPerTest();

const KEPT = 'not a file of Parley\n';
const KINDS = [
  ['a symbolic link', symlink],
  ['a hard link', link],
] as const;

/** Runs the work with a link at `path`, and checks that the target is unchanged. */
async function withLink(path: string, make: typeof symlink | typeof link, work: () => Promise<unknown>) {
  const target = join(dirname(path), 'kept.txt');
  await writeFile(target, KEPT);
  await make(target, path);
  await work();
  expect(await readFile(target, 'utf8')).toBe(KEPT);
}

describe.each(KINDS)('%s in place of a file of the data directory', (_, make) => {
  it('the daemon refuses to lock the directory and does not empty the target of the link', async () =>
    withLink(path('LOCK'), make, () =>
      expect(session(async () => undefined)).rejects.toMatchObject(
        errorWith('DATA_DIRECTORY_UNWRITABLE', /LOCK.*link/),
      ),
    ));

  it('the lock of the managed nats-server is refused', async () => {
    await mkdir(path('nats'), { recursive: true });
    await withLink(path('nats/LOCK'), make, () =>
      expect(isLockFree(path('nats/LOCK'))).rejects.toThrow(/LOCK.*link/),
    );
  });

  it('a link with the name of a temporary file is replaced, and the file is written completely', async () => {
    await withLink(path('ingress.json.tmp'), make, () =>
      replaceFile(path('ingress.json'), '{}\n', { durable: true }),
    );
    expect(await readFile(path('ingress.json'), 'utf8')).toBe('{}\n');
    expect((await lstat(path('ingress.json'))).isFile()).toBe(true);
  });
});

it('a file that cannot be replaced leaves no temporary file', async () => {
  await mkdir(path('out.json'), { recursive: true });
  await expect(replaceFile(path('out.json'), '{}')).rejects.toThrow();
  await expect(lstat(path('out.json.tmp'))).rejects.toThrow('ENOENT');
});

describe('a symbolic link in place of a log', () => {
  it('the log is neither read nor written through the link', async () =>
    withLink(path('log.jsonl'), symlink, async () => {
      await expect(nodeLogFiles.open(path('log.jsonl'))).rejects.toThrow('ELOOP');
      await expect(nodeLogFiles.create(path('log.jsonl'))).rejects.toThrow('ELOOP');
    }));
});
