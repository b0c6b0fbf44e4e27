import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ToolRun } from '../../src/agents/tool-port.ts';
import { proposedAnswer } from '../../src/conversation/log/server-asks.ts';
import { createMcpTools, LoginStore, logIn } from '../../src/tools/mcp/index.ts';
import { secrets } from './mcp-tools.ts';

/**
 * The client under test of the MCP conformance suite: calls each tool of the server that the last argument names, and logs in as
 * a person does when Parley asks for it.
 */
const url = process.argv.at(-1) ?? '';
const { client_id: id, client_secret: secret } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const document = 'https://conformance-test.local/client-metadata.json';
const isDocument = process.env.MCP_CONFORMANCE_SCENARIO?.includes('cimd');
const oauth = {
  ...(id ? { clientId: id } : isDocument ? { clientId: document } : {}),
  ...(secret && { clientSecret: secrets({ secret }).secret! }),
};
const settings = { transport: 'http' as const, url, headers: {}, oauth };
const logins = new LoginStore(await mkdtemp(join(tmpdir(), 'parley-conformance-')), undefined);
const log = { info: console.log, warn: console.log };
const tools = createMcpTools({
  ...{ servers: { web: settings }, project: tmpdir(), environment: {}, log, logins },
  times: { restartMs: 20 },
});

async function login(): Promise<void> {
  const onUrl = async (page: string) => {
    const { headers } = await fetch(page, { redirect: 'manual' });
    await fetch(headers.get('location') ?? '');
  };
  await logIn({
    ...{ name: 'web', settings, store: logins, port: 0, onUrl },
    signal: AbortSignal.timeout(20_000),
  });
  for (let tries = 0; tries < 100 && tools.status()[0]?.state !== 'ready'; tries += 1) await delay(50);
}

/** The first failure that a login may repair; undefined: none. */
async function callAll(): Promise<string | undefined> {
  for (const [name, { parameters }] of tools.definitions()) {
    const { properties = {} } = parameters as { properties?: Record<string, { type?: string }> };
    const given = Object.entries(properties).map(([key, { type }]) => [key, type === 'number' ? 2 : 'x']);
    const call = { conversation: 'c', agent: 'a', turnId: 't', name, idempotencyKey: 'k' };
    const ask: ToolRun['ask'] = async ({ schema }) => proposedAnswer(schema);
    const run = { ...call, arguments: Object.fromEntries(given), ask };
    const outcome = await tools.run(run, AbortSignal.timeout(30_000));
    console.log(name, outcome);
    if (outcome.kind === 'failed' && outcome.message.includes('needs login')) return outcome.message;
  }
  return undefined;
}

let code = 0;
try {
  await tools.settled();
  for (let logins = 0; logins < 3; logins += 1) {
    const wanted = tools.status()[0]?.error ?? (await callAll());
    if (!wanted?.includes('needs login')) break;
    await login();
  }
} catch (error) {
  console.log(error);
  code = 1;
}
await tools.close();
process.exit(code);
