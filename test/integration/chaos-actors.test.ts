import { once } from 'node:events';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { startChild } from '../chaos/actors/child.ts';
import { DaemonActor } from '../chaos/actors/daemon.ts';
import { createDiskActor } from '../chaos/actors/disk.ts';
import { createProxyActor } from '../chaos/actors/proxy.ts';
import { createToolServerActor, KEY_FIELD } from '../chaos/actors/tool-server.ts';
import { checkDescriptors, checkEnd, countDescriptors, processesIn } from '../chaos/environment.ts';
import { launcher, strangersEnvironment } from '../support/cli.ts';
import { errorWith } from '../support/error-with.ts';
import { itLong } from '../support/long.ts';
import { startNatsServer } from '../support/nats-server.ts';

/** The actors that break a daemon must themselves work as documented. */

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (let cleanup = cleanups.pop(); cleanup; cleanup = cleanups.pop()) await cleanup();
});

async function directory(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'parley-actors-'));
  cleanups.push(() => rm(made, { recursive: true, force: true }));
  return made;
}

/** An echo server, a proxy before it, and one connection through the proxy. */
async function echo() {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const proxy = await createProxyActor((server.address() as AddressInfo).port);
  cleanups.push(() => proxy.close());
  const dial = () => {
    const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1');
    let heard = '';
    socket.on('data', (data: Buffer) => {
      heard += data.toString();
    });
    socket.on('error', () => socket.destroy());
    cleanups.push(() => socket.destroy());
    return { socket, heard: () => heard };
  };
  return { proxy, dial };
}

describe('the proxy', () => {
  it('the proxy forwards data, holds it back while stalled, and then delivers all of it in order', async () => {
    const { proxy, dial } = await echo();
    const { socket, heard } = dial();
    socket.write('one ');
    await expect.poll(heard).toBe('one ');
    proxy.stall();
    socket.write('two ');
    await pause(100);
    expect(heard()).toBe('one ');
    proxy.heal();
    socket.write('three');
    await expect.poll(heard).toBe('one two three');
  });

  it('the proxy keeps the order while it is slow and after it', async () => {
    const { proxy, dial } = await echo();
    const { socket, heard } = dial();
    proxy.slow(150);
    for (const word of ['a', 'b', 'c']) {
      socket.write(word);
      await pause(10);
    }
    expect(heard()).toBe('');
    proxy.heal();
    socket.write('d');
    await expect.poll(heard).toBe('abcd');
  });

  it('the proxy closes connections when it is cut, accepts none meanwhile, and connects again when it is restored', async () => {
    const { proxy, dial } = await echo();
    const first = dial();
    first.socket.write('x');
    await expect.poll(first.heard).toBe('x');
    proxy.cut();
    await expect.poll(() => first.socket.closed).toBe(true);
    const refused = dial();
    await expect.poll(() => refused.socket.closed).toBe(true);
    proxy.heal();
    const second = dial();
    second.socket.write('y');
    await expect.poll(second.heard).toBe('y');
  });
});

describe('the tool server', () => {
  const call = (url: string, key: string) =>
    fetch(url, {
      method: 'POST',
      body: JSON.stringify({
        id: 1,
        method: 'tools/call',
        params: { name: 'write', _meta: { [KEY_FIELD]: key } },
      }),
    });

  it('the tool server counts effects by key, answered or not', async () => {
    const server = await createToolServerActor();
    cleanups.push(() => server.close());
    expect(await (await call(server.url, 'k')).json()).toMatchObject({
      result: { content: [{ type: 'text', text: 'did k' }] },
    });
    server.misbehave('drop');
    await expect(call(server.url, 'k')).rejects.toThrow();
    server.misbehave('slow');
    const slow = call(server.url, 'other');
    await expect.poll(() => server.effects.get('other')).toBe(1);
    server.heal();
    expect((await slow).status).toBe(200);
    expect([...server.effects]).toEqual([
      ['k', 2],
      ['other', 1],
    ]);
    expect((await fetch(server.url)).status).toBe(405);
  });
});

