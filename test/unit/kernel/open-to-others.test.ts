import { closeSync, openSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { closeData, findForeignData, findOpenData } from '../../../src/kernel/index.ts';
import { storePaths } from '../../../src/persistence/jsonl/directory/layout.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { itLong } from '../../support/long.ts';

const root = folderPerTest();
const at = (...names: string[]) => join(root, ...names);
const modeOf = async (...names: string[]) => (await stat(at(...names))).mode & 0o777;

beforeEach(async () => {
  await mkdir(at('conversations', 'demo'), { recursive: true });
  for (const name of ['LOCK', 'ingress.json', 'ingress.json.bad-1', 'conversations/demo/log.jsonl']) {
    await writeFile(at(name), '');
    await chmod(at(name), 0o644);
  }
  for (const name of ['conversations', 'conversations/demo', '.']) await chmod(at(name), 0o755);
});

describe('permissions of a data directory', () => {
  it('a directory that contains only files of Parley is closed including itself', async () => {
    expect((await findOpenData(root)).own).toHaveLength(7);
    await closeData(root, at('LOCK'));
    expect(await findOpenData(root)).toEqual({ own: [], isShared: false, isWritable: false });
    expect(await modeOf('conversations')).toBe(0o700);
    expect(await modeOf('conversations', 'demo', 'log.jsonl')).toBe(0o600);
  });

  const { conversation, log, state, audit, outputs, output, blob, ...paths } = storePaths('');
  const STORED = Object.values(paths).map((path) => path.split('/')[0] ?? '');
  const OTHERS = [
    'accepted-tools.json',
    'connection.json',
    'http-token',
    'incoming',
    'mcp-logins',
    'nats',
    'quarantine',
    'search',
  ];
  it.each([...new Set([...STORED, ...OTHERS])].filter((name) => name !== ''))(
    '%s is closed',
    async (name) => {
      await rm(root, { recursive: true });
      await mkdir(at(name), { recursive: true });
      for (const path of [at(name), root]) await chmod(path, 0o755);
      await closeData(root, at('LOCK'));
      expect([await modeOf(name), await modeOf('.')]).toEqual([0o700, 0o700]);
    },
  );

  it.each(['notes.txt', 'nationalities', 'LOCKSMITH', 'opening.json', '.git'])(
    'a directory that also contains %s keeps its mode, and so does that file',
    async (name) => {
      await writeFile(at(name), '', { mode: 0o644 });
      await chmod(at(name), 0o666);
      await chmod(root, 0o777);
      await closeData(root, at('LOCK'));
      expect(await findOpenData(root)).toEqual({ own: [], isShared: true, isWritable: true });
      expect([await modeOf('.'), await modeOf(name), await modeOf('LOCK')]).toEqual([0o777, 0o666, 0o600]);
    },
  );

  it('a link in the directory is not followed', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'parley-elsewhere-'));
    await chmod(elsewhere, 0o755);
    await symlink(elsewhere, at('nats'));
    await symlink(elsewhere, at('conversations', 'demo', 'outputs'));
    await closeData(root, at('LOCK'));
    expect((await stat(elsewhere)).mode & 0o777).toBe(0o755);
    await rm(elsewhere, { recursive: true });
  });

  itLong(
    'open files of any number are found',
    async () => {
      const many = 130_000; // a call with so many arguments fails
      for (let n = 0; n < many; n++) closeSync(openSync(at('conversations', 'demo', `${n}`), 'w', 0o644));
      expect((await findOpenData(root)).own).toHaveLength(7 + many);
      expect(await findForeignData(root, new Set())).toHaveLength(7 + many);
      await rm(at('conversations'), { recursive: true });
    },
    300_000,
  );

  it('a missing directory is not open to others', async () => {
    expect(await findOpenData(at('missing'))).toEqual({ own: [], isShared: false, isWritable: false });
  });
});
