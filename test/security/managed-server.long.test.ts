import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readdir, readFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { connect, type NatsConnection } from 'nats';
import { describe, expect, it } from 'vitest';
import { folderPerTest, perTest } from '../support/lifetime.ts';
import { openProject, servesNats } from '../support/project.ts';

/** Another local user listens on the port of a managed nats-server that died, and records what it receives. */

const project = perTest(() => openProject());
const folder = folderPerTest();

interface FakeServer {
  /** Everything that its clients sent. */
  received(): string;
}

/** Takes the port as soon as it is free, and greets like a nats-server that requires an nkey or a password. */
async function takePort(port: number): Promise<FakeServer> {
  const chunks: string[] = [];
  const sockets = new Set<Socket>();
  const greeting = {
    ...{ server_id: 'FAKE', server_name: 'fake', version: '2.10.27', proto: 1, host: '127.0.0.1', port },
    ...{ headers: true, max_payload: 1_048_576, auth_required: true, nonce: 'vAFmWAtyBBpCGHA' },
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      chunks.push(chunk.toString());
      if (chunk.includes('CONNECT')) socket.end("-ERR 'Authorization Violation'\r\n");
    });
    socket.write(`INFO ${JSON.stringify(greeting)}\r\n`);
  });
  for (;;) {
    server.listen({ host: '127.0.0.1', port, exclusive: true });
    if (await once(server, 'listening').catch(() => null)) break;
    await sleep(1);
  }
  project.defer(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { received: () => chunks.join('') };
}

async function killServer(): Promise<number> {
  const pid = await project.natsServerProcess();
  process.kill(pid, 'SIGKILL');
  while (await servesNats(project.data, pid)) await sleep(1);
  return Number(JSON.parse(await readFile(join(project.data, 'nats', 'endpoint.json'), 'utf8')).port);
}

/** Without a login, once a server there accepts that. */
async function connectAs(servers: string): Promise<NatsConnection> {
  for (;;) {
    const connection = await connect({ servers, reconnect: false }).catch(() => null);
    if (connection) return connection;
    await sleep(10);
  }
}

/** Every long value of the files that contain credentials. */
async function secrets(): Promise<string[]> {
  const names = (await readdir(join(project.data, 'nats'))).filter((name) => /^credentials|\.nk$/.test(name));
  const texts = await Promise.all(names.map((name) => readFile(join(project.data, 'nats', name), 'utf8')));
  const found = texts.flatMap((text) => text.match(/[\w-]{30,}/g) ?? []).filter((text) => !/^U/.test(text));
  expect(found).not.toEqual([]);
  return found;
}

function connects(text: string): Record<string, unknown>[] {
  return [...text.matchAll(/^CONNECT (.*)\r$/gm)].map(([, json = '']) => JSON.parse(json));
}

function expectNoSecret(text: string, held: readonly string[]): void {
  for (const sent of connects(text)) {
    expect(sent).not.toHaveProperty('pass');
    expect(sent).not.toHaveProperty('auth_token');
    expect(sent).toMatchObject({ nkey: expect.stringMatching(/^U/), sig: expect.any(String) });
  }
  for (const secret of held) expect(text).not.toContain(secret);
}

describe('a process that takes the port of a managed nats-server', () => {
  it('a foreign server on the port gets no secret from the commands and the next daemon after both were killed', async () => {
    const daemon = await project.up();
    const held = await secrets();
    await daemon.kill9();
    const fake = await takePort(await killServer());

    const said = project.parley('say', 'demo', 'hello');
    await expect.poll(() => connects(fake.received()).length).toBeGreaterThan(0);
    await expect(project.up()).rejects.toThrow(/NATS_PORT_IN_USE|taken by another program/);
    await said;
    expectNoSecret(fake.received(), held);
  });

  it('a foreign server on the port gets no secret from the daemon, which reconnects by itself', async () => {
    await project.up();
    const held = await secrets();
    const fake = await takePort(await killServer());
    await expect.poll(() => connects(fake.received()).length).toBeGreaterThan(1);
    expectNoSecret(fake.received(), held);
  });

  it.runIf(process.getuid?.() === 0)(
    'a foreign server on the port that accepts every login cannot operate a daemon',
    async () => {
      await project.up();
      expect((await project.parley('say', 'demo', 'hello', '--wait')).code).toBe(0);
      const { port, name } = JSON.parse(await readFile(join(project.data, 'nats', 'endpoint.json'), 'utf8'));
      await chmod(folder, 0o755);
      const binary = join(folder, 'nats-server'); // where this user may run it
      const copy = `cp "$(command -v "${process.env.NATS_BIN || 'nats-server'}")" ${binary}`;
      await promisify(execFile)('/bin/sh', ['-c', copy]);
      const loop = `until ${binary} -a 127.0.0.1 -p ${port} -n ${name}; do :; done`;
      const stranger = spawn('/bin/sh', ['-c', loop], {
        uid: 65_534,
        gid: 65_534,
        stdio: 'ignore',
        detached: true,
      });
      const endStranger = () => {
        if (stranger.exitCode === null && stranger.signalCode === null)
          process.kill(-(stranger.pid ?? 0), 'SIGKILL');
      };
      project.defer(endStranger);
      process.kill(await project.natsServerProcess(), 'SIGKILL');
      const anybody = await connectAs(`nats://127.0.0.1:${port}`);
      project.defer(() => anybody.close());
      const deadline = performance.now() + 12_000;
      while (performance.now() < deadline) {
        const answer = await anybody
          .request('parley.api.entries', '{"conversation":"demo"}', { timeout: 500 })
          .catch(() => null);
        expect(answer?.string()).toBeUndefined();
        await sleep(200);
      }
      endStranger();
      const said = () => project.parley('say', 'demo', 'again', '--wait').then(({ code }) => code);
      await expect.poll(said, { timeout: 30_000, interval: 500 }).toBe(0);
    },
  );
});
