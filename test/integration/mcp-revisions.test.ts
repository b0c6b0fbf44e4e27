import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { describe, expect, it } from 'vitest';
import type { ToolRun } from '../../src/agents/tool-port.ts';
import type { McpServerSettings } from '../../src/tools/mcp/index.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { modernServer } from '../support/mcp-modern.mjs';
import { openMcpTools } from '../support/mcp-tools.ts';
import { hasLongTests } from '../support/runs.ts';

/** Revision 2026-07-28 beside the older ones, with servers of the official SDK and of none. */

const fileOf = (name: string) => fileURLToPath(new URL(`../support/${name}`, import.meta.url));
const REVISION = '2026-07-28';
const TIMES = { restartMs: 10, restartMaxMs: 100, endMs: 300 };

function program(name: string, ...args: readonly string[]): McpServerSettings {
  return { transport: 'command', command: process.execPath, args: [fileOf(name), ...args], env: {} };
}

async function stageOf(web: McpServerSettings, discoverMs = 30_000) {
  const toolbox = await openMcpTools(() => ({ web }), { ...TIMES, discoverMs });
  untilTestEnds({ close: toolbox.close });
  const call = (tool: string, more: Partial<ToolRun> = {}, signal = new AbortController().signal) =>
    toolbox.tools.run(
      {
        ...{ conversation: 'c', agent: 'dev', turnId: 't', name: `mcp__web__${tool}` },
        ...{ arguments: {}, idempotencyKey: 'c/1/0', ...more },
      },
      signal,
    );
  await toolbox.tools.settled();
  return { ...toolbox, call };
}

/** `before`: answers a request itself if it returns a status. */
async function overHttp(before: (method: string) => number | null = () => null) {
  const marks: string[] = [];
  const headers: (string | undefined)[] = [];
  const methods: string[] = [];
  const listening: ServerResponse[] = [];
  const handler = createMcpHandler(() =>
    modernServer({
      onHanging: () => void marks.push('hangs'),
      onCancelled: () => void marks.push('cancelled'),
    }),
  );
  const http = createServer(async (request, response) => {
    const body = await buffer(request);
    const method = body.length > 0 ? String(JSON.parse(body.toString()).method) : '';
    headers.push(request.headers['mcp-protocol-version'] as string | undefined);
    methods.push(method);
    if (method === 'subscriptions/listen') listening.push(response);
    const status = before(method);
    if (status !== null) return void response.writeHead(status).end();
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const answer = await handler.fetch(
      new Request(`http://127.0.0.1/mcp`, {
        method: request.method ?? 'GET',
        headers: request.headers as Record<string, string>,
        ...(request.method === 'POST' && { body }),
        signal: gone.signal,
      }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) await pipeline(answer.body, response).catch(() => undefined);
    else response.end();
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  untilTestEnds({
    close: async () => {
      http.closeAllConnections();
      http.close();
    },
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  return { settings: { transport: 'http', url, headers: {} } as const, marks, headers, methods, listening };
}

const KINDS = ['a program', 'a server over HTTP'] as const;
const settingsOf = async (kind: (typeof KINDS)[number]) =>
  kind === 'a program' ? program('mcp-modern.mjs') : (await overHttp()).settings;

describe.each(KINDS)('revision 2026-07-28, with %s', (kind) => {
  it('it is spoken, and calls have their key, progress and failures', async () => {
    const { call } = await stageOf(await settingsOf(kind));
    expect(await call('revision')).toEqual({ kind: 'completed', content: REVISION });
    const said: string[] = [];
    const done = await call('steps', { onProgress: (text) => void said.push(text) });
    expect(done).toEqual({ kind: 'completed', content: 'key c/1/0' });
    expect(said).toEqual(['1 of 2: halfway']);
    expect(await call('fail')).toEqual({ kind: 'failed', code: 'TOOL_FAILED', message: 'out of paper' });
  });

  it('a question comes as the result of a call, which is sent again with the answer', async () => {
    const { call } = await stageOf(await settingsOf(kind));
    const asked: object[] = [];
    const ask: ToolRun['ask'] = async (asks) => {
      asked.push(asks);
      return asked.length === 1 ? { day: 'monday' } : null;
    };
    expect(await call('book', { ask })).toEqual({ kind: 'completed', content: 'booked monday' });
    expect(asked).toMatchObject([{ server: 'web', message: 'Which day?', schema: { required: ['day'] } }]);
    expect(await call('book', { ask })).toEqual({ kind: 'completed', content: 'not booked' });
  });

  it('a call that is aborted ends at once', async () => {
    const { call } = await stageOf(await settingsOf(kind));
    const controller = new AbortController();
    const hanging = call('hang', {}, controller.signal);
    setTimeout(() => controller.abort(), 50);
    expect(await hanging).toEqual({ kind: 'aborted' });
    expect(await call('revision')).toMatchObject({ content: REVISION });
  });
});

describe('revision 2026-07-28', () => {
  it('over HTTP the end of the request cancels the call at the server, and each request names the revision', async () => {
    const { settings, marks, headers } = await overHttp();
    const { call } = await stageOf(settings);
    const controller = new AbortController();
    const hanging = call('hang', {}, controller.signal);
    await expect.poll(() => marks).toEqual(['hangs']);
    controller.abort();
    await hanging;
    await expect.poll(() => marks).toEqual(['hangs', 'cancelled']);
    expect(new Set(headers)).toEqual(new Set([REVISION]));
  });

  it('tools that a server gets later are listed', async () => {
    const { call, tools } = await stageOf(program('mcp-modern.mjs'));
    await call('grow');
    await expect.poll(() => tools.definitions().has('mcp__web__grown')).toBe(true);
  });

  it('a stream of changes that ends is requested again, and the tools are listed again', async () => {
    const { settings, methods, listening } = await overHttp();
    const { call } = await stageOf(settings);
    const count = (name: string) => methods.filter((one) => one === name).length;
    expect([count('subscriptions/listen'), count('tools/list')]).toEqual([1, 1]);
    const hanging = call('hang');
    listening[0]?.destroy();
    await expect.poll(() => count('tools/list')).toBe(2);
    expect(count('subscriptions/listen')).toBe(2);
    expect(await Promise.race([hanging, call('revision')])).toMatchObject({ content: REVISION });
  });
});

describe('an older revision', () => {
  it.each([...(hasLongTests ? [['exits', 'exit'] as const] : []), ['says nothing', 'mute']] as const)(
    'a program that %s at the first request is started as an old one',
    async (_, how) => {
      const { call, tools } = await stageOf(program('mcp-old.mjs', how), 300);
      await expect.poll(() => tools.status()[0]?.state).toBe('ready');
      expect(await call('echo')).toEqual({ kind: 'completed', content: 'echo' });
    },
  );

  it.each(hasLongTests ? [500, 202] : [202])(
    'a server that answers %d to what it does not know is used as an old one',
    async (status) => {
      const { settings, headers } = await overHttp((method) =>
        method === 'server/discover' ? status : null,
      );
      const { call, tools } = await stageOf(settings, 300);
      await expect.poll(() => tools.status()[0]?.state).toBe('ready');
      expect(await call('fail')).toMatchObject({ message: 'out of paper' });
      expect(headers.at(-1)).toBe('2025-11-25');
    },
  );
});
