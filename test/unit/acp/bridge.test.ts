import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { BRIDGE } from '../../../src/acp/agents/bridge.ts';

it.each([
  ['text/event-stream', 'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n'],
  ['application/json', '{"jsonrpc":'],
])(
  'an answer of %s that breaks off is an error for the program, whose server lives on',
  async (type, sent) => {
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': type, connection: 'close' }).write(sent, () => {
        setImmediate(() => response.destroy());
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const env = { PARLEY_TOOLS_URL: `http://127.0.0.1:${port}/`, PARLEY_TOOLS_TOKEN: 'secret' };
    const bridge = spawn(process.execPath, ['-e', BRIDGE], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    try {
      const lines = createInterface({ input: bridge.stdout })[Symbol.asyncIterator]();
      for (const id of [7, 8]) {
        bridge.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call' })}\n`);
        let answer: { id?: number; error?: unknown } = {};
        while (answer.id === undefined) answer = JSON.parse((await lines.next()).value);
        expect(answer).toMatchObject({ id, error: { message: expect.stringContaining('does not answer') } });
      }
    } finally {
      bridge.kill();
      server.close();
    }
  },
);
