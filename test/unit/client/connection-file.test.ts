import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  connectionFilePath,
  readConnectionFile,
  removeConnectionFile,
  writeConnectionFile,
} from '../../../src/client/index.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-connection-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const CONNECTION = { url: 'nats://127.0.0.1:4222', user: 'u', password: 'p', prefix: 'parley', pid: 42 };

describe('the connection file', () => {
  it('gives back what was written, in a directory that need not exist yet', async () => {
    const data = join(directory, 'data');
    await writeConnectionFile(data, CONNECTION);
    expect(await readConnectionFile(data)).toEqual(CONNECTION);
  });

  it('keeps every way to be somebody on the server', async () => {
    const tls = { ca: '/ca.pem', cert: '/c.pem', key: '/k.pem' };
    const files = { passwordFile: '/p', tokenFile: '/t', credentials: '/c', nkey: '/n' };
    const connection = {
      ...CONNECTION,
      ...files,
      token: 't',
      inboxPrefix: '_INBOX.u',
      managed: true as const,
      tls,
      http: 'http://h:1',
      httpToken: 't',
    };
    await writeConnectionFile(directory, connection);
    expect(await readConnectionFile(directory)).toEqual(connection);
  });

  it('is readable by its owner alone and leaves no temporary file', async () => {
    await writeConnectionFile(directory, { ...CONNECTION, pid: 1 });
    await writeConnectionFile(directory, CONNECTION);
    expect((await stat(connectionFilePath(directory))).mode & 0o777).toBe(0o600);
    expect(await readdir(directory)).toEqual(['connection.json']);
  });

  it('is null where no daemon left one', async () => {
    expect(await readConnectionFile(join(directory, 'nothing'))).toBeNull();
  });

  it.each(['', '{', 'null', '{"url":1,"prefix":"parley","pid":1}'])(
    'refuses %j and names the file',
    async (text) => {
      await writeFile(connectionFilePath(directory), text);
      await expect(readConnectionFile(directory)).rejects.toMatchObject({
        code: 'CONNECTION_FILE_INVALID',
        message: expect.stringContaining(connectionFilePath(directory)),
      });
    },
  );

  it('says where it cannot be written', async () => {
    const file = join(directory, 'file');
    await writeFile(file, '');
    await expect(writeConnectionFile(file, CONNECTION)).rejects.toMatchObject({
      code: 'CONNECTION_FILE_UNWRITABLE',
      message: expect.stringContaining(file),
    });
  });

  it('is removed only for the daemon that wrote it', async () => {
    await writeConnectionFile(directory, CONNECTION);
    await removeConnectionFile(directory, 41);
    expect(await readConnectionFile(directory)).toEqual(CONNECTION);
    await removeConnectionFile(directory, 42);
    expect(await readConnectionFile(directory)).toBeNull();
  });
});
