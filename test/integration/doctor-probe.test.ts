import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { openProject, type Project } from '../support/project.ts';

const KEY = 'sk-secret-of-the-probe';
const program = fileURLToPath(new URL('../support/mcp-program.mjs', import.meta.url));
let endpoint: Server;
let project: Project;
afterEach(async () => {
  await project.close();
  endpoint.closeAllConnections();
  endpoint.close();
});

/** Answers one model, refuses the key of all others, and repeats the key in its error. */
async function startEndpoint(bodies: Record<string, unknown>[]): Promise<string> {
  endpoint = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    bodies.push(body);
    if (body.model !== 'good' || request.headers.authorization?.includes('refused')) {
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `bad key ${request.headers.authorization}` } }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(
      'data: {"choices":[{"delta":{"content":"Yes"},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n',
    );
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/v1`;
}

it('`doctor --probe` calls each model and MCP server once, reports each, and prints no key', async () => {
  const bodies: Record<string, unknown>[] = [];
  const baseURL = await startEndpoint(bodies);
  const model = (name: string) => ({ baseURL, model: name, apiKey: KEY, contextTokens: 8_000 });
  const mcpServers = {
    fine: { command: process.execPath, args: [program] },
    broken: { command: '/nonexistent/tool' },
  };
  const models = {
    default: { provider: 'scripted', script: 'script.yaml' },
    good: model('good'),
    bad: model('bad'),
    both: { ...model('good'), apiKey: undefined, apiKeys: [KEY, 'sk-refused'], fallback: ['good'] },
  };
  project = await openProject({
    settings: { models, tools: { mcpServers } },
    agents: { pm: '---\nname: PM\n---\nAnswer.' },
    files: { 'script.yaml': { rules: [{ reply: { text: 'x' } }] } },
  });
  const ran = await project.parley('doctor', '--config', project.config, '--probe', '--json');
  const checks = new Map(ran.json().map((check) => [check.name, check]));
  expect(checks.get('model default')).toMatchObject({
    status: 'warn',
    message: expect.stringContaining('offline'),
  });
  expect(checks.get('model good')).toMatchObject({
    status: 'ok',
    message: expect.stringMatching(/^good at .*\/v1 answered in \d+ ms$/),
  });
  expect(checks.get('model bad')).toMatchObject({
    status: 'fail',
    message: expect.stringContaining('UNAUTHORIZED'),
    fix: 'set models.bad.apiKey to a key of that endpoint',
  });
  expect(checks.get('model both, key 1')).toMatchObject({ status: 'ok' });
  expect(checks.get('model both, key 2')).toMatchObject({
    status: 'fail',
    fix: 'set models.both.apiKeys[1] to a key of that endpoint',
  });
  expect(checks.get('MCP server fine')).toMatchObject({
    status: 'ok',
    message: expect.stringMatching(/started and listed \d+ tools in \d+ ms$/),
  });
  expect(checks.get('MCP server broken')).toMatchObject({ status: 'fail' });
  expect(ran.code).toBe(1);
  expect(ran.stdout + ran.stderr).not.toContain(KEY);
  expect(bodies.map((body) => [body.model, body.max_tokens]).sort()).toEqual([
    ['bad', 16],
    ...[1, 2, 3].map(() => ['good', 16]),
  ]);
}, 60_000);
