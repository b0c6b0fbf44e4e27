import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  findServerProcess,
  isLockFree,
  isServerProcess,
  prepareDirectory,
  type ServerFiles,
  takeLock,
  writeDocument,
} from '../../../src/bus/nats/managed/directory.ts';
import { type Host, systemHost } from '../../../src/bus/nats/managed/host.ts';
import { choosePort, isPortFree, type ServerContext } from '../../../src/bus/nats/managed/launch.ts';
import { endServer, restartPause, startSyncLoop } from '../../../src/bus/nats/managed/supervisor.ts';
import { errorWith } from '../../support/error-with.ts';
import { endChild, folderPerTest } from '../../support/lifetime.ts';
import { isAlive } from '../../support/mcp-tools.ts';

const root = folderPerTest();
let files: ServerFiles;
let context: ServerContext;
let warnings: string[];
const children: ChildProcess[] = [];
const host = systemHost();
const log = (_level: string, message: string): void => void warnings.push(message);

beforeEach(async () => {
  files = await prepareDirectory(join(root, 'nats'));
  warnings = [];
  const { signal } = new AbortController();
  context = { files, host, log, binary: '/none', startTimeoutMs: 100, signal };
});
afterEach(async () => {
  for (const child of children.splice(0)) await endChild(child);
});

/** A process that does nothing, with these arguments and these open files. */
async function idle(
  words: string[] = [],
  fd?: number,
  trap = '',
): Promise<{ child: ChildProcess; pid: number }> {
  const child = spawn('/bin/sh', ['-c', `${trap} echo up; read never <&9`, 'sh', ...words], {
    stdio: [
      'ignore',
      'pipe',
      'ignore',
      fd ?? 'ignore',
      'ignore',
      'ignore',
      'ignore',
      'ignore',
      'ignore',
      'pipe',
    ],
  });
  children.push(child);
  await once(child.stdout!, 'data');
  return { child, pid: child.pid! };
}

const recordOf = (pid: number) => ({
  pid,
  port: 20_001,
  name: 'x',
  version: '2.9.10',
  startedAt: '2026-11-21T20:39:00.000Z',
});

describe('the lock of a managed server', () => {
  test('the lock is held once, and is free after its release', async () => {
    const lock = await takeLock(files.lock);
    expect(lock).not.toBeNull();
    expect(await takeLock(files.lock)).toBeNull();
    expect(await isLockFree(files.lock)).toBe(false);
    await lock?.release();
    expect(await isLockFree(files.lock)).toBe(true);
  });

  test('a lock survives in a process that inherited it, and the kernel frees it when that process is killed', async () => {
    const lock = await takeLock(files.lock);
    const { child } = await idle([], lock!.fd);
    await lock!.release();
    expect(await isLockFree(files.lock)).toBe(false);
    await endChild(child);
    expect(await isLockFree(files.lock)).toBe(true);
  });

  test('a lock is not inherited by a process that it was not passed to', async () => {
    const lock = await takeLock(files.lock);
    await idle();
    await lock!.release();
    expect(await isLockFree(files.lock)).toBe(true);
  });
});

describe('identifying the process of a managed server', () => {
  test('the process is the one that was started with the configuration of the directory', async () => {
    const { pid } = await idle(['-c', files.configuration]);
    expect(await isServerProcess(pid, files.configuration, host)).toBe(true);
    expect(await isServerProcess(pid, `${files.configuration}.other`, host)).toBe(false);
  });

  test('a process with only the same number is another process', async () => {
    const { pid } = await idle(['-c', '/elsewhere/nats-server.conf']);
    expect(await isServerProcess(pid, files.configuration, host)).toBe(false);
  });

  test('a process that has ended is not the server', async () => {
    const { child, pid } = await idle(['-c', files.configuration]);
    await endChild(child);
    expect(await isServerProcess(pid, files.configuration, host)).toBe(false);
    expect(isAlive(pid)).toBe(false);
  });

  test('the process id that the server wrote is used if the record is stale or missing', async () => {
    const server = await idle(['-c', files.configuration]);
    await writeFile(files.pidFile, `${server.pid}`);
    expect(await findServerProcess(files, host, log)).toBe(server.pid);
    const stranger = await idle();
    await writeDocument(files.record, recordOf(stranger.pid));
    expect(await findServerProcess(files, host, log)).toBe(server.pid);
  });

  test('ps is used on a system without /proc', async () => {
    const asked: string[] = [];
    const mac: Host = {
      ...host,
      platform: 'darwin',
      run: async (command, args) => {
        asked.push([command, ...args].join(' '));
        return { kind: 'exited', code: 0, output: `/opt/homebrew/bin/nats-server -c ${files.configuration}` };
      },
    };
    expect(await isServerProcess(77, files.configuration, mac)).toBe(true);
    expect(asked).toEqual(['ps -ww -o command= -p 77']);
    const gone: Host = { ...mac, run: async () => ({ kind: 'exited', code: 1, output: '' }) };
    expect(await isServerProcess(77, files.configuration, gone)).toBe(false);
  });
});

