import { describe, expect, it } from 'vitest';
import { openNats } from '../../../src/bus/nats/index.ts';
import { addressKey } from '../../../src/cli/doctor/models.ts';
import type { Config } from '../../../src/config/index.ts';
import { messageOf } from '../../../src/kernel/index.ts';
import { OPENAI } from './doctor-support.ts';
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

describe('the address of a model, an MCP server or a NATS server', () => {
  it('doctor names the variable that an address is from', () => {
    const model = { ...OPENAI, baseURL: 'http://host.invalid/v1' } as never;
    expect(addressKey('a', model, { OPENAI_BASE_URL: 'http://host.invalid/v1/' })).toBe('OPENAI_BASE_URL');
    expect(addressKey('a', model, {})).toBe('models.a.baseURL');
  });

  it('doctor names the key of an address whose name does not resolve', async () => {
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
