import { describe, expect, it } from 'vitest';
import type { ModelRequest } from '../../../src/agents/index.ts';
import { loadConfig } from '../../../src/config/index.ts';
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