describe('stopping a managed server', () => {
  const patience = { gracefulMs: 150, forcedMs: 2_000 };

  test('stopping ends the process, frees the lock and removes the record', async () => {
    const lock = await takeLock(files.lock);
    const { child, pid } = await idle(['-c', files.configuration], lock!.fd);
    await lock!.release();
    await writeDocument(files.record, recordOf(pid));
    await endServer(context, patience);
    expect(child.signalCode ?? (await once(child, 'exit'))[1]).toBe('SIGTERM');
    expect(await isLockFree(files.lock)).toBe(true);
    expect(await findServerProcess(files, host, log)).toBeNull();
    expect(warnings).toEqual([]);
  });

  test('a process that ignores SIGTERM is killed, which is reported', async () => {
    const lock = await takeLock(files.lock);
    const { child, pid } = await idle(['-c', files.configuration], lock!.fd, "trap '' TERM;");
    await lock!.release();
    await writeDocument(files.record, recordOf(pid));
    await endServer(context, patience);
    expect(child.signalCode ?? (await once(child, 'exit'))[1]).toBe('SIGKILL');
    expect(warnings).toEqual([expect.stringContaining('did not stop in time')]);
  });

  test('a process that only has the recorded number is never signalled', async () => {
    const stranger = await idle();
    await writeDocument(files.record, recordOf(stranger.pid));
    const lock = await takeLock(files.lock);
    const outcome = endServer(context, { gracefulMs: 50, forcedMs: 50 });
    await expect(outcome).rejects.toMatchObject(errorWith('NATS_SERVER_STUCK', files.directory, files.lock));
    await lock?.release();
    expect(stranger.child.signalCode).toBeNull();
    expect(isAlive(stranger.pid)).toBe(true);
  });

  test('stopping returns at once if no server runs, whatever the record says', async () => {
    const stranger = await idle();
    await writeDocument(files.record, recordOf(stranger.pid));
    await endServer(context, patience);
    expect(isAlive(stranger.pid)).toBe(true);
  });
});

describe('the port of a managed server', () => {
  test('the port is one that can be listened on, outside the range of outgoing connections', async () => {
    const port = await choosePort();
    expect(port).toBeGreaterThanOrEqual(20_000);
    expect(port).toBeLessThan(30_000);
    expect(await isPortFree(port)).toBe(true);
  });

  test('a port that is in use is not free', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    expect(await isPortFree(typeof address === 'object' && address ? address.port : 0)).toBe(false);
    await new Promise((resolve) => server.close(resolve));
  });

  test('the search ends with an error if no port is free', async () => {
    await expect(choosePort(async () => false)).rejects.toMatchObject({ code: 'NATS_NO_FREE_PORT' });
  });
});

describe('the pause before a restart', () => {
  test('the pause doubles from a tenth of a second up to a limit', () => {
    expect([0, 1, 2, 3].map(restartPause)).toEqual([100, 200, 400, 800]);
    expect(restartPause(1_000_000)).toBe(10_000);
  });
});

describe('syncing the files of a server that does not sync them', () => {
  const never = 3_600_000; // Passes run only on request.
  const recorder = () => {
    const synced: string[] = [];
    return { synced, sync: async (path: string) => void synced.push(path.slice(files.directory.length + 1)) };
  };

  test('changed files are synced once, files before their folders', async () => {
    const { synced, sync } = recorder();
    const loop = startSyncLoop({ store: files.directory, log, everyMs: never, sync });
    await writeFile(join(files.directory, 'one'), 'a');
    await loop.pass();
    expect(synced).toEqual(['one', '']);
    await loop.pass();
    expect(synced).toEqual(['one', '']);
    await writeFile(join(files.directory, 'one'), 'ab');
    await loop.pass();
    expect(synced).toEqual(['one', '', 'one']);
    await loop.stop();
  });

  test('stopping syncs the last writes', async () => {
    const { synced, sync } = recorder();
    const loop = startSyncLoop({ store: files.directory, log, everyMs: never, sync });
    await writeFile(join(files.directory, 'last'), 'a');
    await loop.stop();
    expect(synced).toContain('last');
  });

  test('the real sync accepts files and folders', async () => {
    await writeFile(join(files.directory, 'one'), 'a');
    const loop = startSyncLoop({ store: files.directory, log, everyMs: never });
    await loop.stop();
    expect(warnings).toEqual([]);
  });

  test('a missing store, or a file that is removed meanwhile, is not a failure', async () => {
    const vanish = async (path: string): Promise<void> => {
      throw Object.assign(new Error(`ENOENT ${path}`), { code: 'ENOENT' });
    };
    const missing = startSyncLoop({ store: join(root, 'none'), log, everyMs: never });
    const vanishing = startSyncLoop({ store: files.directory, log, everyMs: never, sync: vanish });
    await missing.stop();
    await vanishing.stop();
    expect(warnings).toEqual([]);
  });

  test('a failed sync is reported once, and everything is synced when it works again', async () => {
    const { synced, sync } = recorder();
    let broken = true;
    const flaky = (path: string): Promise<void> =>
      broken ? Promise.reject(new Error('disk gone')) : sync(path);
    await writeFile(join(files.directory, 'one'), 'a');
    const loop = startSyncLoop({ store: files.directory, log, everyMs: never, sync: flaky });
    await loop.pass();
    await loop.pass();
    expect(warnings).toEqual([expect.stringContaining('disk gone')]);
    broken = false;
    await loop.stop();
    expect(synced).toEqual(['one', '']);
  });
});
