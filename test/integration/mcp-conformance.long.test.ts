import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openProject, type Project, scriptedSettings } from '../support/project.ts';

/** The conformance suite of MCP, which needs a newer Node than Parley, in a folder of its own. Left out without a registry. */

const SUITE = '@modelcontextprotocol/conformance@0.1.16';
/** Of revision 2026-07-28. */
const NEXT = 'conformance-next@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12';
const CLIENT = fileURLToPath(new URL('../support/mcp-conformance-client.ts', import.meta.url));
const TSX = fileURLToPath(new URL('../../node_modules/tsx/dist/cli.mjs', import.meta.url));
const PATIENCE_MS = 240_000;

const run = promisify(execFile);

function hasRegistry(): boolean {
  try {
    execFileSync('npm', ['view', SUITE, 'version'], { stdio: 'ignore', timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!hasRegistry())('MCP conformance', () => {
  let folder: string;
  let project: Project;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'parley-conformance-'));
    await run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', 'node@22', SUITE, NEXT]);
    project = await openProject({
      settings: scriptedSettings(),
      agents: { lead: '---\nname: Lead\n---\nYou lead.' },
      script: [{ reply: { text: 'Fine.' } }],
      http: true,
    });
    await project.up();
  }, PATIENCE_MS);
  afterAll(async () => {
    await project?.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** The end of its output. Rejects if a check failed. */
  async function conformance(suite: string, ...args: readonly string[]): Promise<string> {
    const modules = join(folder, 'node_modules');
    const env = { ...process.env, PATH: `${join(modules, '.bin')}:${process.env.PATH}` };
    const main = join(modules, suite, 'dist/index.js');
    const { stdout, stderr } = await run(join(modules, '.bin/node'), [main, ...args], {
      env,
      timeout: 90_000,
    });
    return stdout + stderr;
  }
  const STABLE = '@modelcontextprotocol/conformance';
  const client = (suite: string, scenario: string) => {
    const command = `${process.execPath} ${TSX} ${CLIENT}`;
    return conformance(suite, 'client', '--scenario', scenario, '--command', command);
  };
  const server = (suite: string, scenario: string) =>
    conformance(suite, 'server', '--scenario', scenario, '--url', `${project.http}/mcp`);

  /** Not: extensions. */
  it.each([
    ...['initialize', 'tools_call', 'sse-retry', 'elicitation-sep1034-client-defaults'],
    ...['auth/metadata-default', 'auth/metadata-var1', 'auth/metadata-var2', 'auth/metadata-var3'],
    ...['auth/basic-cimd', 'auth/pre-registration', 'auth/resource-mismatch'],
    ...['auth/scope-from-www-authenticate', 'auth/scope-from-scopes-supported'],
    ...['auth/scope-omitted-when-undefined', 'auth/scope-step-up', 'auth/scope-retry-limit'],
    ...['auth/token-endpoint-auth-basic', 'auth/token-endpoint-auth-post', 'auth/token-endpoint-auth-none'],
    ...['auth/2025-03-26-oauth-metadata-backcompat', 'auth/2025-03-26-oauth-endpoint-fallback'],
    ...['auth/offline-access-scope', 'auth/offline-access-not-supported'],
  ])(
    'the client passes %s',
    async (scenario) => {
      expect(await client(STABLE, scenario)).toContain('PASSED');
    },
    100_000,
  );

  /** Not: arguments in headers, which are not sent, and a tool whose argument is its own schema. */
  it.each([
    'request-metadata',
    'http-standard-headers',
    'sep-2322-client-request-state',
    'json-schema-ref-no-deref',
    ...['auth/authorization-server-migration', 'auth/metadata-issuer-mismatch', 'auth/iss-normalized'],
    'auth/iss-supported',
    'auth/iss-not-advertised',
    'auth/iss-supported-missing',
    'auth/iss-wrong-issuer',
    ...['auth/iss-unexpected'],
  ])(
    'the client passes %s of revision 2026-07-28',
    async (scenario) => {
      expect(await client('conformance-next', scenario)).toContain('PASSED');
    },
    100_000,
  );

  /** Not: prompts, completion, and what the suite tries on tools of its own server. */
  it.each([
    'http-header-validation',
    'sep-2164-resource-not-found',
    'input-required-result-unsupported-methods',
  ])(
    'the server passes %s of revision 2026-07-28',
    async (scenario) => {
      expect(await server('conformance-next', scenario)).toMatch(/Passed: ([1-9]\d*)\/\1, 0 failed/);
    },
    100_000,
  );

  /** Not: prompts, sampling, subscriptions, and scenarios that call tools of the suite's own server. */
  it.each([
    ...['server-initialize', 'ping', 'tools-list'],
    ...['resources-list', 'dns-rebinding-protection'],
  ])(
    'the server passes %s',
    async (scenario) => {
      expect(await server(STABLE, scenario)).toMatch(/Passed: ([1-9]\d*)\/\1, 0 failed/);
    },
    100_000,
  );
});
