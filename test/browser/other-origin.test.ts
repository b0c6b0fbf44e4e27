import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath, launchBrowser } from '../support/browser.ts';
import { entriesOf } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject, type Project, scriptedSettings } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';
import type { Clients, Daemon } from './other-origin/page.ts';

const AGENTS = { lead: '---\nname: Lead\ndescription: leads\n---\nYou lead.' };
const SCRIPT = { rules: [{ reply: { text: 'Noted by the lead.' } }] };

/** The page and its clients as one script. */
async function bundle(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: 'error',
    define: { 'process.env.NODE_ENV': '"production"' },
    build: {
      write: false,
      minify: false,
      target: 'es2022',
      lib: { entry: fileURLToPath(new URL('other-origin/page.ts', import.meta.url)), formats: ['es'] },
    },
  });
  const [output] = [built].flat();
  if (!output || !('output' in output)) throw new Error('nothing was built');
  return output.output.map((file) => (file.type === 'chunk' ? file.code : '')).join('\n');
}

/** Serves the page on another port, which is another origin than the daemon's. */
async function servePage(script: string): Promise<{ server: Server; origin: string }> {
  const server = createServer((incoming, outgoing) => {
    const isScript = incoming.url === '/page.js';
    outgoing.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    outgoing.end(isScript ? script : '<!doctype html><script type="module" src="/page.js"></script>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe.skipIf(chromiumPath === null)('a page of another origin in Chromium', () => {
  let browser: Browser;
  let listed: Awaited<ReturnType<typeof servePage>>;
  let unlisted: Awaited<ReturnType<typeof servePage>>;
  const closing: (() => unknown)[] = [];
  beforeAll(async () => {
    const script = await bundle();
    browser = await launchBrowser('--host-resolver-rules=MAP rebound.example 127.0.0.1');
    [listed, unlisted] = [await servePage(script), await servePage(script)];
  });
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
    await browser?.close();
    for (const one of [listed, unlisted]) one?.server.close();
  });

  async function openPage(origin: string): Promise<Page> {
    const page = await browser.newPage();
    page.setDefaultTimeout(20_000);
    await page.goto(origin);
    await page.waitForFunction('"clients" in globalThis');
    return page;
  }

  async function startDaemon(http: object, env: Record<string, string> = {}): Promise<Project> {
    const nats: TestNatsServer = await startNatsServer();
    const project = await openProject({
      nats: nats.url,
      env,
      settings: scriptedSettings({ http: { origins: [listed.origin], ...http } }),
      agents: AGENTS,
      files: { 'script.yaml': SCRIPT },
    });
    closing.push(async () => {
      await project.close();
      await nats.stop();
    });
    return project;
  }

  /** Calls one of the page's clients. */
  function run<Name extends keyof Clients>(page: Page, name: Name, ...args: Parameters<Clients[Name]>) {
    return page.evaluate(
      ([called, given]) =>
        (globalThis as never as { clients: Record<string, (...all: unknown[]) => unknown> }).clients[
          called as string
        ]?.(...(given as unknown[])),
      [name, args] as const,
    ) as ReturnType<Clients[Name]>;
  }

  const kinds = [
    ['with a token', 'operates-this-daemon'],
    ['without tokens', null],
  ] as const;
  describe.each(kinds.slice(0, hasLongTests ? 2 : 1))('%s', (_, token) => {
    let daemon: Daemon;
    let project: Project;
    let page: Page;
    beforeAll(async () => {
      project = await startDaemon({}, token === null ? {} : { PARLEY_HTTP_TOKEN: token });
      daemon = { url: String((await project.up('--http', '127.0.0.1:0')).ready.http), token };
      page = await openPage(listed.origin);
    });

    it('a page of another origin runs the client of `openai`, which reads the conversation of its answer', async () => {
      expect(await run(page, 'openai', daemon)).toEqual({
        models: ['parley', 'lead'],
        answer: 'Noted by the lead.',
        conversation: expect.stringMatching(/^\S+$/),
        streamed: 'Noted by the lead.',
        failed: [404, 'model_not_found'],
      });
    });

    it('a page of another origin runs `HttpAgent` of `@ag-ui/client`', async () => {
      expect(await run(page, 'agUi', daemon)).toEqual({ answer: 'Noted by the lead.', phase: 'chat' });
    });

    it('a page of another origin runs the client of `@modelcontextprotocol/sdk`', async () => {
      const { tools, posted } = await run(page, 'mcp', daemon);
      expect(tools).toContain('post');
      expect(posted).toContain('Noted by the lead.');
    });

    it('a page of another origin runs the client of `@a2a-js/sdk`', async () => {
      const { sent, streamed } = await run(page, 'a2a', daemon);
      expect([sent, streamed]).toEqual([expect.stringContaining('Noted by the lead.'), 'Noted by the lead.']);
    });

    it('a page of another origin reads the events of a conversation', async () => {
      const posted = await run(
        page,
        'ask',
        daemon,
        'POST',
        '/api/conversations/watched/messages',
        '{"content":"x"}',
      );
      expect(posted.status).toBe(201);
      expect(await run(page, 'fetchEvents', daemon, 'watched', '0')).toBe('id: 1');
      if (token === null) expect(await run(page, 'eventSource', daemon, 'watched', 3)).toEqual([0, 1, 2]);
    });

    it('a page of another origin reads the reason of a refusal', async () => {
      const large = JSON.stringify({ content: 'x'.repeat(1_100_000) });
      for (const [method, path, body, status, code] of [
        ['GET', '/nowhere', undefined, 404, 'NOT_FOUND'],
        ['PUT', '/api/agents', undefined, 405, 'METHOD_NOT_ALLOWED'],
        ['POST', '/api/conversations/x/messages', '{', 400, 'MALFORMED_JSON'],
        ['POST', '/api/conversations/x/messages', large, 413, 'TOO_LARGE'],
        ['POST', '/v1/chat/completions', '{}', 400, 'BAD_REQUEST'],
      ] as const)
        expect([path, await run(page, 'ask', daemon, method, path, body)]).toMatchObject([
          path,
          { status, code },
        ]);
      const { headers } = await run(page, 'ask', daemon, 'PUT', '/api/agents');
      expect(headers).toMatchObject({ allow: 'GET, HEAD, OPTIONS' });
      if (token === null) return;
      const wrong = await run(page, 'ask', { ...daemon, token: 'wrong' }, 'GET', '/api/agents');
      expect(wrong).toMatchObject({
        status: 401,
        code: 'UNAUTHORIZED',
        headers: { 'www-authenticate': 'Bearer' },
      });
    });

    it('a page of an origin that is not listed sees nothing and may do nothing', async () => {
      const stranger = await openPage(unlisted.origin);
      for (const [method, path, body] of [
        ['GET', '/api/agents', undefined],
        ['GET', '/healthz', undefined],
        ['POST', '/api/conversations/strange/messages', '{"content":"x"}'],
        ['GET', '/nowhere', undefined],
      ] as const)
        expect([path, await run(stranger, 'ask', daemon, method, path, body)]).toMatchObject([
          path,
          { status: 0, code: expect.stringContaining('Failed to fetch') },
        ]);
      await expect(entriesOf(await project.connect(), 'strange')).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
    });

    it('a foreign page is refused if it names no origin, posts a form or opens a stream or a socket', async () => {
      const stranger = await openPage(unlisted.origin);
      const posts = '/api/conversations/strange/messages';
      const streams = '/api/conversations/watched/events';
      const statuses: [path: string, status: number][] = [];
      stranger.on('response', (response) => {
        const { pathname } = new URL(response.url());
        if (response.url().startsWith(daemon.url)) statuses.push([pathname, response.status()]);
      });
      const at = (path: string) => JSON.stringify(daemon.url + path);
      const headers = token === null ? '{}' : `{ authorization: 'Bearer ${token}' }`;
      await stranger.evaluate(`(async () => {
        await fetch(${at('/api/agents')}, { mode: 'no-cors', headers: ${headers} }).catch(() => undefined);
        await fetch(${at(posts)}, { mode: 'no-cors', method: 'POST', headers: { 'content-type': 'text/plain' },
          body: '{"content":"by a page"}' }).catch(() => undefined);
        navigator.sendBeacon(${at(posts)}, '{"content":"by a beacon"}');
        for (const [name, attribute] of [['img', 'src'], ['script', 'src'], ['iframe', 'src'], ['object', 'data']])
          document.body.append(Object.assign(document.createElement(name), { [attribute]: ${at('/api/agents')} }));
        const frame = Object.assign(document.createElement('iframe'), { name: 'answers' });
        const form = Object.assign(document.createElement('form'),
          { method: 'post', action: ${at(posts)}, target: 'answers', enctype: 'text/plain' });
        form.append(Object.assign(document.createElement('input'), { name: '{"content":"', value: 'by a form"}' }));
        document.body.append(frame, form);
        form.submit();
      })()`);
      // The browser reports no answer that it hides from a page entirely.
      await expect.poll(() => statuses.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(6);
      await stranger.waitForTimeout(300);
      expect(statuses.filter(([, status]) => status !== 403)).toEqual([]);
      const opened = await stranger.evaluate(`Promise.all([
        new Promise((done) => { const one = new WebSocket(${at('/mcp').replace('http', 'ws')});
          one.onopen = () => done('open'); one.onerror = () => done('refused'); }),
        new Promise((done) => { const one = new EventSource(${at(streams)});
          one.onopen = () => done('open'); one.onerror = () => done('refused'); }),
      ])`);
      expect(opened).toEqual(['refused', 'refused']);
      const top = await openPage(unlisted.origin);
      await top.evaluate(`(() => {
        const form = Object.assign(document.createElement('form'), { method: 'post', action: ${at(posts)} });
        document.body.append(form);
        form.submit();
      })()`);
      await top.waitForURL(daemon.url + posts);
      expect(await top.locator('body').innerText()).toContain('ORIGIN_FORBIDDEN');
      await expect(entriesOf(await project.connect(), 'strange')).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
    });

    it('a page whose host name was rebound to the address of the daemon after loading is refused', async () => {
      const rebound = daemon.url.replace('127.0.0.1', 'rebound.example');
      const page = await browser.newPage({ bypassCSP: true });
      expect((await page.goto(rebound))?.status()).toBe(403);
      await page.goto(`${rebound}/healthz`); // a page of that name, as the browser sees it
      const headers = token === null ? '{}' : `{ authorization: 'Bearer ${token}' }`;
      for (const path of ['/api/agents', '/api/conversations/watched/events', '/mcp', '/v1/models'])
        expect(
          await page.evaluate(
            `fetch('${path}', { headers: ${headers} }).then(async (answer) => [answer.status, await answer.text()])`,
          ),
        ).toEqual([403, expect.stringContaining('HOST_FORBIDDEN')]);
    });
  });

  itLong('a page of another origin reads that it is over the rate limit, and when to retry', async () => {
    const project = await startDaemon({ requestsPerSecond: 1 });
    const daemon = { url: String((await project.up('--http', '127.0.0.1:0')).ready.http), token: null };
    const page = await openPage(listed.origin);
    const answers = [];
    for (let n = 0; n < 30 && answers.at(-1)?.status !== 429; n += 1)
      answers.push(await run(page, 'ask', daemon, 'GET', '/api/agents'));
    expect(answers.at(-1)).toMatchObject({
      status: 429,
      code: 'RATE_LIMITED',
      headers: { 'retry-after': '1' },
    });
  });
});
