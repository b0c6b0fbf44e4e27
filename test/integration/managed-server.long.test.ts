import { readFile, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { systemHost } from '../../src/bus/nats/managed/host.ts';
import {
  firstKept,
  kill,
  openServerFolder,
  portOf,
  post,
  restarted,
  type ServerFolder,
} from '../support/managed-server.ts';

/** The real server, started and stopped as a daemon does. */

let folder: ServerFolder;
beforeEach(async () => {
  folder = await openServerFolder();
});
afterEach(() => folder.close());

describe('a managed nats-server', () => {
  test('the managed server listens on loopback with JetStream, only for clients with its credentials', async () => {
    const server = await folder.start();
    expect(server.url).toMatch(/^nats:\/\/127\.0\.0\.1:2\d{4}$/);
    expect(server.adopted).toBe(false);
    const connection = await folder.open(server);
    expect(connection.info?.max_payload).toBe(1024 * 1024);
    expect(connection.info?.version).toBe(server.version);
    await post(connection, 'hello');
    await expect(openNats({ url: server.url })).rejects.toMatchObject({ code: 'NATS_UNAUTHORIZED' });
  });

  test('the managed server keeps its secrets readable for its owner only, and records its process', async () => {
    const server = await folder.start();
    for (const name of ['user.nk', 'nats-server.conf', 'server.json', 'LOCK'])
      expect((await stat(join(folder.directory, name))).mode & 0o777).toBe(0o600);
    expect(server.nkey).toBe(join(folder.directory, 'user.nk'));
    const seed = (await readFile(server.nkey, 'utf8')).trim();
    expect(seed).toMatch(/^SU[A-Z2-7]{56}$/);
    expect(await readFile(join(folder.directory, 'nats-server.conf'), 'utf8')).not.toContain(seed);
    expect(await folder.json('server.json')).toMatchObject({
      pid: server.pid,
      port: portOf(server),
      version: server.version,
      startedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(folder.logged.join('\n')).not.toContain(seed);
  });

  test('the managed server keeps port, credentials and messages over a restart', async () => {
    const first = await folder.start();
    const { url, nkey, pid } = first;
    const seed = await readFile(nkey, 'utf8');
    await post(await folder.open(first), 'hello');
    await first.stop();
    const second = await folder.start();
    expect({ url: second.url, nkey: second.nkey }).toEqual({ url, nkey });
    expect(await readFile(nkey, 'utf8')).toBe(seed);
    expect(second.pid).not.toBe(pid);
    expect(await firstKept(await folder.open(second))).toBe('hello');
  });

  test('the managed server restarts once its full disk has space, and keeps its messages', async () => {
    let free = 1_024 ** 3;
    const freeBytes = vi.fn(async () => free);
    const server = await folder.start({ host: { ...systemHost(), freeBytes } });
    await post(await folder.open(server), 'hello');
    const { pid } = server;

    free = 0;
    freeBytes.mockClear();
    await expect.poll(() => freeBytes.mock.calls.length).toBeGreaterThan(2);
    expect(server.pid).toBe(pid);

    free = 1_024 ** 3;
    await expect.poll(() => server.pid).not.toBe(pid);
    expect(await firstKept(await folder.open(server))).toBe('hello');
    freeBytes.mockClear();
    await expect.poll(() => freeBytes.mock.calls.length).toBeGreaterThan(2);
    expect(folder.logged.filter((line) => line.includes('had a full disk'))).toHaveLength(1);
  });

  test('stop ends the managed server and frees its lock, and a second stop is the same one', async () => {
    const server = await folder.start();
    const [one, two] = [server.stop(), server.stop()];
    expect(one).toBe(two);
    await one;
    expect(await folder.runs(server.pid)).toBe(false);
    expect(await folder.lockIsFree()).toBe(true);
    await expect(readFile(join(folder.directory, 'server.json'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('the managed server reports what an acknowledgement guarantees', async () => {
    const server = await folder.start();
    const isOld = server.version.startsWith('2.9.');
    const promise = isOld ? /synced about once a second/ : /every acknowledged message/;
    expect(folder.logged.some((line) => promise.test(line))).toBe(true);
  });
});

describe('a managed server after its daemon was killed', () => {
  test('the next daemon adopts a server whose process was not recorded yet', async () => {
    const { child, pid } = await folder.daemon();
    await kill(child);
    await rm(join(folder.directory, 'server.json'));
    expect(await folder.start()).toMatchObject({ adopted: true, pid });
  });

  test('a server that was killed with its daemon does not block the next start', async () => {
    const { child, pid } = await folder.daemon();
    await kill(child);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => folder.lockIsFree()).toBe(true);
    const next = await folder.start();
    expect(next.adopted).toBe(false);
    expect(next.pid).not.toBe(pid);
  });

  test('two daemons that start at once share one server', async () => {
    const [one, two] = await Promise.all([folder.daemon(), folder.daemon()]);
    expect(one.pid).toBe(two.pid);
    expect(await folder.start()).toMatchObject({ adopted: true, pid: one.pid });
  });
});

describe('a managed server that crashes', () => {
  test('a crashed server restarts on the same port, and clients reconnect to it', async () => {
    const server = await folder.start();
    const { pid, url } = server;
    const connection = await folder.open(server);
    await post(connection, 'hello');
    const back = restarted(server);
    process.kill(pid, 'SIGKILL');
    await back;
    expect(server.url).toBe(url);
    await expect.poll(() => firstKept(connection)).toBe('hello');
    expect(folder.logged.some((line) => line.includes(`(process ${pid}) died`))).toBe(true);
  });

  test('a crashed server is restarted by a daemon that only adopted it', async () => {
    const { child, pid } = await folder.daemon();
    await kill(child);
    const adopter = await folder.start();
    expect(adopter).toMatchObject({ adopted: true, pid });
    const back = restarted(adopter);
    process.kill(pid, 'SIGKILL');
    await back;
    expect(await folder.runs(adopter.pid)).toBe(true);
  });

  test('a restart is retried for as long as it fails', async () => {
    const link = join(folder.root, 'nats-server');
    await symlink(folder.binary, link);
    const server = await folder.start({ binary: link });
    await rm(link);
    const back = restarted(server);
    process.kill(server.pid, 'SIGKILL');
    const failures = () => folder.logged.filter((line) => line.includes('cannot be restarted'));
    await expect.poll(() => failures().length).toBeGreaterThan(1);
    expect(failures()[0]).toContain(link);
    await symlink(folder.binary, link);
    await back;
    await folder.open(server);
  });

  test('a server that is being stopped is not restarted', async () => {
    const link = join(folder.root, 'nats-server');
    await symlink(folder.binary, link);
    const server = await folder.start({ binary: link });
    await rm(link);
    process.kill(server.pid, 'SIGKILL');
    await vi.waitFor(() => expect(folder.logged.join('\n')).toContain('cannot be restarted'), {
      timeout: 20_000,
    });
    await symlink(folder.binary, link);
    await server.stop();
    expect(await folder.lockIsFree()).toBe(true);
    expect(folder.logged.join('\n')).not.toContain('runs again');
  });
});
