import { describe, expect, it } from 'vitest';
import { type AnthropicHandler, anthropicApi } from '../support/anthropic-provider.ts';
import { shared } from '../support/lifetime.ts';
import { checkLog } from '../support/log.ts';
import { startProject } from '../support/project.ts';

const CLAUDE = { provider: 'anthropic', apiKey: 'sk-ant-test', model: 'claude-sonnet-4-5' };

describe('a daemon whose model is Claude', () => {
  let reply: AnthropicHandler = () => ({ text: 'Hello, Alice.' });
  const api = anthropicApi((request, count) => reply(request, count));
  const project = shared(() =>
    startProject({
      nats: {},
      model: api.answer,
      settings: (baseURL) => ({ models: { default: { ...CLAUDE, baseURL } } }),
    }),
  );

  it('a post is answered by a stream of the Messages API', async () => {
    reply = () => ({ text: 'Hello, Alice.' });
    const said = await project.parley('say', 'hello', '@pm hello', '--as', 'alice', '--wait');
    expect(said.stdout).toContain('Hello, Alice.');
    expect(api.refusals).toEqual([]);
    const [request] = project.provider.requests;
    expect(request?.headers).toMatchObject({ 'x-api-key': 'sk-ant-test', 'anthropic-version': '2023-06-01' });
    expect(checkLog(await project.logFile('hello'))).toEqual([]);
  });
});