describe('the small disk', () => {
  itLong(
    'the small disk is filled to the last byte and freed again, or reports why there is none',
    async () => {
      const path = join(await directory(), 'disk');
      const disk = await createDiskActor(path);
      if (disk.kind === 'simulated') {
        expect(disk.why).toMatch(/^no small disk can be mounted here \(.+\)$/);
        return;
      }
      cleanups.push(() => disk.close());
      await disk.fill();
      await expect(writeFile(join(path, 'more'), 'x')).rejects.toMatchObject({ code: 'ENOSPC' });
      await disk.free();
      await writeFile(join(path, 'more'), 'x');
    },
  );

  it('the small disk is simulated, with the reason, if the system does not allow a mount', async () => {
    const disk = await createDiskActor(join(await directory(), 'disk'), 'parley-no-such-program');
    if (disk.kind !== 'simulated') throw new Error('there is such a program');
    expect(disk.why).toContain('ENOENT');
    await disk.fill();
    await access(disk.flag);
    await disk.free();
    await disk.close();
    await expect(access(disk.flag)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('a child process', () => {
  it('a child process reports that it is alive, its lines and its exit code', async () => {
    const script =
      'process.on("SIGTERM", () => process.exit(4)); console.log("begin"); setInterval(() => {}, 1e3)';
    const options = { command: process.execPath, args: ['-e', script], env: {}, workingDirectory: tmpdir() };
    const child = startChild(options);
    expect(await child.said(/^begin/)).toBe('begin');
    expect(child.isAlive).toBe(true);
    child.signal('SIGTERM');
    expect(await child.exited).toBe(4);
    expect(child.isAlive).toBe(false);
  });

  it('a child process that ends too early or cannot be started is an error with its last output', async () => {
    const script = 'console.error("out of paper"); process.exit(3)';
    const options = { command: process.execPath, args: ['-e', script], env: {}, workingDirectory: tmpdir() };
    await expect(startChild(options).said(/never/)).rejects.toThrow(/ended with 3: out of paper/);
    await expect(startChild({ ...options, command: '/nowhere' }).said(/never/)).rejects.toThrow(
      /ended with -1/,
    );
  });
});

describe('the daemon of a run', () => {
  async function daemon(configured: boolean, startPatienceMs: number) {
    const root = await directory();
    const config = join(root, 'config');
    await mkdir(join(config, 'agents'), { recursive: true });
    if (configured) await writeFile(join(config, 'agents', 'pm.md'), 'You plan.\n');
    const nats = await startNatsServer();
    cleanups.push(() => nats.stop());
    const options = { config, data: join(root, 'data'), natsUrl: nats.url, workingDirectory: root };
    const actor = new DaemonActor({ ...options, launcher, env: strangersEnvironment(), startPatienceMs });
    cleanups.push(() => actor.stopForGood());
    return { actor, nats };
  }

  itLong('the daemon of a run ends at its crash point once it has work', async () => {
    const { actor, nats } = await daemon(true, 30_000);
    await actor.start();
    const connection = await openNats({ url: nats.url });
    cleanups.push(() => connection.close());
    const post = () => void connection.jetstream().publish('parley.in.ann.demo', 'hello');
    await actor.crashAt('post-received', 1, 30_000, post);
    expect(actor.crashes).toEqual(['post-received']);
    expect(actor.findings).toEqual([]);
  });

  itLong('a daemon that refuses its configuration ends the run at once with its output', async () => {
    const { actor } = await daemon(false, 600_000);
    const error = await actor.start().catch((failure: unknown) => failure);
    expect(error).toMatchObject(errorWith('CHAOS_NOT_READY', '', 'parley doctor'));
    expect(String(error)).toContain('CONFIG_INVALID');
    expect(actor.findings).toEqual([]);
  });

  itLong(
    'a daemon is started again whatever ended it, and an unexpected end is a finding (ACTORS-DAEMON-1)',
    async () => {
      const { actor } = await daemon(true, 30_000);
      await actor.start();
      const first = actor.pid;
      await actor.kill(0);
      await expect.poll(() => actor.starts).toBe(2);
      expect(actor.findings).toEqual([]);
      process.kill(actor.pid, 'SIGKILL');
      await expect.poll(() => actor.starts).toBe(3);
      expect(actor.findings).toEqual([expect.stringContaining('exit code null')]);
      expect(actor.pid).not.toBe(first);
      await actor.crashAt('before-recovery', 1, 200, () => undefined); // No work is outstanding, so it is never reached.
      expect(actor.crashes).toEqual([]);
      await actor.stopForGood();
      expect(actor.pid).toBe(0);
    },
  );
});

describe('what a run leaves', () => {
  it('a leftover process, an address file, a failed exit and too many descriptors are found', async () => {
    const root = await directory();
    await writeFile(join(root, 'stay.mjs'), 'console.log("here"); setInterval(() => {}, 1e3)');
    const options = {
      command: process.execPath,
      args: [join(root, 'stay.mjs')],
      env: {},
      workingDirectory: root,
    };
    const child = startChild(options);
    await child.said(/here/);
    const hasProc = await access('/proc/self/fd').then(
      () => true,
      () => false,
    );
    if (hasProc) {
      expect(await processesIn(root)).toEqual([
        expect.stringMatching(new RegExp(`^${child.pid}: .*stay.mjs$`)),
      ]);
      expect(await countDescriptors(process.pid)).toBeGreaterThan(2);
    }
    expect(await countDescriptors(0)).toBeNull();
    child.signal('SIGKILL');
    await child.exited;
    expect(await processesIn(root)).toEqual([]);

    expect(await checkEnd(root, 0)).toEqual([]);
    await writeFile(join(root, 'connection.json'), '{}');
    const found = (await checkEnd(root, null)).map(({ text }) => text);
    expect(found).toEqual(['the last stop ended with null', 'connection.json was not removed']);
    expect(checkDescriptors(80, 0)).toEqual([]);
    expect(checkDescriptors(null, 0)).toEqual([]);
    expect(checkDescriptors(81, 0)).toMatchObject([{ law: 'leftovers' }]);
  });
});
