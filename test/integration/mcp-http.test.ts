import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { errorWith } from '../support/error-with.ts';
import { itLong } from '../support/long.ts';
import { type McpHttpServer, startMcpHttpServer } from '../support/mcp-http-server.ts';
import { EVERYTHING, type McpTestTools, openMcpTools, secrets } from '../support/mcp-tools.ts';
import { freePort } from '../support/nats-server.ts';

/** Servers over streamable HTTP. */

const TIMES = { restartMs: 10, restartMaxMs: 100, answerGraceMs: 50, endMs: 1000 };

async function toolsOf(url: string, headers: Record<string, string> = {}): Promise<McpTestTools> {
  const toolbox = await openMcpTools(
    () => ({ web: { transport: 'http', url, headers: secrets(headers) } }),
    TIMES,
  );
  await toolbox.tools.settled();
  return toolbox;
}

describe('an MCP server over HTTP', () => {
  let server: McpHttpServer;
  let toolbox: McpTestTools;

  beforeEach(async () => {
    server = await startMcpHttpServer();
    toolbox = await toolsOf(server.url, { Authorization: 'Bearer key-1' });
  });
  afterEach(async () => {
    await toolbox.close();
    await server.close();
  });

  const hanging = () => expect.poll(() => server.marks).toContain('hanging');
  const backAgain = () =>
    vi.waitFor(async () => {
      const outcome = await toolbox.run('mcp__web__echo');
      expect(outcome).toEqual({ kind: 'completed', content: 'echo' });
    }, 20_000);

  it('a call over HTTP carries the configured headers', async () => {
    expect(await toolbox.run('mcp__web__echo')).toEqual({ kind: 'completed', content: 'echo' });
    for (const headers of server.headers) expect(headers.authorization).toBe('Bearer key-1');
  });

  it('new tools of an HTTP server are listed', async () => {
    server.grow();
    await expect.poll(() => toolbox.tools.definitions().has('mcp__web__grown')).toBe(true);
  });

  it('an HTTP server is notified of a cancelled call', async () => {
    const controller = new AbortController();
    const call = toolbox.run('mcp__web__hang', {}, controller.signal);
    await hanging();
    controller.abort();
    expect(await call).toEqual({ kind: 'aborted' });
    await expect.poll(() => server.marks).toContain('cancelled');
  });

  it('a dropped event stream fails its own call and no other (HTTP-TRANSPORT-1)', async () => {
    const sessions = server.openSessions;
    expect(await toolbox.run('mcp__web__drop')).toMatchObject(errorWith('MCP_CONNECTION_LOST', 'not known'));
    expect(await toolbox.run('mcp__web__echo')).toMatchObject({ kind: 'completed' });
    expect(server.openSessions).toBe(sessions);
  });

  it('a call with an expired session has no effect, and the session is replaced', async () => {
    server.forgetSessions();
    expect(await toolbox.run('mcp__web__echo')).toMatchObject(
      errorWith('MCP_SERVER_UNAVAILABLE', 'Nothing was done'),
    );
    await backAgain();
  });

  it('the session ends when the tools are closed (HTTP-TRANSPORT-3)', async () => {
    expect(server.openSessions).toBe(1);
    await toolbox.tools.close();
    expect(server.openSessions).toBe(0);
  });
});

describe('an HTTP server that cannot resume a broken stream', () => {
  itLong(
    'a call fails when the client has tried to resume its stream often enough (HTTP-TRANSPORT-2)',
    async () => {
      const server = await startMcpHttpServer({ forgetsEvents: true });
      const toolbox = await toolsOf(server.url);
      try {
        const outcome = await toolbox.run('mcp__web__drop');
        expect(outcome).toMatchObject({ code: 'MCP_CONNECTION_LOST' });
        expect(server.marks.filter((mark) => mark === 'asked to go on').length).toBeGreaterThan(1);
        expect(await toolbox.run('mcp__web__echo')).toMatchObject({ kind: 'completed' });
      } finally {
        await toolbox.close();
        await server.close();
      }
    },
  );
});

describe('an HTTP server that is not reachable', () => {
  it('an unreachable HTTP server is reported without the secrets of its headers', async () => {
    const url = `http://127.0.0.1:${await freePort()}/mcp`;
    const toolbox = await toolsOf(url, { Authorization: 'Bearer key-1' });
    const [status] = toolbox.tools.status();
    await toolbox.close();
    expect(status).toMatchObject({ state: 'failed', error: expect.stringContaining('ECONNREFUSED') });
    expect(toolbox.said.join('\n')).toContain('ECONNREFUSED');
    expect(toolbox.said.join('\n')).not.toContain('key-1');
  });
});

describe('a published MCP server over HTTP', () => {
  let child: ChildProcess;

  async function startEverything(port: number, transport = 'streamableHttp'): Promise<void> {
    const file = fileURLToPath(new URL(`../../node_modules/${EVERYTHING}`, import.meta.url));
    const env = { ...process.env, PORT: String(port) };
    child = spawn(process.execPath, [file, transport], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr?.on('data', (chunk) => {
      said += chunk;
    });
    await expect.poll(() => said).toMatch(/listening|running/);
  }

  async function end(): Promise<void> {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  itLong('a published server with the older transport is named as one', async () => {
    const port = await freePort();
    await startEverything(port, 'sse');
    const toolbox = await toolsOf(`http://127.0.0.1:${port}/sse`);
    try {
      expect(toolbox.tools.status()[0]).toMatchObject({
        state: 'failed',
        error: expect.stringMatching(/^it answered 404.*the older transport HTTP\+SSE.* is not supported/),
      });
    } finally {
      await toolbox.close();
      await end();
    }
  });

  itLong(
    'a published server that is killed during a call fails it, and is used again when it returns',
    async () => {
      const port = await freePort();
      await startEverything(port);
      const toolbox = await toolsOf(`http://127.0.0.1:${port}/mcp`);
      try {
        const message = { message: 'hello' };
        expect(await toolbox.run('mcp__web__echo', message)).toEqual({
          kind: 'completed',
          content: 'Echo: hello',
        });
        const call = toolbox.run('mcp__web__trigger-long-running-operation', { duration: 600, steps: 2 });
        // Answered after the call on the same connection, so the call has arrived.
        await toolbox.run('mcp__web__echo', message);
        await end();
        expect(await call).toMatchObject({ code: 'MCP_CONNECTION_LOST' });
        await startEverything(port);
        await vi.waitFor(async () => {
          expect(await toolbox.run('mcp__web__echo', message)).toMatchObject({ kind: 'completed' });
        }, 20_000);
      } finally {
        await toolbox.close();
        await end();
      }
    },
  );
});
