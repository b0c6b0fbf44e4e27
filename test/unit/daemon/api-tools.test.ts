import { describe, expect, it } from 'vitest';
import { createWorld } from './world.ts';

describe('the endpoint `tools`', () => {
  it('the verb tools lists the tools with their risk and the state of the MCP servers', async () => {
    const shell = { name: 'shell', risk: 'risky', description: 'runs', parameters: {} } as const;
    const servers = [{ server: 'web', state: 'failed', tools: [], error: 'HTTP 401' }] as const;
    const world = createWorld({
      toolbox: {
        definitions: () => new Map([['shell', shell]]),
        check: () => null,
        run: async () => ({ kind: 'aborted' }),
        servers: () => servers,
        close: async () => undefined,
      },
    });
    expect(await world.request('tools', {})).toEqual({
      ok: true,
      body: { tools: [{ name: 'shell', risk: 'risky' }], servers },
    });
    expect(await world.request('tools', { more: 1 })).toMatchObject({
      ok: false,
      refusal: { code: 'BAD_REQUEST' },
    });
    await world.end();
  });
});
