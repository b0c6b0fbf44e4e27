import { describe, expect, it } from 'vitest';
import { openNats } from '../../../src/bus/nats/index.ts';
import { modelChecks } from '../../../src/cli/doctor/models.ts';
import { type Config, Secret } from '../../../src/config/index.ts';
import { messageOf } from '../../../src/kernel/index.ts';
import { endpoint, OPENAI } from './doctor-support.ts';
import { fakeDaemon, parley } from './support.ts';

const EMPTY = {
  directory: '/conf',
  notices: [],
  environmentFiles: [],
  variables: [],
  agents: [],
  models: {},
  daemon: { nats: { kind: 'managed' } },
  tools: { project: '/nowhere', mcpServers: {} },
};
const config = (models: Record<string, unknown>) => ({ ...EMPTY, models }) as unknown as Config;

describe('the check of a model endpoint', () => {
  it.each([
    [200, 'ok', 'with a key'],
    [404, 'ok', 'with a key'],
    [500, 'ok', 'with a key'],
    [401, 'fail', 'it refuses the key (HTTP 401)'],
    [403, 'fail', 'it refuses the key (HTTP 403)'],
  ])('doctor reads HTTP %i of a model endpoint as %s', async (code, status, message) => {
    const { baseURL, seen, close } = await endpoint(code);
    const model = { ...OPENAI, baseURL };
    const found = await modelChecks(config({ a: model, b: model }), {});
    await close();
    expect(found[0]).toMatchObject({ status, message: expect.stringContaining(message) });
    expect(found[1]).toMatchObject({ status });
    expect(seen).toEqual(['GET /v1/models Bearer sk']);
    expect(JSON.stringify(found)).not.toContain('sk');
  });

  it('doctor sends no value of the environment to an endpoint that a file names, neither as key nor in the address', async () => {
    const { baseURL, seen, close } = await endpoint(401);
    const env = { OPENAI_API_KEY: 'sk-environment', TOKEN: 'my-token' };
    const variables = Object.values(env).map((value) => new Secret(value));
    const model = { ...OPENAI, baseURL: baseURL.replace(/\/$/, ''), apiKey: new Secret('sk-environment') };
    const inAddress = { ...model, baseURL: `${baseURL}my-token` };
    const given = { ...config({ a: model, b: inAddress }), variables } as Config;
    const found = await modelChecks(given, env);
    expect(found).toMatchObject([
      { status: 'ok', message: expect.stringContaining('was not sent there') },
      { status: 'warn', message: expect.stringContaining('not checked') },
    ]);
    expect(seen).toEqual(['GET /v1/models undefined']);
    // The environment names this endpoint, so its key is meant for it.
    expect(await modelChecks(given, { ...env, OPENAI_BASE_URL: baseURL })).toMatchObject([
      { status: 'fail', message: expect.stringContaining('it refuses the key') },
      {},
    ]);
    // Without that value in the environment, key and address are from the folder itself.
    await modelChecks(given, {});
    expect(seen.slice(1)).toEqual([
      'GET /v1/models Bearer sk-environment',
      'GET /v1/models Bearer sk-environment',
      'GET /v1/my-token/models Bearer sk-environment',
    ]);
    await close();
  });

  it('doctor reports that an endpoint without a key requires one', async () => {
    const { baseURL, close } = await endpoint(401);
    const found = await modelChecks(config({ a: { ...OPENAI, baseURL, apiKey: null } }), {});
    await close();
    expect(found).toMatchObject([
      {
        status: 'fail',
        message: expect.stringContaining('requires a key'),
        fix: expect.stringContaining('models.a.apiKey'),
      },
    ]);
  });

  it('doctor fails if nothing listens at an endpoint, and names the key to correct', async () => {
    const { baseURL, close } = await endpoint(200);
    await close();
    const found = await modelChecks(config({ a: { ...OPENAI, baseURL } }), {});
    expect(found).toMatchObject([
      {
        status: 'fail',
        message: expect.stringContaining('no answer (ECONNREFUSED)'),
        fix: expect.stringContaining('models.a.baseURL'),
      },
    ]);
  });

  it('doctor names the variable that an address is from', async () => {
    const model = { ...OPENAI, baseURL: 'http://host.invalid/v1' };
    const env = { OPENAI_BASE_URL: 'http://host.invalid/v1/' };
    expect(await modelChecks(config({ default: model }), env)).toMatchObject([
      { status: 'fail', fix: expect.stringMatching(/^correct OPENAI_BASE_URL, which names this host/) },
    ]);
  });

  it('doctor names the key of an address whose name does not resolve, of a model, an MCP server and a NATS server', async () => {
    const unknown = { ...OPENAI, baseURL: 'http://host.invalid/v1' };
    expect(await modelChecks(config({ a: unknown }), {})).toMatchObject([
      {
        status: 'fail',
        message: expect.stringContaining('no answer (the name host.invalid does not resolve)'),
        fix: expect.stringMatching(/^correct models\.a\.baseURL, which names this host.*DNS/),
      },
    ]);
    const mcp = Object.assign(new Error('getaddrinfo EAI_AGAIN tools.invalid'), { code: 'EAI_AGAIN' });
    const fault = { code: 'FAILED', message: `fetch failed: ${messageOf(mcp)}` };
    const ran = await parley(['doctor', '--probe', '--json'], {
      dependencies: {
        loadConfig: async () =>
          ({
            ...config({}),
            tools: {
              project: '/nowhere',
              mcpServers: { docs: { transport: 'http', url: 'http://tools.invalid' } },
            },
          }) as unknown as Config,
        daemon: async () =>
          ({ probe: async () => [{ kind: 'server', name: 'docs', ms: 1, tools: [], fault }] }) as never,
      },
    });
    expect(ran.json()).toContainEqual({
      name: 'MCP server docs',
      status: 'fail',
      message: expect.stringContaining('the name tools.invalid does not resolve'),
      fix: expect.stringContaining('correct tools.mcpServers.docs.url'),
    });
    await expect(openNats({ url: 'nats://nats.invalid:4222' })).rejects.toMatchObject({
      message: expect.stringContaining('the name nats.invalid does not resolve'),
      hint: expect.stringMatching(/^correct --nats.*DNS/),
    });
  });
});

