import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { MessageTooLarge } from '../../src/tools/mcp/failure.ts';
import { HttpTransport } from '../../src/tools/mcp/http-transport.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { finished, followUntil, ofType } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { type Project, startProject } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';

/** Answers of providers and MCP servers that are small when sent and huge when decoded. */

const HUGE = Buffer.alloc(256_000_000, 'x');
const ENCODED = {
  gzip: gzipSync(HUGE, { level: 1 }),
  ...(hasLongTests && {
    br: brotliCompressSync(HUGE, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
    deflate: deflateSync(HUGE, { level: 1 }),
  }),
};
const BLANK = Buffer.alloc(120_000_000, ' ');
/** Without a limit, the daemon needs more than 256 MB for each of these. */
const MOST_MORE_MB = 160;

describe('an oversized answer of a provider', () => {
  let project: Project;
  let peakMb: () => Promise<number>;

  async function start(status: number, encoding: string, body: Uint8Array): Promise<void> {
    const headers = { 'content-encoding': encoding };
    project = untilTestEnds(
      await startProject({
        model: ({ json }) =>
          json.messages?.at(-1)?.content === 'bomb' ? { status, headers, body } : { text: 'Noted.' },
        agents: { pm: '---\nname: Pam\nphases: [chat]\n---\nPERSONA' },
      }),
    );
    peakMb = async () => {
      const found = /VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${project.daemon.pid}/status`, 'utf8'));
      return Number(found?.[1]) / 1024;
    };
  }

  /** The additional memory of the daemon, and the result of the turn. */
  async function bombed(): Promise<{ more: number; entries: readonly Entry[] }> {
    const client = await project.connect();
    await client.post({ conversation: 'c', content: 'hello', publisher: 'alice' });
    await followUntil(client, 'c', finished(1));
    const before = await peakMb();
    await client.post({ conversation: 'c', content: 'bomb', publisher: 'alice' });
    const entries = await followUntil(client, 'c', finished(2));
    return { more: (await peakMb()) - before, entries };
  }

  itLong(
    'that calls 100,000 tools fails, runs none, and does not keep the daemon from answering others',
    async () => {
      const calls = Array.from({ length: 100_000 }, (_, index) => ({
        index,
        id: `c${index}`,
        function: { name: 'fs_list', arguments: '{"path":"@project/"}' },
      }));
      const choices = [{ index: 0, message: { role: 'assistant', content: null, tool_calls: calls } }];
      await start(200, 'identity', Buffer.from(JSON.stringify({ choices })));
      const client = await project.connect();
      await client.post({ conversation: 'c', content: 'bomb', publisher: 'alice' });
      await client.post({ conversation: 'other', content: 'hello', publisher: 'alice' });
      await followUntil(client, 'other', finished(1));
      const entries = await followUntil(client, 'c', finished(1));
      expect(ofType(entries, 'message').at(-1)?.content).toContain('TOO_MANY_TOOL_CALLS');
      expect(ofType(entries, 'tool-started')).toEqual([]);
    },
  );

  it.each(Object.entries(ENCODED))(
    'a provider error with a huge body (%s) is not read to its end',
    async (...bomb) => {
      await start(400, ...bomb);
      const { more, entries } = await bombed();
      expect(ofType(entries, 'turn-ended').at(-1)?.outcome).toBe('failed');
      expect(ofType(entries, 'message').at(-1)?.content?.length).toBeLessThan(10_000);
      expect(more).toBeLessThan(MOST_MORE_MB);
    },
  );

  itLong('a provider answer of blanks only does not block the daemon', async () => {
    await start(200, 'identity', BLANK);
    const client = await project.connect();
    await client.post({ conversation: 'c', content: 'bomb', publisher: 'alice' });
    await project.provider.waitForRequests(1);
    const asked = performance.now();
    await followUntil(client, 'c', finished(1));
    expect(performance.now() - asked).toBeLessThan(15_000);
  });
});

describe('an oversized answer of an MCP server over HTTP', () => {
  const KINDS = ['application/json', 'text/event-stream']
    .flatMap((type) => [200, 500].map((status) => [type, status] as const))
    .filter(([type, status]) => hasLongTests || (status === 500) === (type === 'application/json'));
  it.each(KINDS.flatMap((kind) => Object.entries(ENCODED).map((bomb) => [...kind, ...bomb] as const)))(
    'an MCP answer of type %s and status %i with a huge body (%s) closes the connection',
    async (type, status, encoding, body) => {
      const server = createServer((request, response) => {
        request.resume();
        response.writeHead(status, { 'content-type': type, 'content-encoding': encoding }).end(body);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      onTestFinished(() => {
        server.close();
        server.closeAllConnections();
      });
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
      const transport = new HttpTransport({ url, headers: {}, answerGraceMs: 50, endMs: 100 });
      const errors: Error[] = [];
      transport.onerror = (error) => errors.push(error);
      const closed = new Promise<void>((resolve) => (transport.onclose = resolve));
      await transport.start();
      transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' }).catch(() => undefined);
      await closed;
      expect(errors.some((error) => error instanceof MessageTooLarge)).toBe(true);
    },
  );
});
