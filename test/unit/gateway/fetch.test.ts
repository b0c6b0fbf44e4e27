import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FetchOptions, fetchFile } from '../../../src/gateway/fetch.ts';
import { errorWith } from '../../support/error-with.ts';

describe('a file that a client names by URL', () => {
  const asked: { host: string | undefined; url: string | undefined; headers: IncomingMessage['headers'] }[] =
    [];
  let respond: (request: IncomingMessage, response: ServerResponse) => void;
  const server = createServer((request, response) => {
    asked.push({ host: request.headers.host, url: request.url, headers: request.headers });
    respond(request, response);
  });
  let port = 0;
  beforeEach(async () => {
    asked.length = 0;
    respond = (_, response) => response.setHeader('content-type', 'image/png').end('bytes');
    await once(server.listen(0, '0.0.0.0'), 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Names to addresses; 127.0.0.2 plays a public address. */
  const NAMES: Readonly<Record<string, readonly string[]>> = {
    'pictures.example': ['127.0.0.2'],
    'a.pictures.example': ['127.0.0.2'],
    'inside.example': ['127.0.0.1'],
    'both.example': ['127.0.0.2', '10.0.0.1'],
  };
  const resolve = async (name: string) => {
    const found = NAMES[name];
    if (!found) throw new Error(`no host ${name}`);
    return found.map((address) => ({ address, family: 4 }));
  };
  const network = { resolve, isPublic: (address: string) => address === '127.0.0.2' };
  const HOSTS = ['pictures.example', '*.pictures.example', 'inside.example', 'both.example', 'gone.example'];
  const get = (host: string, path = '/', more: Partial<FetchOptions> = {}) =>
    fetchFile(`http://${host}:${port}${path}`, { hosts: HOSTS, maxBytes: 1_000, network, ...more });

  it('is fetched from a host that the configuration names, without credentials, cookies and compression', async () => {
    const bytes = await get('pictures.example', '/plan.png?x=1');
    expect(Buffer.from(bytes).toString()).toBe('bytes');
    await get('A.Pictures.Example');
    expect(asked.map(({ host, url }) => [host, url])).toEqual([
      [`pictures.example:${port}`, '/plan.png?x=1'],
      [`a.pictures.example:${port}`, '/'],
    ]);
    expect(Object.keys(asked[0]?.headers ?? {}).sort()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ]);
    expect(asked[0]?.headers['accept-encoding']).toBe('identity');
  });

  const refusedUrl = async (url: string) => {
    const refused = await fetchFile(url, { hosts: HOSTS, maxBytes: 1_000, network }).catch(
      (error: unknown) => error,
    );
    expect(asked).toEqual([]);
    return refused;
  };

  it.each([
    ['another host', 'http://other.example/x.png', 'other.example'],
    ['a host below one that is named alone', 'http://b.inside.example/', 'b.inside.example'],
    ['a host that ends like a named one', 'http://notpictures.example/', 'notpictures.example'],
    ['an address', 'http://127.0.0.1/', '127.0.0.1'],
    ['an address as a number', 'http://2130706433/', '127.0.0.1'],
    ['an address of IPv6', 'http://[::ffff:127.0.0.1]/', '[::ffff:7f00:1]'],
  ])('is refused if its host is %s', async (_, url, host) => {
    const hint = expect.stringContaining('http.fetch.hosts');
    const message = `nothing is fetched from ${host}`;
    expect(await refusedUrl(url)).toMatchObject({ code: 'URL_REFUSED', message, hint });
  });

  it.each([
    ['a file of this machine', 'file:///etc/passwd', 'a URL of the kind "file:" is not fetched'],
    ['of another protocol', 'gopher://pictures.example/', 'a URL of the kind "gopher:" is not fetched'],
    ['what is no URL', 'http://', 'a URL of the kind "http://" is not fetched'],
  ])('is refused if it is %s', async (_, url, message) => {
    const hint = expect.stringContaining('http, https');
    expect(await refusedUrl(url)).toMatchObject({ code: 'URL_REFUSED', message, hint });
  });

  it('is refused if its URL has a password', async () => {
    expect(await refusedUrl('http://me:secret@pictures.example/')).toMatchObject({
      ...{ code: 'URL_REFUSED', message: 'the URL at pictures.example has a user or a password' },
      hint: expect.stringContaining('data URL'),
    });
  });

  it('is refused without a configuration', async () => {
    await expect(get('pictures.example', '/', { hosts: [] })).rejects.toMatchObject({ code: 'URL_REFUSED' });
  });

  it.each([
    ['inside.example', '127.0.0.1'],
    ['both.example', '10.0.0.1'],
  ])('is refused if the host %s has an address that is not public', async (host, address) => {
    await expect(get(host)).rejects.toMatchObject({
      code: 'URL_REFUSED',
      message: `${host} is at ${address}, which is no public address`,
    });
    expect(asked).toEqual([]);
  });

  it.each([
    ...'127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1'.split(' '),
    ...'::1 :: fe80::1 fd00::1 fec0::1 ::ffff:8.8.8.8 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::'.split(' '),
  ])('is not fetched from %s', async (address) => {
    const family = address.includes(':') ? 6 : 4;
    const network = { resolve: async () => [{ address, family }] };
    const refused = get('pictures.example', '/', { network });
    await expect(refused).rejects.toMatchObject(errorWith('URL_REFUSED', address));
    expect(asked).toEqual([]);
  });

  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['0x7f.1', '127.0.0.1'],
    ['10.0.0.1', '10.0.0.1'],
    ['[::1]', '::1'],
    ['[::ffff:127.0.0.1]', '::ffff:7f00:1'],
    ['[fd00::1]', 'fd00::1'],
  ])('is not fetched from %s, even if addresses are allowed as hosts (ADDRESS-1)', async (host, address) => {
    const hosts = [new URL(`http://${host}`).hostname];
    for (const options of [{ hosts }, { hosts, network }])
      await expect(
        fetchFile(`http://${host}:${port}/`, { maxBytes: 1_000, ...options }),
      ).rejects.toMatchObject(errorWith('URL_REFUSED', `is at ${address}, which is no public address`));
    expect(asked).toEqual([]);
  });

  it('is fetched from an address that is allowed and public', async () => {
    expect(Buffer.from(await get('127.0.0.2', '/', { hosts: ['127.0.0.2'] })).toString()).toBe('bytes');
  });

  const redirect = (to: (path: string) => string) => {
    respond = (request, response) => {
      const path = request.url ?? '';
      if (path === '/end') response.end('end');
      else response.writeHead(302, { location: to(path) }).end();
    };
  };

  it('is fetched after at most three redirects', async () => {
    redirect((path) => (path === '/2' ? '/end' : `/${Number(path.slice(1)) + 1}`));
    expect(Buffer.from(await get('pictures.example', '/0')).toString()).toBe('end');
    redirect((path) => `/${Number(path.slice(1)) + 1}`);
    await expect(get('pictures.example', '/0')).rejects.toMatchObject(
      errorWith('URL_NOT_FETCHED', 'redirects more than 3 times'),
    );
  });

  it.each([
    ['a private host', () => `http://inside.example:${port}/end`, 'inside.example is at 127.0.0.1'],
    ['an address', () => `http://127.0.0.1:${port}/end`, 'nothing is fetched from 127.0.0.1'],
    ['a file', () => 'file:///etc/passwd', 'a URL of the kind "file:"'],
  ])('is refused if its host redirects to %s', async (_, location, message) => {
    redirect(location);
    await expect(get('pictures.example')).rejects.toMatchObject(errorWith('URL_REFUSED', message));
    expect(asked).toHaveLength(1);
  });

  it('is read up to the limit of a file, whatever its head says (ADDRESS-2)', async () => {
    respond = (_, response) => response.setHeader('content-length', 1_001).end('x'.repeat(1_001));
    await expect(get('pictures.example')).rejects.toMatchObject({ code: 'BLOB_TOO_LARGE' });
    let sent = 0;
    respond = (_, response) => {
      response.on('error', () => undefined);
      const more = () => {
        sent += 1;
        if (!response.destroyed) response.write('x'.repeat(100), () => setImmediate(more));
      };
      more();
    };
    await expect(get('pictures.example')).rejects.toMatchObject({ code: 'BLOB_TOO_LARGE' });
    const read = sent;
    await new Promise((done) => setTimeout(done, 50));
    expect(sent - read).toBeLessThan(1_000); // the connection is closed
  });

  it.each([
    ['answers with a fault', () => undefined, 'pictures.example', 'it answered 404'],
    ['is not known', () => undefined, 'gone.example', 'gone.example: no host gone.example'],
  ])('cannot be fetched if its host %s', async (_, __, host, message) => {
    respond = (___, response) => response.writeHead(404).end();
    await expect(get(host)).rejects.toMatchObject(errorWith('URL_NOT_FETCHED', message));
  });

  it('is no longer fetched when the client is gone, or when its host is silent', async () => {
    respond = () => undefined;
    const gone = AbortSignal.timeout(20);
    await expect(get('pictures.example', '/', { signal: gone })).rejects.toMatchObject({
      code: 'URL_NOT_FETCHED',
    });
    await expect(get('pictures.example', '/', { maxMs: 30 })).rejects.toMatchObject({
      message: expect.stringContaining('took longer than 0.03 s'),
    });
  });
});
