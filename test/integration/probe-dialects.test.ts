import { expect, it } from 'vitest';
import { probe } from '../../src/daemon/index.ts';
import { anthropicApi } from '../support/anthropic-provider.ts';
import { type FakeHandler, startFakeProvider } from '../support/fake-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { answering } from '../support/responses-provider.ts';
import { load } from '../unit/config/folder.ts';

it.each<[string, FakeHandler, object]>([
  ['anthropic', anthropicApi([{ text: 'Yes.' }]).answer, { reasoningTokens: 1_024 }],
  ['responses', answering(() => ({ output: [{ text: 'Yes.' }] })), { reasoningEffort: 'high' }],
])(
  'the short request of `doctor --probe` is one that %s accepts from a model that reasons',
  async (provider, answer, more) => {
    const { url } = untilTestEnds(await startFakeProvider(answer));
    const model = { provider, baseURL: url, apiKey: 'sk-test', model: 'm', ...more };
    const config = await load({ 'parley.yaml': JSON.stringify({ models: { default: model } }) });
    expect(await probe(config)).toMatchObject([{ name: 'default', fault: null }]);
  },
);
