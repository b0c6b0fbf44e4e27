import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  connectionFilePath,
  readConnectionFile,
  removeConnectionFile,
  writeConnectionFile,
} from '../../../src/client/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { folderPerTest } from '../../support/lifetime.ts';

const directory = folderPerTest();

const CONNECTION = { url: 'nats://127.0.0.1:4222', user: 'u', password: 'p', prefix: 'parley', pid: 42 };

describe('the connection file', () => {
  it('the connection file returns what was written, in a directory that it creates', async () => {
    const data = join(directory, 'data');
    await writeConnectionFile(data, CONNECTION);
    expect(await readConnectionFile(data)).toEqual(CONNECTION);
  });

  it('the connection file keeps every kind of credentials', async () => {
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
      codeKey: 'k',
    };
    await writeConnectionFile(directory, connection);
    expect(await readConnectionFile(directory)).toEqual(connection);
  });

  it('the connection file is readable by its owner alone, and writing it leaves no temporary file', async () => {
    await writeConnectionFile(directory, { ...CONNECTION, pid: 1 });
    await writeConnectionFile(directory, CONNECTION);
    expect((await stat(connectionFilePath(directory))).mode & 0o777).toBe(0o600);
    expect(await readdir(directory)).toEqual(['connection.json']);
  });

  it('a missing connection file is read as null', async () => {
    expect(await readConnectionFile(join(directory, 'nothing'))).toBeNull();
  });

  it.each(['', '{', 'null', '{"url":1,"prefix":"parley","pid":1}'])(
    'a connection file with %j is refused by name',
    async (text) => {
      await writeFile(connectionFilePath(directory), text);
      await expect(readConnectionFile(directory)).rejects.toMatchObject(
        errorWith('CONNECTION_FILE_INVALID', connectionFilePath(directory)),
      );
    },
  );

  it('a connection file that cannot be written is reported with its path', async () => {
    const file = join(directory, 'file');
    await writeFile(file, '');
    await expect(writeConnectionFile(file, CONNECTION)).rejects.toMatchObject(
      errorWith('CONNECTION_FILE_UNWRITABLE', file),
    );
  });

  it('the connection file is removed only by the daemon that wrote it', async () => {
    await writeConnectionFile(directory, CONNECTION);
    await removeConnectionFile(directory, 41);
    expect(await readConnectionFile(directory)).toEqual(CONNECTION);
    await removeConnectionFile(directory, 42);
    expect(await readConnectionFile(directory)).toBeNull();
  });
});
