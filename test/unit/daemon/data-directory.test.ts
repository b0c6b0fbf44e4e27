import { chmod, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../../../src/config/index.ts';
import { makeDataDirectory, ownHttpToken } from '../../../src/daemon/compose/data-directory.ts';
import { exportConversation, fsck, importConversation } from '../../../src/daemon/index.ts';
import {
  holdDirectory,
  openFileSource,
  openFileStore,
  openFileTarget,
} from '../../../src/persistence/jsonl/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';

const data = folderPerTest();
let warnings: string[];
beforeEach(async () => {
  warnings = [];
});

const log = { info: () => {}, error: () => {}, warn: (_: object, text: string) => void warnings.push(text) };

async function tokenOf(http: object | null = {}): Promise<string | undefined> {
  const setting = http && { tokens: [], isGuarded: true, operator: 'ops', ...http };
  const made = await ownHttpToken({ daemon: { data, http: setting } } as unknown as Config, log);
  if (made) expect(made).toMatchObject({ role: 'operate', publisher: 'ops' });
  return made?.secret.reveal();
}

describe('the HTTP token of a daemon', () => {
  it('has 256 bits, is the same at each start, and is in a file of its owner', async () => {
    const token = await tokenOf();
    expect(Buffer.from(token ?? '', 'base64url')).toHaveLength(32);
    expect(await tokenOf()).toBe(token);
    expect(await readdir(data)).toEqual(['http-token']);
    expect((await stat(join(data, 'http-token'))).mode & 0o777).toBe(0o600);
    expect(warnings).toEqual([]);
  });

  it('is not made where HTTP is off, a token is configured, or none is needed', async () => {
    expect(await tokenOf(null)).toBeUndefined();
    expect(await tokenOf({ tokens: [{}] })).toBeUndefined();
    expect(await tokenOf({ isGuarded: false })).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining('every user of this machine')]);
    expect(await readdir(data)).toEqual([]);
  });

  it.each([
    ['can be read by others', (path: string) => chmod(path, 0o640)],
    ['is damaged', (path: string) => writeFile(path, 'short\n')],
    ['is empty', (path: string) => writeFile(path, '')],
    [
      'is a link',
      async (path: string) => {
        await writeFile(`${path}.planted`, `${'A'.repeat(43)}\n`, { mode: 0o600 });
        await rm(path);
        await symlink(`${path}.planted`, path);
      },
    ],
  ])('is replaced with a warning when its file %s', async (_, spoil) => {
    const token = await tokenOf();
    await spoil(join(data, 'http-token'));
    const other = await tokenOf();
    expect(other).toMatch(/^[\w-]{43}$/);
    expect([token, 'A'.repeat(43)]).not.toContain(other);
    expect(await readFile(join(data, 'http-token'), 'utf8')).toBe(`${other}\n`);
    expect(warnings).toHaveLength(1);
  });
});

describe('a data directory that others could read as a whole', () => {
  it.each([takeStore, holdDirectory])('gets another HTTP token, with a warning', async (take) => {
    const token = await tokenOf();
    await (await take(data)).release();
    for (const name of ['LOCK', 'http-token']) await chmod(join(data, name), 0o644);
    await chmod(data, 0o755);
    const { release } = await take(data);
    expect(await tokenOf()).not.toBe(token);
    expect(warnings).toEqual([expect.stringContaining('others could read it')]);
    for (const name of ['LOCK', 'http-token'])
      expect((await stat(join(data, name))).mode & 0o777, name).toBe(0o600);
    await release();
  });
});

async function takeStore(directory: string) {
  const store = await openFileStore(directory);
  return { release: () => store.close() };
}

describe('a data directory that is a file', () => {
  const folder = folderPerTest();
  let file: string;
  beforeEach(async () => {
    file = join(folder, 'file');
    await writeFile(file, '[]');
  });

  const commands: Record<string, (data: string) => Promise<unknown>> = {
    fsck: (dataDirectory) => fsck({ dataDirectory, repair: false }),
    'fsck --repair': (dataDirectory) => fsck({ dataDirectory, repair: true }),
    'migrate --from': openFileSource,
    'migrate --to': openFileTarget,
    export: (data) => exportConversation(data, 'one', 'openai'),
    'import of messages': async (dataDirectory) => {
      await writeFile(file, '[{"role":"user","content":"x"}]');
      await importConversation({ dataDirectory, file, conversation: 'one', agent: 'assistant' });
    },
    'import of what is refused': (dataDirectory) =>
      importConversation({ dataDirectory, file, conversation: 'one', agent: 'assistant' }),
    'up --store jetstream': holdDirectory,
  };
  it.each(Object.keys(commands))(
    'is refused by %s with a hint, since it is not a directory',
    async (name) => {
      for (const data of [file, join(file, 'below')]) {
        await expect(commands[name]?.(data)).rejects.toMatchObject({
          code: expect.stringMatching(/^(USAGE_NO_DATA|DATA_DIRECTORY_UNWRITABLE)$/),
          message: `${data} is not a directory`,
          hint: expect.stringContaining('--data DIR'),
        });
      }
    },
  );
});

const failing = (code: string) => () =>
  Promise.reject(Object.assign(new Error(`${code}: mkdir '/data'`), { code }));

describe('a data directory that cannot be created', () => {
  it.each([
    ['ENOSPC', /^free space on the disk of the data directory/],
    ['EDQUOT', /^free space on the disk of the data directory/],
    ['EACCES', /change its permissions$/],
  ])('for %s is refused with a hint', async (code, hint) => {
    const made = makeDataDirectory('/data', failing(code));
    await expect(made).rejects.toMatchObject({
      code: 'DATA_DIRECTORY_UNWRITABLE',
      message: expect.stringContaining(code),
      hint: expect.stringMatching(hint),
    });
  });
});
