import { once } from 'node:events';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject, type Project } from '../support/project.ts';

/** An error at a start is reported with what, where, and the remedy. Nothing remains. */
describe('a daemon that cannot start', () => {
  let nats: TestNatsServer;
  let project: Project;

  beforeAll(async () => {
    nats = await startNatsServer();
  });
  afterAll(() => nats.stop());
  beforeEach(async () => {
    project = await openProject({ nats: nats.url });
  });
  afterEach(() => project.close());

  const up = (...args: string[]) => {
    const own = ['--config', project.config, '--nats', nats.url, '--http', 'off', '--data', project.data];
    return runCli(['up', ...own, ...args]);
  };

  it('a start names the file, the key, the value and what it expects', async () => {
    await writeFile(join(project.config, 'parley.yaml'), 'retry: { attempts: many }\nsubjektPrefix: x\n');
    const { code, stderr } = await up();
    expect(code).toBe(2);
    expect(stderr).toContain('parley.yaml');
    expect(stderr).toContain('retry.attempts');
    expect(stderr).toContain('many');
    expect(stderr).toMatch(/subjektPrefix.*\bsubjectPrefix\b/s);
  });

  it.each(['file', 'jetstream'])(
    'a start is refused on the data directory of another daemon, with the store %s',
    async (store) => {
      const first = await project.up('--store', 'jetstream');
      const address = await readFile(join(project.data, 'connection.json'), 'utf8');
      const { code, stderr } = await up('--store', store);
      expect(code).toBe(1);
      expect(stderr).toContain(project.data);
      expect(stderr).toContain(`is in use by process ${first.pid}`);
      expect(await readFile(join(project.data, 'connection.json'), 'utf8')).toBe(address);
      expect((await project.parley('say', 'demo', 'still there?', '--wait')).code).toBe(0);
    },
  );

  /** The address that another program uses. */
  async function takenAddress(): Promise<string> {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    project.defer(() => other.close());
    const address = other.address();
    return `127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  }

  it.each<[string, number, () => Promise<[option: string, named: string]>]>([
    ['the port is taken', 1, async () => ['--http', await takenAddress()]],
    ['there is no such configuration', 2, async () => ['--config', join(project.root, 'nowhere')]],
  ])('a start reports on stderr and as one line of JSON that %s', async (_, expected, faulty) => {
    const [option, named] = await faulty();
    const outcome = await up('--json', option, named);
    expect(outcome.code).toBe(expected);
    expect(outcome.stderr).toContain(named);
    const error = { code: expect.any(String), message: expect.stringContaining(named) };
    expect(outcome.json()).toEqual([{ error: expect.objectContaining(error) }]);
  });

  it('a start names the daemon that serves the same subjects from another data directory, which continues', async () => {
    const first = await project.up();
    const elsewhere = join(project.root, 'elsewhere');
    const { code, stderr } = await up('--data', elsewhere);
    expect(code).toBe(1);
    expect(stderr).toContain(`process ${first.pid}`);
    expect(stderr).toContain('parley.>');
    expect(stderr).toContain('subjectPrefix');
    expect((await project.parley('say', 'demo', 'still there?', '--wait')).code).toBe(0);
    await first.kill9(); // leaves nothing that would block the next
    const next = await project.up('--data', elsewhere);
    expect(await next.stop()).toBe(0);
  });

  it('of daemons that start at the same moment on one server, each with its own logs, exactly one serves', async () => {
    const starts = await Promise.allSettled(
      ['a', 'b', 'c'].map((data) => project.up('--data', join(project.root, data))),
    );
    const refused = starts.flatMap((start) => (start.status === 'rejected' ? [String(start.reason)] : []));
    expect(refused).toEqual(Array(2).fill(expect.stringContaining('DAEMON_ALREADY_SERVING')));
    expect((await project.parley('say', 'demo', 'hello', '--nats', nats.url, '--wait')).code).toBe(0);
  });

  // Root may write everywhere.
  it.skipIf(process.getuid?.() === 0)('a start names a data directory that is not writable', async () => {
    await mkdir(project.data);
    await chmod(project.data, 0o500);
    const { code, stderr } = await up();
    await chmod(project.data, 0o700);
    expect(code).toBe(1);
    expect(stderr).toContain(project.data);
  });

  it('a start names the server that does not answer', async () => {
    const { code, stderr } = await up('--nats', 'nats://127.0.0.1:1');
    expect(code).toBe(1);
    expect(stderr).toContain('127.0.0.1:1');
  });

  it('a start fails on a server without JetStream, and explains how to enable it', async () => {
    const plain = await startNatsServer({ plain: true });
    project.defer(() => plain.stop());
    const { code, stderr } = await up('--nats', plain.url);
    expect(code).toBe(1);
    expect(stderr).toContain('no JetStream');
    expect(stderr).toContain('nats-server -js');
  });

  it('a started daemon serves its health, and reports that it is ready', async () => {
    const daemon = await project.up('--http', '127.0.0.1:0');
    const { http } = daemon.ready;
    expect(http).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await (await fetch(`${http}/healthz`)).json()).toMatchObject({ status: 'ok' });
    const ready = await fetch(`${http}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready' }]);
    expect(await daemon.stop()).toBe(0);
    await expect(fetch(`${http}/healthz`)).rejects.toThrow();
  });

  it('a daemon is not ready while its nats-server is down, and ready when it is back', async () => {
    const nats = await startNatsServer();
    project.defer(() => nats.stop());
    const { ready } = await project.up('--http', '127.0.0.1:0', '--nats', nats.url);
    const status = async () => (await fetch(`${ready.http}/readyz`)).status;
    expect(await status()).toBe(200);
    await nats.kill9();
    await expect.poll(status).toBe(503);
    await nats.restart();
    await expect.poll(status).toBe(200);
  });
});
