import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { takeLock } from '../../src/bus/nats/managed/directory.ts';
import { systemHost } from '../../src/bus/nats/managed/host.ts';
import { errorWith } from '../support/error-with.ts';
import { itLong } from '../support/long.ts';
import { firstKept, openServerFolder, portOf, post, type ServerFolder } from '../support/managed-server.ts';
import { isAlive } from '../support/mcp-tools.ts';

/** Obstacles for a managed server, and the messages for its user. */

let folder: ServerFolder;
beforeEach(async () => {
  folder = await openServerFolder();
});
afterEach(() => folder.close());

async function occupy(port: number): Promise<Server> {
  const stranger = createServer().listen(port, '127.0.0.1');
  await once(stranger, 'listening');
  return stranger;
}

describe('a start that cannot succeed', () => {
  test('a start names the port that is in use, and the file that sets it', async () => {
    const server = await folder.start();
    const port = portOf(server);
    await server.stop();
    const stranger = await occupy(port);
    folder.defer(() => new Promise((resolve) => stranger.close(resolve)));
    await expect(folder.start()).rejects.toMatchObject(
      errorWith('NATS_PORT_IN_USE', String(port), join(folder.directory, 'endpoint.json')),
    );
    expect(await folder.lockIsFree()).toBe(true);
    const endpoint = await folder.json('endpoint.json');
    const other = port === 29_999 ? port - 1 : port + 1;
    await writeFile(join(folder.directory, 'endpoint.json'), JSON.stringify({ ...endpoint, port: other }));
    expect(portOf(await folder.start())).toBe(other);
  });

  itLong('a start takes a free port once the files that its hint names are removed', async () => {
    const server = await folder.start();
    const port = portOf(server);
    const record = await folder.json('server.json');
    await server.stop();
    await writeFile(join(folder.directory, 'server.json'), JSON.stringify(record)); // as a killed one leaves it
    const stranger = await occupy(port);
    folder.defer(() => new Promise((resolve) => stranger.close(resolve)));
    await rm(join(folder.directory, 'endpoint.json'), { force: true });
    const refused = await folder.start().catch((error: unknown) => error);
    const files = String((refused as { hint?: unknown }).hint).match(/\/\S+\.json/g) ?? [];
    expect(files.length).toBe(2); // the record of the last start has the port, too
    for (const file of files) await rm(file, { force: true });
    expect(portOf(await folder.start())).not.toBe(port);
  });

  test('a start reports that the disk of its directory is full, and what to do', async () => {
    const noSpace = async () => {
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    };
    await expect(folder.start({ host: { ...systemHost(), freeBytes: noSpace } })).rejects.toMatchObject(
      errorWith('NATS_DISK_FULL', `the disk of ${folder.directory} is full`, 'free space'),
    );
    expect(await folder.lockIsFree()).toBe(true);
  });

  test('a start names a binary that is not nats-server', async () => {
    await expect(folder.start({ binary: '/bin/echo' })).rejects.toMatchObject({
      code: 'NATS_SERVER_UNUSABLE',
    });
    await expect(folder.start({ binary: join(folder.root, 'none') })).rejects.toMatchObject({
      code: 'NATS_SERVER_UNUSABLE',
    });
    expect(await folder.lockIsFree()).toBe(true);
  });

  test('a start shows the output of a server that ended', async () => {
    const fake = await folder.fakeServer('2.9.10', 'echo "the disk is on fire" >&2; exit 3');
    await expect(folder.start({ binary: fake })).rejects.toMatchObject(
      errorWith('NATS_SERVER_FAILED', /exit code 3[\s\S]*the disk is on fire/, 'nats-server.log'),
    );
  });

  test("a start shows the server's error in its configuration", async () => {
    const wrong = await folder.fakeServer(
      '2.9.10',
      `echo 'nonsense: 1' >> "$2"; exec ${folder.binary} -c "$2"`,
    );
    await expect(folder.start({ binary: wrong })).rejects.toMatchObject(
      errorWith('NATS_SERVER_FAILED', 'nonsense'),
    );
  });

  test("a start shows the server's error in its store", async () => {
    await folder.start().then((server) => server.stop());
    await rm(join(folder.directory, 'jetstream'), { recursive: true });
    await writeFile(join(folder.directory, 'jetstream'), 'not a folder');
    await expect(folder.start()).rejects.toMatchObject(errorWith('NATS_SERVER_FAILED', /jetstream/i));
  });

  test('a start ends a server that never becomes ready, and leaves none', async () => {
    const hung = await folder.fakeServer('2.9.10', `echo $$ > ${join(folder.root, 'pid')}; exec sleep 600`);
    await expect(folder.start({ binary: hung, startTimeoutMs: 500 })).rejects.toMatchObject(
      errorWith('NATS_SERVER_NOT_READY', '500 ms'),
    );
    expect(isAlive(Number(await readFile(join(folder.root, 'pid'), 'utf8')))).toBe(false);
    expect(await folder.lockIsFree()).toBe(true);
  });

  test('a start names a directory that is locked by a process that cannot be adopted', async () => {
    await folder.start().then((server) => server.stop());
    const lock = await takeLock(join(folder.directory, 'LOCK'));
    folder.defer(async () => lock?.release());
    await expect(folder.start({ startTimeoutMs: 300 })).rejects.toMatchObject(
      errorWith('NATS_DIRECTORY_IN_USE', folder.directory, 'LOCK'),
    );
  });

  itLong('a start names the process of a running server that cannot be adopted', async () => {
    const server = await folder.start();
    const seed = await readFile(server.nkey);
    await writeFile(server.nkey, 'SUAB');
    await expect(folder.start({ startTimeoutMs: 300 })).rejects.toMatchObject(
      errorWith('NATS_DIRECTORY_IN_USE', 'user.nk', `kill ${server.pid}`),
    );
    await writeFile(server.nkey, seed);
    expect((await folder.start()).pid).toBe(server.pid);
  });
});

describe('a port that is edited while the server runs', () => {
  itLong(
    'an edited port applies from the next start, and until then the server is adopted at its old port',
    async () => {
      const server = await folder.start();
      const before = portOf(server);
      const after = before === 29_999 ? before - 1 : before + 1;
      const endpoint = await folder.json('endpoint.json');
      await writeFile(join(folder.directory, 'endpoint.json'), JSON.stringify({ ...endpoint, port: after }));
      const adopter = await folder.start();
      expect(adopter).toMatchObject({ adopted: true, pid: server.pid, url: server.url });
      await Promise.all([server.stop(), adopter.stop()]);
      expect(portOf(await folder.start())).toBe(after);
    },
  );
});

describe('files that are stale or half written', () => {
  test('damaged files are replaced and each is named, and the messages are kept', async () => {
    const server = await folder.start();
    await post(await folder.open(server), 'hello');
    await server.stop();
    for (const name of ['user.nk', 'endpoint.json', 'server.json', 'server.pid'])
      await writeFile(join(folder.directory, name), '{"po');
    folder.logged.length = 0;
    expect(await firstKept(await folder.open(await folder.start()))).toBe('hello');
    for (const name of ['user.nk', 'endpoint.json', 'server.json'])
      expect(folder.logged.some((line) => line.startsWith('warn') && line.includes(name))).toBe(true);
  });
});
