import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { ModelRequest } from '../../../src/agents/index.ts';
import { type Config, loadConfig, Secret } from '../../../src/config/index.ts';
import { composeModels } from '../../../src/daemon/compose/compose.ts';

const config = await loadConfig({ env: {} }); // its one model is `default`
const request: ModelRequest = {
  ...{
    conversation: 'demo',
    agent: 'pm',
    turnId: 't1',
    tools: [],
    body: [],
    hash: 'h',
    headers: {},
  },
  messages: [{ role: 'user', content: '[Alice]: Hello' }],
};
const options = { signal: new AbortController().signal, onDelta: () => undefined };

describe('models that a program gives', () => {
  it('a function answers instead of the configured model', async () => {
    const models = await composeModels(config, { models: { default: ({ last }) => `You wrote: ${last}` } });
    expect(await models.get('default')?.call(request, options)).toMatchObject({
      kind: 'answered',
      answer: { content: 'You wrote: Hello', toolCalls: [] },
    });
  });

  it('an object with the method `call` is used as it is', async () => {
    const model = {
      call: async () => ({ kind: 'aborted', partial: { content: '', reasoning: '' } }) as const,
    };
    expect((await composeModels(config, { models: { default: model } })).get('default')).toBe(model);
  });

  it('a name that the configuration does not have is refused', async () => {
    await expect(composeModels(config, { models: { defualt: () => '' } })).rejects.toMatchObject({
      code: 'MODEL_UNKNOWN',
      hint: 'did you mean "default"?',
    });
  });
});

it('a provider that quotes the URL of a request does not reveal the variable in it to those who read the failure (OPENAI-MODEL-4)', async () => {
  const server = createServer(({ url }, response) => {
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: `Cannot POST ${url}` } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const limits = { firstTokenMs: null, idleMs: 5_000, apiKey: null };
  const model = {
    provider: 'openai',
    baseURL: `http://127.0.0.1:${port}/v1?key=k-very-secret`,
    ...limits,
  };
  const variables = [new Secret('k-very-secret')];
  const given = { ...config, variables, models: { default: model } } as unknown as Config;
  const outcome = await (await composeModels(given, {})).get('default')?.call(request, options);
  server.close();
  expect(outcome).toMatchObject({ kind: 'failed', message: expect.stringContaining('?key=[secret]') });
  expect(JSON.stringify(outcome)).not.toContain('very-secret');
});
