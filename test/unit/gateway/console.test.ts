import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Gateway, type GatewayOptions, hasConsole } from '../../../src/gateway/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { openGateway } from './support.ts';

describe('the console routes', () => {
  const folder = folderPerTest();
  let gateway: Gateway;
  beforeEach(async () => {
    await mkdir(join(folder, 'console/assets'), { recursive: true });
    await writeFile(join(folder, 'secret.js'), 'secret');
    await writeFile(join(folder, 'console/index.html'), '<!doctype html>');
    await writeFile(join(folder, 'console/assets/index-abc.js'), 'run()');
    await writeFile(join(folder, 'console/assets/notes.txt'), 'notes');
  });
  afterEach(() => gateway.close());
  const open = async (options: Partial<GatewayOptions> = {}) => {
    ({ gateway } = await openGateway({ consoleFolder: join(folder, 'console'), ...options }));
  };

  /** `fetch` would normalize the path and set `Host` itself. */
  const ask = (path: string, headers: Record<string, string> = {}) =>
    new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; text: string }>(
      (resolve, reject) => {
        const asking = request(gateway.url, { path, headers, agent: false }, async (response) => {
          let text = '';
          for await (const piece of response) text += piece;
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
        asking.on('error', reject).end();
      },
    );

  it('files and long answers are compressed for who accepts that, and nothing else is', async () => {
    const script = `run(${'"again and again", '.repeat(500)})`;
    await writeFile(join(folder, 'console/assets/index-long.js'), script);
    await open();
    const asked = async (path: string, accepted = 'gzip') => {
      const { headers } = await ask(path, { 'accept-encoding': accepted });
      return headers['content-encoding'];
    };
    expect([await asked('/assets/index-long.js'), await asked('/')]).toEqual(['gzip', 'gzip']);
    expect(await asked('/assets/index-long.js', 'identity')).toBeUndefined();
    expect(await asked('/api/openapi.json')).toBe('gzip');
    expect([await asked('/api/agents'), await asked('/healthz'), await asked('/v1/models')]).toEqual([
      undefined, // short
      undefined,
      undefined,
    ]);
    expect(await (await fetch(`${gateway.url}/assets/index-long.js`)).text()).toBe(script);
    const stream = await fetch(`${gateway.url}/api/events?list=1`);
    expect(stream.headers.get('content-encoding')).toBeNull();
    await stream.body?.cancel();
  });

  it('the console page has a policy that lets it load and run only its own files', async () => {
    await open();
    const page = await ask('/');
    expect([page.status, page.text]).toEqual([200, '<!doctype html>']);
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    const policy = String(page.headers['content-security-policy']);
    expect(policy).toMatch(/default-src 'none'; script-src 'self'; .*frame-ancestors 'none'/);
    expect(policy).not.toMatch(/unsafe|\*|http/);
  });

  it('console assets are cached for ever, since their names change with their content', async () => {
    await open();
    expect(await ask('/assets/index-abc.js')).toMatchObject({
      status: 200,
      text: 'run()',
      headers: {
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': expect.stringMatching(/immutable/),
      },
    });
  });

  it.each([
    '/assets/..%2f..%2fsecret.js',
    '/assets/%2e%2e%2f%2e%2e%2fsecret.js',
    '/assets/../../secret.js',
    '/assets/none.js',
    '/assets/notes.txt',
    '/assets/.index.js',
    '/assets/',
  ])('the console routes serve no other file: %s', async (path) => {
    await open();
    const { status, text } = await ask(path);
    expect([status, text]).toEqual([404, expect.not.stringMatching(/^(secret|notes)$/)]);
  });

  it('the console files need no token, and everything that the page then reads does', async () => {
    await open({ tokens: [{ role: 'read', secret: 'reads', publisher: 'http' }] });
    expect((await ask('/')).status).toBe(200);
    expect((await ask('/assets/index-abc.js')).status).toBe(200);
    expect((await ask('/api/conversations')).status).toBe(401);
    expect((await ask('/api/identity')).status).toBe(401);
    const identity = await ask('/api/identity', { authorization: 'Bearer reads' });
    expect(JSON.parse(identity.text)).toEqual({
      role: 'read',
      publisher: 'http',
      name: null,
      isSession: false,
    });
  });

  it('the console routes refuse requests under an unknown host name', async () => {
    await open();
    expect((await ask('/', { host: 'stranger.example' })).status).toBe(403);
  });

  it('the console route explains what to do if the console was not built, and the daemon can tell at its start', async () => {
    const none = join(folder, 'none');
    expect([hasConsole(none), hasConsole(join(folder, 'console'))]).toEqual([false, true]);
    await open({ consoleFolder: none });
    const page = await ask('/');
    expect([page.status, JSON.parse(page.text)]).toEqual([
      503,
      expect.objectContaining({
        code: 'CONSOLE_MISSING',
        hint: expect.stringMatching(/run `npm run build:console` in the checkout of Parley/),
      }),
    ]);
  });

  it('a caller of the console is the operator if no token is configured', async () => {
    await open();
    expect(JSON.parse((await ask('/api/identity')).text)).toEqual({
      role: 'operate',
      publisher: null,
      name: null,
      isSession: false,
    });
  });
});
