import { describe, expect, it } from 'vitest';
import { loadYaml, refusalOf } from './folder.ts';

const yaml = (model: string) => `limits: { usdPerConversation: 5 }\nmodels: { default: { ${model} } }\n`;

describe('a limit in dollars', () => {
  it('refuses a model without a price, naming the key, the reason and what to do', async () => {
    const text = await refusalOf(loadYaml(yaml('baseURL: "http://h/v1"')));
    expect(text).toContain('parley.yaml:2:20: models.default.price\n');
    expect(text).toContain('limits.usdPerConversation is 5 and agents use this model');
    expect(text).toContain('tokensPerConversation');
  });

  it.each([
    ['a price', 'baseURL: "http://h/v1", price: { inputPerMillion: 1, outputPerMillion: 0 }'],
    ['the scripted provider', 'provider: scripted'],
  ])('accepts a model with %s', async (_, model) => {
    expect((await loadYaml(yaml(model))).limits.usdPerConversation).toBe(5);
  });

  it('accepts a model without a price that no agent uses', async () => {
    const models = `${yaml('provider: scripted').trimEnd().slice(0, -2)}, other: { baseURL: "http://h/v1" } }\n`;
    expect((await loadYaml(models)).limits.usdPerConversation).toBe(5);
  });
});