it.each([
  [null, { status: 'ok', message: 'loaded from /conf/tools: stock' }],
  [
    { code: 'INTERNAL', message: '/conf/tools/stock.ts:1:9: Unexpected' },
    {
      status: 'fail',
      message: '/conf/tools/stock.ts:1:9: Unexpected',
      fix: expect.stringContaining('the daemon does not start'),
    },
  ],
])('doctor --probe reports functions in files, with the fault %o', async (fault, expected) => {
  const found = { kind: 'functions', name: '/conf/tools', ms: 1, tools: fault ? [] : ['stock'], fault };
  const ran = await parley(['doctor', '--probe', '--json'], {
    dependencies: {
      loadConfig: async () => config({}),
      daemon: async () => ({ probe: async () => [found] }) as never,
    },
  });
  expect(ran.json()).toContainEqual({ name: 'functions as tools', ...expected });
});

describe('doctor on remote agents', () => {
  const remote = (statuses: Record<string, string>) => {
    const agents = Object.entries(statuses).map(([slug, status]) => ({ slug, status }));
    const configured = {
      ...config({}),
      agents: ['critic', 'scribe', 'late', 'patient'].map((slug) => ({
        ...{ slug, runtime: 'bus' },
        absentMs: slug === 'patient' ? 60_000 : null,
      })),
    };
    return parley(['doctor', '--json'], {
      daemon: fakeDaemon({ agents: { agents } }),
      dependencies: { loadConfig: async () => configured as unknown as Config },
    });
  };

  it('doctor fails for a remote agent that is not connected', async () => {
    const ran = await remote({ critic: 'not connected', scribe: 'idle', patient: 'not connected' });
    expect(ran.code).toBe(1);
    const checks = ran.json().filter((check) => JSON.stringify(check).includes('runtime: bus'));
    expect(checks).toMatchObject([
      {
        name: 'agent critic (runtime: bus)',
        status: 'fail',
        message: 'not connected: its turns fail with AGENT_NOT_CONNECTED',
        fix: expect.stringContaining('start the process'),
      },
      { name: 'agent scribe (runtime: bus)', status: 'ok' },
      { name: 'agent late (runtime: bus)', status: 'warn' },
      {
        status: 'warn',
        message: 'not connected: its turns wait for it',
        fix: expect.stringContaining('start'),
      },
    ]);
  });
});
