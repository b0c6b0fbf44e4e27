import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Toolbox } from '../../src/agents/index.ts';
import { loadConfig } from '../../src/config/index.ts';
import { TeamTools } from '../../src/daemon/compose/tools.ts';
import { NO_CONVERSATIONS } from '../../src/tools/builtin/tool.ts';
import { sharedFolder } from '../support/lifetime.ts';

/** The environment that a program of a tool gets from the daemon. */

const SECRET = 'never to be seen';
const PROGRAM = fileURLToPath(new URL('../support/mcp-program.mjs', import.meta.url));
const reference = (name: string) => `$\{${name}}`;
const SETTINGS = {
  models: { default: { provider: 'openai', apiKey: reference('OPENAI_API_KEY'), model: 'm' } },
  tools: {
    mcpServers: {
      it: { command: 'node', args: [PROGRAM], env: { MARKS: 'marks', ITS_OWN: reference('SERVER_TOKEN') } },
      other: { command: 'node', args: [PROGRAM] },
    },
  },
};

const directory = sharedFolder();
let tools: Toolbox;

beforeAll(async () => {
  await mkdir(join(directory, 'config', 'agents'), { recursive: true });
  await mkdir(join(directory, 'data'));
  await writeFile(join(directory, 'config', 'agents', 'dev.md'), 'You build.\n');
  await writeFile(join(directory, 'config', 'parley.yaml'), JSON.stringify(SETTINGS));
  const secrets = {
    OPENAI_API_KEY: SECRET,
    SERVER_TOKEN: 'for that server',
    PARLEY_NATS_PASSWORD: SECRET,
    AWS_SECRET_ACCESS_KEY: SECRET,
    GITHUB_TOKEN: SECRET,
    NODE_OPTIONS: '',
    HTTPS_PROXY: `http://user:${SECRET}@proxy`,
    ANYTHING: SECRET,
  };
  const env = { PATH: process.env.PATH, HOME: directory, LANG: 'C.UTF-8', USER: '() { :; }', ...secrets };
  process.env.PARLEY_TEST_SECRET = SECRET;
  const config = await loadConfig({ env, workingDirectory: directory });
  const say = () => undefined;

  const teamTools = new TeamTools({ info: say, warn: say, error: say }, NO_CONVERSATIONS);
  tools = { ...(await teamTools.open(config)), close: () => teamTools.close() };
});

afterAll(async () => {
  delete process.env.PARLEY_TEST_SECRET;
  await tools.close();
});

async function outcomeOf(name: string, given = {}) {
  const call = {
    conversation: 'c',
    agent: 'dev',
    turnId: 't',
    name,
    arguments: given,
    idempotencyKey: 'c:1:0',
  };
  return tools.run(call, new AbortController().signal);
}

async function run(name: string, given = {}): Promise<string> {
  const outcome = await outcomeOf(name, given);
  return outcome.kind === 'completed' ? outcome.content : JSON.stringify(outcome);
}

it('a command finds its programs and the language, and no secret', async () => {
  const seen = await run('shell', { command: 'env; node -v; git --version' });
  expect(seen).toContain(`PATH=${process.env.PATH}\n`);
  expect(seen).toContain(`HOME=${directory}\n`);
  expect(seen).toContain('LANG=C.UTF-8\n');
  expect(seen).toContain(`${process.version}\n`);
  expect(seen).toMatch(/^git version/m);
  expect(seen).not.toContain(SECRET);
  expect(seen).not.toContain('for that server');
  expect(seen).not.toContain('[secret]');
  expect(seen).not.toContain('() {');
});

it('a secret of the configuration that a tool repeats, in a result or in an error, is hidden (TEAM-TOOLS-2)', async () => {
  expect(await run('shell', { command: "printf 'for that'; echo ' server, that'" })).toContain(
    '[secret], that',
  );
  const missing = await run('fs_read', { path: '@project/for that server' });
  expect(missing).toContain('[secret]');
  expect(missing).not.toContain('for that server');
});

it('a file with a secret of the configuration is not given, and another one is unchanged (TEAM-TOOLS-2)', async () => {
  await writeFile(join(directory, 'a.pdf'), '%PDF- for that server');
  await writeFile(join(directory, 'b.pdf'), '%PDF- for all servers');
  const [secret, harmless] = [
    await outcomeOf('fs_read', { path: '@project/a.pdf' }),
    await outcomeOf('attach', { path: '@project/b.pdf' }),
  ];
  expect(secret).toEqual({
    kind: 'completed',
    content: '[file 1: @project/a.pdf, 21 B]\n[1 file not kept: a secret of the configuration is in it]',
    files: [],
  });
  expect(harmless).toMatchObject({ files: [{ bytes: Buffer.from('%PDF- for all servers') }] });
});

it('an MCP server gets what its own settings name, and no other secret', async () => {
  const { env } = JSON.parse(await run('mcp__it__surroundings'));
  expect(env).toMatchObject({ PATH: process.env.PATH, HOME: directory, ITS_OWN: '[secret]' });
  const { ITS_OWN: _, ...rest } = env;
  expect(JSON.stringify(rest)).not.toContain(SECRET);
  expect(JSON.stringify(rest)).not.toContain('[secret]');
  const other = await run('mcp__other__surroundings');
  expect(other).not.toContain('for that server');
  expect(other).not.toContain('[secret]');
  expect(other).not.toContain(SECRET);
});
