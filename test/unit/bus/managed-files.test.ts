import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  prepareDirectory,
  pruneRotatedLogs,
  readCredentials,
  readEndpoint,
  readPidFile,
  readRecord,
  type ServerFiles,
  tailOfLog,
  writeCredentials,
  writeDocument,
} from '../../../src/bus/nats/managed/directory.ts';
import { renderConfiguration, sizeMaxFile } from '../../../src/bus/nats/managed/launch.ts';
import { bytesBelow } from '../../../src/kernel/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { folderPerTest } from '../../support/lifetime.ts';

const root = folderPerTest();
let files: ServerFiles;
let warnings: string[];
const log = (_level: string, message: string): void => void warnings.push(message);

beforeEach(async () => {
  files = await prepareDirectory(join(root, 'nats'));
  warnings = [];
});

describe('the directory of a managed server', () => {
  test('the directory is created for its owner only, and the write test leaves no file', async () => {
    expect((await stat(files.directory)).mode & 0o777).toBe(0o700);
    expect(await readdir(files.directory)).toEqual([]);
  });

  test('a directory that cannot be created is refused with its path and the remedy', async () => {
    await writeFile(join(root, 'file'), '');
    await expect(prepareDirectory(join(root, 'file', 'nats'))).rejects.toMatchObject(
      errorWith('NATS_DIRECTORY_UNWRITABLE', join(root, 'file', 'nats'), '--data'),
    );
  });

  test('a document is readable by its owner only, and replaces the old one as a whole', async () => {
    await writeDocument(files.endpoint, { port: 20_001, name: 'a' });
    await writeDocument(files.endpoint, { port: 20_001, name: 'b' });
    expect((await stat(files.endpoint)).mode & 0o777).toBe(0o600);
    expect(await readEndpoint(files, log)).toEqual({ port: 20_001, name: 'b' });
    expect(await readdir(files.directory)).toEqual(['endpoint.json']);
    expect(warnings).toEqual([]);
  });

  test('credentials that others could read are closed to them, which is reported', async () => {
    await writeCredentials(files);
    await chmod(files.seed, 0o644);
    expect(await readCredentials(files, log)).not.toBeNull();
    expect((await stat(files.seed)).mode & 0o777).toBe(0o600);
    expect(warnings).toHaveLength(1);
  });

  test('the credentials are an nkey in a file of its own', async () => {
    expect(await readCredentials(files, log)).toBeNull();
    const written = await writeCredentials(files);
    expect(written).toEqual({ user: expect.stringMatching(/^U[A-Z2-7]{55}$/), nkey: files.seed });
    expect(await readCredentials(files, log)).toEqual(written);
    expect((await stat(files.seed)).mode & 0o777).toBe(0o600);
    expect(await readdir(files.directory)).toEqual(['user.nk']);
  });

  test('missing files are not an error', async () => {
    const found = [
      await readCredentials(files, log),
      await readEndpoint(files, log),
      await readRecord(files, log),
    ];
    expect(found).toEqual([null, null, null]);
    expect(await readPidFile(files)).toBeNull();
    expect(warnings).toEqual([]);
  });

  test.each(['', '{"port": 42', '[]', 'null', '{}', '{"port":0,"name":"x"}', '{"port":20000,"name":"a b"}'])(
    'a file with %j counts as missing and is reported',
    async (content) => {
      for (const path of [files.seed, files.endpoint, files.record]) await writeFile(path, content);
      const found = [
        await readCredentials(files, log),
        await readEndpoint(files, log),
        await readRecord(files, log),
      ];
      expect(found).toEqual([null, null, null]);
      expect(warnings.map((warning) => warning.split(' ')[0])).toEqual([
        files.seed,
        files.endpoint,
        files.record,
      ]);
    },
  );

  test.each(['', '12x', '-1', '1', '3.5'])('a process id file with %j names no process', async (content) => {
    await writeFile(files.pidFile, content);
    expect(await readPidFile(files)).toBeNull();
  });
});

describe('the configuration of a managed server', () => {
  const render = (version: string): string =>
    renderConfiguration({
      files,
      endpoint: { port: 20_001, name: 'parley-1' },
      credentials: { user: 'p"w\\', nkey: '/seed' },
      version,
      maxFile: 5_000_000_000,
    });

  test('the configuration listens on loopback, with the nkey of its user and a limit of payloads', () => {
    const text = render('2.9.10');
    expect(text).toContain('host: "127.0.0.1"\n');
    expect(text).toContain('port: 20001\n');
    expect(text).toContain('authorization { users: [{ nkey: "p\\"w\\\\" }] }');
    expect(text).toContain('max_payload: 1048576\n');
    expect(text).toContain(`store_dir: "${files.directory}"\n`);
  });

  test('the configuration enables the sync of every message only on a server that supports it', () => {
    expect(render('2.9.25')).not.toContain('sync_interval');
    expect(render('2.10.0-beta.1')).toContain('sync_interval: always\n');
    expect(render('2.15.1')).toContain('sync_interval: always\n');
  });

  test('the configuration gives the streams three quarters of the disk', () => {
    expect(sizeMaxFile(80e9, 20e9)).toBe(75e9);
  });

  test('the configuration never gives the streams less than they contain, however full the disk is', () => {
    expect(sizeMaxFile(0, 40e9)).toBeGreaterThan(40e9);
  });

  test('the size of the store is that of its files', async () => {
    await mkdir(join(files.store, 'streams'), { recursive: true });
    await writeFile(join(files.store, 'streams', '1.blk'), Buffer.alloc(500));
    expect(await bytesBelow(files.store)).toBe(500);
    expect(await bytesBelow(join(root, 'none'))).toBe(0);
  });
});

describe('the log of a managed server', () => {
  test('the tail of the log includes the output and what was written since the start', async () => {
    await writeFile(files.output, 'printed\n');
    await writeFile(files.log, 'old line\nnew line\n');
    expect(await tailOfLog(files, 'old line\n'.length)).toBe('printed\nnew line');
  });

  test('after a rotation the whole log is new', async () => {
    await writeFile(files.log, 'new\n');
    expect(await tailOfLog(files, 1_000)).toBe('new');
  });

  test('only the newest rotated logs are kept', async () => {
    const backups = ['01', '02', '03', '04'].map((day) => `nats-server.log.2026.11.${day}.10.00.00.1`);
    for (const name of ['nats-server.log', 'server.json', ...backups])
      await writeFile(join(files.directory, name), '');
    await pruneRotatedLogs(files);
    expect((await readdir(files.directory)).sort()).toEqual([
      'nats-server.log',
      ...backups.slice(-2),
      'server.json',
    ]);
    expect(await readFile(files.log, 'utf8')).toBe('');
  });
});
