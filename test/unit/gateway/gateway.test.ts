import { afterEach, describe, expect, it } from 'vitest';
import type { Gateway, GatewayOptions, Token } from '../../../src/gateway/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { openGateway } from './support.ts';

describe('the HTTP server', () => {
  const open: Gateway[] = [];
  afterEach(async () => {
    for (const gateway of open.splice(0)) await gateway.close();
  });

  const secret: Token = { role: 'operate', secret: 'secret', publisher: null };

  async function start(options: Partial<GatewayOptions> = {}): Promise<Gateway> {
    const { gateway } = await openGateway(options);
    open.push(gateway);
    return gateway;
  }

  it('`/healthz` reports that the daemon is alive, and its version', async () => {
    const gateway = await start();
    gateway.open(null);
    const answer = await fetch(`${gateway.url}/healthz`);
    expect([answer.status, await answer.json()]).toEqual([200, { status: 'ok', version: '1.2.3' }]);
  });

  it('`/readyz` reports ready only when the daemon is ready', async () => {
    const { gateway, daemon } = await openGateway();
    open.push(gateway);
    const { url } = gateway;
    gateway.open(null);
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/api/agents`)).status).toBe(503);
    gateway.open(daemon);
    const answer = await fetch(`${url}/readyz`);
    expect([answer.status, await answer.json()]).toEqual([200, { status: 'ready' }]);
  });

  it('`/readyz` reports not ready while the daemon has no connection to NATS', async () => {
    const { gateway, daemon } = await openGateway();
    open.push(gateway);
    const ready = async () => {
      const answer = await fetch(`${gateway.url}/readyz`);
      return [answer.status, await answer.json()];
    };
    daemon.isConnected = false;
    expect(await ready()).toEqual([503, { status: 'disconnected' }]);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    daemon.isConnected = true;
    expect(await ready()).toEqual([200, { status: 'ready' }]);
    daemon.isWritable = async () => false;
    expect(await ready()).toEqual([503, { status: 'unwritable' }]);
  });

  it('an error over HTTP names a document by the same path as everywhere else', async () => {
    const { url } = await start();
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: '{}', headers });
    const { error } = (await answer.json()) as { error: { message: string } };
    expect(error.message).toContain('(docs/guides/standard-protocols.md says what is taken)');
  });

  it('an unknown path is answered with a problem document', async () => {
    const { url } = await start();
    const answer = await fetch(`${url}/nowhere`);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(await answer.json()).toEqual({
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      detail: 'there is nothing at /nowhere',
      code: 'NOT_FOUND',
      hint: "docs/guides/http.md lists the paths; the base URL of OpenAI's clients ends in /v1",
    });
  });

  it("a client of OpenAI's protocol whose base URL lacks /v1 reads so in its own form", async () => {
    const { url } = await start();
    for (const path of ['/chat/completions', '/responses', '/models', '/models/dev']) {
      const answer = await fetch(`${url}${path}`, { method: 'POST' });
      const { error } = (await answer.json()) as { error?: { message: string } };
      expect(answer.status).toBe(404);
      expect(error?.message).toContain(`there is nothing at ${path} (`);
      expect(error?.message).toContain('ends in /v1');
    }
  });

  it('every route except the health checks needs a token', async () => {
    const { url } = await start({ tokens: [secret] });
    const status = async (path: string, authorization?: string) => {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      return (await fetch(`${url}${path}`, { headers })).status;
    };
    expect(await status('/healthz')).toBe(200);
    expect(await status('/readyz')).toBe(200);
    expect(await status('/anything')).toBe(401);
    expect(await status('/anything', 'Bearer secreT')).toBe(401);
    expect(await status('/anything', 'Bearer secret and more')).toBe(401);
    expect(await status('/anything', 'Bearer secret')).toBe(404);
    const wrong = await fetch(`${url}/anything`, { headers: { authorization: 'Bearer secreT' } });
    expect(await wrong.json()).toMatchObject({ detail: 'the daemon has no such token' });
  });

  it.each(['0.0.0.0', '::', '192.0.2.1', 'example.org'])(
    'the HTTP server refuses to listen on %s without a token (H1)',
    async (host) => {
      await expect(start({ host })).rejects.toMatchObject(
        errorWith('HTTP_TOKEN_MISSING', host, 'PARLEY_HTTP_TOKEN'),
      );
    },
  );

  it('the HTTP server reports that its port is in use, and how to choose another', async () => {
    const { url } = await start();
    const port = Number(new URL(url).port);
    await expect(start({ port })).rejects.toMatchObject(
      errorWith('HTTP_PORT_IN_USE', `127.0.0.1:${port}`, '--http'),
    );
  });

  it('the HTTP server reports any other error that keeps it from listening', async () => {
    await expect(start({ host: '192.0.2.1', tokens: [secret] })).rejects.toMatchObject(
      errorWith('HTTP_UNAVAILABLE', '192.0.2.1'),
    );
  });

  it('closing the HTTP server closes keep-alive connections and frees its port', async () => {
    const gateway = await start();
    await (await fetch(`${gateway.url}/healthz`)).text();
    await gateway.close();
    await expect(fetch(`${gateway.url}/healthz`)).rejects.toThrow();
    await start({ port: Number(new URL(gateway.url).port) });
  });
});
