import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type NatsConnection, type NatsOptions, openNats } from '../../src/bus/nats/index.ts';
import { connect, readConnectionFile, writeConnectionFile } from '../../src/client/index.ts';
import { makeCertificates } from '../support/certificates.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

const releases: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const release of releases.splice(0).reverse()) await release();
});

async function aServer(config = ''): Promise<TestNatsServer> {
  const server = await startNatsServer({ plain: true, config });
  releases.push(() => server.stop());
  return server;
}

async function opened(options: NatsOptions): Promise<NatsConnection> {
  const connection = await openNats(options);
  releases.push(() => connection.close());
  return connection;
}

/** The server of the connection after the next reconnect. */
async function afterReturn(connection: NatsConnection): Promise<string> {
  for await (const { type } of connection.status()) {
    if (type === 'reconnect') return `nats://${connection.getServer()}`;
  }
  throw new Error('the connection was closed');
}

const refusal = (options: NatsOptions) =>
  openNats(options).then(
    () => null,
    (error: unknown) => error as { code: string; message: string; hint: string },
  );

describe('a list of NATS servers', () => {
  it('servers are tried in order, and a start with the first one down succeeds', async () => {
    const [first, second, third] = [await aServer(), await aServer(), await aServer()];
    await first.kill9();
    for (const url of [[first.url, second.url, third.url], `${first.url}, ${second.url},${third.url}`]) {
      expect(`nats://${(await opened({ url })).getServer()}`).toBe(second.url);
    }
    const client = await connect({ url: [first.url, second.url] });
    releases.push(() => client.close());
    expect(client.url).toBe(`${first.url},${second.url}`);
  });

  it('a connection fails over to the next server, and to one that was down at the start', async () => {
    const [first, second] = [await aServer(), await aServer()];
    await first.kill9();
    const connection = await opened({ url: `${first.url},${second.url}` });
    await first.restart();
    const back = afterReturn(connection);
    await second.kill9();
    expect(await back).toBe(first.url);
    await second.restart();
    const again = afterReturn(connection);
    await first.kill9();
    expect(await again).toBe(second.url);
  });

  it('servers that are all unusable are named, without passwords', async () => {
    const [down, strict] = [await aServer(), await aServer('authorization { user: al, password: right }')];
    await down.kill9();
    const urls = [down.url, strict.url].map((url) => url.replace('//', '//al:geheim@'));
    const error = await refusal({ url: urls.join(',') });
    expect(error?.code).toBe('NATS_UNAUTHORIZED');
    expect(error?.message).toBe(
      `none of the 2 NATS servers is usable: cannot connect to NATS at ${down.url}: CONNECTION_REFUSED; ` +
        `the server at ${strict.url} refused the credentials`,
    );
    expect((await refusal({ url: [] }))?.code).toBe('CONFIG_INVALID');
    await strict.kill9();
    expect(await refusal({ url: urls })).toMatchObject({ code: 'NATS_UNREACHABLE' });
  });

  it('a connection waits until one of the servers answers', async () => {
    const [first, second] = [await aServer(), await aServer()];
    await first.kill9();
    await second.kill9();
    const waiting = opened({ url: [first.url, second.url], waitForServer: true });
    await second.restart();
    expect(`nats://${(await waiting).getServer()}`).toBe(second.url);
  });

  it('each URL may have its own login, or one login applies to all', async () => {
    const first = await aServer('authorization { user: al, password: "a,b" }');
    const second = await aServer('authorization { user: bo, password: b }');
    const own = `${first.url.replace('//', '//al:a,b@')},${second.url.replace('//', '//bo:b@')}`;
    const connection = await opened({ url: own });
    const moved = afterReturn(connection);
    await first.kill9();
    expect(await moved).toBe(second.url);
    const third = await aServer('authorization { user: bo, password: b }');
    await second.kill9();
    for (const options of [
      { url: `${second.url.replace('//', '//bo:b@')},${third.url}` },
      { url: [second.url, third.url], user: 'bo', password: 'b' },
    ]) {
      expect(`nats://${(await opened(options)).getServer()}`).toBe(third.url);
    }
  });

  it('TLS checks the host name in the list, also after a fail-over', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'parley-servers-'));
    releases.push(() => rm(directory, { recursive: true, force: true }));
    const certificates = await makeCertificates(directory);
    const [cert, key, ca] = ['server.pem', 'server.key', 'ca.pem'].map((name) => certificates.path(name));
    const tls = `tls { cert_file: ${JSON.stringify(cert)}, key_file: ${JSON.stringify(key)} }`;
    const [first, second] = [await aServer(tls), await aServer(tls)];
    const connection = await opened({ url: [first.url, second.url], tls: { ca } } as NatsOptions);
    const moved = afterReturn(connection);
    await first.kill9();
    expect(await moved).toBe(second.url);
  });
});

describe('connection.json', () => {
  it('connection.json contains the first server for older programs, and all of them for the others', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'parley-servers-'));
    releases.push(() => rm(directory, { recursive: true, force: true }));
    const file = { url: 'nats://a:1,nats://b:2', prefix: 'parley', pid: 1 };
    await writeConnectionFile(directory, file);
    const path = join(directory, 'connection.json');
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({
      url: 'nats://a:1',
      urls: ['nats://a:1', 'nats://b:2'],
    });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readConnectionFile(directory)).toEqual(file);
    await writeConnectionFile(directory, { ...file, url: 'nats://a:1' });
    expect(await readFile(path, 'utf8')).not.toContain('urls');
  });
});
