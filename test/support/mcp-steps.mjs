import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

/**
 * An MCP server whose calls can be counted and held. `STEPS` names a folder (`steps.ts` is its other side): a call is a
 * line in `entered` when it begins and in `effects` when it takes effect, and waits before and after that for as long
 * as the file `<name>-before` or `<name>-after` is there. `look` is safe by its annotation, `act` is not.
 */
const { STEPS } = process.env;

async function step({ name }, { _meta, sendNotification }) {
  appendFileSync(join(STEPS, 'entered'), `${name}\n`);
  const progress = { progressToken: _meta.progressToken, progress: 1, total: 2, message: `${name} began` };
  await sendNotification({ method: 'notifications/progress', params: progress });
  await held(`${name}-before`);
  appendFileSync(join(STEPS, 'effects'), `${name}\n`);
  await held(`${name}-after`);
  return { content: [{ type: 'text', text: `${name} is done` }] };
}

async function held(file) {
  while (existsSync(join(STEPS, file))) await delay(5);
}

const server = new McpServer({ name: 'steps', version: '1.0.0' });
const inputSchema = { name: z.string() };
server.registerTool('look', { inputSchema, annotations: { readOnlyHint: true } }, step);
server.registerTool('act', { inputSchema }, step);

process.stdin.on('end', () => process.exit(0)); // with its daemon: nothing takes effect after that
appendFileSync(join(STEPS, 'processes'), `${process.pid}\n`);
await server.connect(new StdioServerTransport());
