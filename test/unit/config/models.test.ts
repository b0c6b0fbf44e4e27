import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../../src/config/index.ts';
import { PRESETS } from '../../../src/config/schema/profiles.ts';
import { load, loadYaml, refusalOf } from './folder.ts';

const KEY = 'sk-very-secret';
/** In two parts, since it is a reference and not a template. */
const OPENAI_REFERENCE = '$' + '{OPENAI_API_KEY}';
const SECOND_REFERENCE = '$' + '{SECOND}';

function keyOf(config: Config, name = 'default'): string | null | undefined {
  const model = config.models[name];
  return model?.provider === 'openai' ? (model.apiKeys[0]?.reveal() ?? null) : undefined;
}

describe('a file without models', () => {
  it('without a key, agents answer offline and a notice says so', async () => {
    const config = await load({});
    expect(config.models).toEqual({
      default: {
        provider: 'scripted',
        dialect: 'chat',
        script: null,
        model: 'scripted',
        contextTokens: 128_000,
        maxOutputTokens: 4_096,
        accepts: [],
        parameters: {},
        session: null,
        fallback: [],
        profile: { ...PRESETS.compatible, preset: 'compatible', chosenBy: 'default' },
      },
    });
    expect(config.notices.join()).toContain('offline scripted model');
  });

  it('an empty key counts as no key', async () => {
    const config = await load({}, { env: { OPENAI_API_KEY: '' } });
    expect(config.models.default?.provider).toBe('scripted');
  });

  it('with a key, OpenAI is the default model', async () => {
    const config = await load({}, { env: { OPENAI_API_KEY: KEY } });
    expect(config.models.default).toMatchObject({
      provider: 'openai',
      dialect: 'chat',
      baseURL: 'https://api.openai.com/v1',
      model: 'gpt-5-mini',
      contextTokens: 400_000,
      price: {
        inputPerMillion: 0.25,
        cachedInputPerMillion: 0.025,
        cacheWritePerMillion: 0.25,
        outputPerMillion: 2,
      },
      maxOutputTokens: 4_096,
      profile: { preset: 'openai', chosenBy: 'host', otherAgentsAs: 'system' },
    });
    expect(keyOf(config)).toBe(KEY);
    expect(config.notices).toEqual([]);
  });

  it('a known model is shown pictures at its provider alone, and the file overrides that', async () => {
    const accepted = async (more: string) =>
      (await loadYaml(`models: { default: { model: gpt-5-mini, apiKey: k, ${more} } }`)).models.default
        ?.accepts;
    expect(await accepted('baseURL: "https://api.openai.com/v1"')).toEqual(['image']);
    expect(await accepted('baseURL: "http://h/v1"')).toEqual([]);
    expect(await accepted('accepts: [pdf, audio]')).toEqual(['pdf', 'audio']);
    expect(await accepted('accepts: []')).toEqual([]);
    await expect(accepted('accepts: [video]')).rejects.toThrow('models.default.accepts');
    await expect(accepted('accepts: [pdf, pdf]')).rejects.toThrow('each kind once');
  });

  it('the window and price of a known model are those of its provider alone, and the file overrides them', async () => {
    const at = async (settings: string) =>
      (await loadYaml(`models: { default: { apiKey: k, model: gpt-5.4, ${settings} } }`)).models.default;
    const known = await at('baseURL: "https://api.openai.com/v1"');
    expect(known).toMatchObject({ contextTokens: 272_000, price: { above: [{ inputTokens: 272_000 }] } });
    const elsewhere = await at('baseURL: "http://h/v1"');
    expect(elsewhere).toMatchObject({ contextTokens: 128_000 });
    expect(elsewhere).not.toHaveProperty('price');
    const price = '{ inputPerMillion: 1, outputPerMillion: 2 }';
    const overridden = await at(`baseURL: "https://api.openai.com/v1", contextTokens: 9000, price: ${price}`);
    expect(overridden).toMatchObject({ contextTokens: 9_000, price: { inputPerMillion: 1 } });
    expect(overridden?.price).not.toHaveProperty('above');
  });

  it.each([
    ['https://api.anthropic.com', 'https://api.anthropic.com/v1'],
    ['http://127.0.0.1:4000/', 'http://127.0.0.1:4000/v1'],
    ['https://api.z.ai/api/anthropic', 'https://api.z.ai/api/anthropic/v1'],
    ['http://127.0.0.1:9/v1', 'http://127.0.0.1:9/v1'],
    ['http://h/v2/?key=a', 'http://h/v2/?key=a'],
  ])(
    'the URL %s, written for the package of Anthropic, which adds the version, is %s',
    async (url, baseURL) => {
      const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: url };
      const byVariable = await loadYaml('models: { default: { provider: anthropic } }', { env });
      expect(byVariable.models.default).toMatchObject({ baseURL });
      const byKey = `models: { default: { provider: anthropic, apiKey: k, baseURL: "${url}" } }`;
      expect((await loadYaml(byKey)).models.default).toMatchObject({ baseURL });
    },
  );

  it.each([
    ['true', true],
    ['false', false],
    ['without-tools', 'without-tools'],
  ])(
    'a variable of a key with values of two types, %s, is read as the one that it names',
    async (text, value) => {
      const env = { OPENAI_API_KEY: KEY, PARLEY_MODELS_DEFAULT_STRUCTURED: text };
      expect((await loadYaml('', { env })).models.default?.profile.structured).toBe(value);
    },
  );

  it('OPENAI_BASE_URL sets the endpoint of the default model', async () => {
    const env = { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: 'http://127.0.0.1:9/v1/' };
    const config = await load({}, { env });
    expect(config.models.default).toMatchObject({ baseURL: 'http://127.0.0.1:9/v1' });
  });

  it.each(['models:', 'models: {}', '# models:'])('the text %j counts as no models', async (yaml) => {
    expect((await loadYaml(yaml)).models.default?.provider).toBe('scripted');
  });
});

describe('the fallbacks of a model', () => {
  const scripted = (fallback: string, more = '') => `{ provider: scripted, fallback: [${fallback}]${more} }`;

  it('a model is followed by its fallbacks, each by its own, and each once', async () => {
    const models = `{ default: ${scripted('a, b')}, a: ${scripted('c')}, b: ${scripted('c')}, c: { provider: scripted } }`;
    const config = await loadYaml(`models: ${models}`);
    expect(Object.values(config.models).map(({ fallback }) => fallback)).toEqual([
      ['a', 'c', 'b'],
      ['c'],
      ['c'],
      [],
    ]);
  });

  it.each([
    [`default: ${scripted('big')}`, '[0]', 'a model of parley.yaml'],
    [`default: ${scripted('default')}`, '[0]', 'another model'],
    [`default: ${scripted('a, a')}, a: { provider: scripted }`, '[1]', 'each model once'],
    [`default: ${scripted('a')}, a: ${scripted('default')}`, '[0]', 'a leads back to default: a loop'],
    [`default: ${scripted('a')}, a: ${scripted('b')}, b: ${scripted('a')}`, '', 'b leads back to a: a loop'],
    [
      `default: ${scripted('a', ', contextTokens: 9000')}, a: { provider: scripted, contextTokens: 8000 }`,
      '[0]',
      'it leaves 6000 tokens .*, default 6750[^]*lower models.default.contextTokens',
    ],
  ])(
    'models: { %s } are refused with the key, what was expected and why',
    async (models, place, expected) => {
      const text = await refusalOf(loadYaml(`models: { ${models} }`));
      expect(text).toMatch(new RegExp(`fallback${place.replaceAll(/[[\]]/g, '\\$&')}[^]*${expected}`));
    },
  );

  it('an agent in another process may not name a model with a fallback, and may have one by default', async () => {
    const parley = `models: { default: ${scripted('a')}, a: { provider: scripted } }`;
    const critic = (more: string) => ({ 'agents/critic.md': `---\nruntime: bus\n${more}---\nCheck.\n` });
    const text = await refusalOf(load({ 'parley.yaml': parley, ...critic('model: default\n') }));
    expect(text).toContain('agents/critic.md:3');
    expect(text).toContain('a model without fallback for an agent with runtime: bus');
    expect((await load({ 'parley.yaml': parley, ...critic('') })).agents[0]?.runtime).toBe('bus');
  });

  it('a fallback needs a key as the model of an agent does; the keys of a model are secrets', async () => {
    const keys = `[k1, "${SECOND_REFERENCE}"]`;
    const models = `{ default: { baseURL: "http://h", apiKeys: ${keys}, fallback: [other] }, other: { model: m } }`;
    const text = await refusalOf(loadYaml(`models: ${models}`));
    expect(text).toContain('models.default.apiKeys');
    expect(text).toContain('SECOND is not set');
    expect(text).toContain('models.other.apiKey\n    expected: a key for https://api.openai.com/v1');
    const env = { SECOND: 'sk-second', OPENAI_API_KEY: KEY };
    const { default: model } = (await load({ 'parley.yaml': `models: ${models}` }, { env })).models;
    expect(model?.provider === 'openai' && model.apiKeys.map((key) => key.reveal())).toEqual([
      'k1',
      'sk-second',
    ]);
    expect(JSON.stringify(model)).not.toContain('sk-second');
  });
});

describe('a model', () => {
  it('every default of a model is resolved', async () => {
    const config = await loadYaml(
      'models: { default: { baseURL: "http://h/v1", price: { inputPerMillion: 1, outputPerMillion: 2 } } }',
    );
    expect(config.models.default).toEqual({
      provider: 'openai',
      dialect: 'chat',
      baseURL: 'http://h/v1',
      apiKeys: [],
      model: 'gpt-5-mini',
      contextTokens: 128_000,
      maxOutputTokens: 4_096,
      accepts: [],
      firstTokenMs: 300_000,
      idleMs: 120_000,
      price: { inputPerMillion: 1, cachedInputPerMillion: 1, cacheWritePerMillion: 1, outputPerMillion: 2 },
      parameters: {},
      session: null,
      fallback: [],
      profile: { ...PRESETS.compatible, preset: 'compatible', chosenBy: 'default' },
    });
  });

  it.each([
    ['{ header: X-Session-Id }', { kind: 'header', name: 'X-Session-Id' }],
    ['{ field: session_id }', { kind: 'field', name: 'session_id' }],
  ])('the setting session: %s selects how the session is sent', async (session, expected) => {
    const config = await loadYaml(`models: { default: { baseURL: "http://h", session: ${session} } }`);
    expect(config.models.default?.session).toEqual(expected);
  });

  it('a variable can set how the session is sent', async () => {
    const env = {
      PARLEY_MODELS_DEFAULT_SESSION_HEADER: 'x-session',
      PARLEY_MODELS_DEFAULT_BASE_URL: 'http://h',
    };
    expect((await load({}, { env })).models.default?.session).toEqual({ kind: 'header', name: 'x-session' });
  });

  it('a model with a small window reserves a quarter of it for the answer', async () => {
    const config = await loadYaml('models: { default: { provider: scripted, contextTokens: 2000 } }');
    expect(config.models.default?.maxOutputTokens).toBe(500);
  });

  it.each([
    ['stream: true', 300_000, 120_000],
    ['stream: false', null, 120_000],
    ['stream: false, firstTokenSeconds: 20', 20_000, 120_000],
    ['firstTokenSeconds: 900, idleSeconds: 0.5', 900_000, 500],
  ])('the time limits of %s', async (keys, firstTokenMs, idleMs) => {
    const config = await loadYaml(`models: { default: { baseURL: "http://h", apiKey: k, ${keys} } }`);
    expect(config.models.default).toMatchObject({ firstTokenMs, idleMs });
  });

  it('the path of a script is relative to parley.yaml', async () => {
    const config = await load({
      'parley.yaml': 'models: { default: { provider: scripted, script: script.yaml } }',
      'script.yaml': 'rules: []',
    });
    expect(config.models.default).toMatchObject({ script: `${config.directory}/script.yaml` });
  });

  it.each([
    ['provider: opnai', 'models.default.provider', 'one of openai, anthropic, responses, scripted'],
    ['provider: gemini', 'models.default.provider', 'reach other vendors by their endpoint'],
    ['provider: anthropic', 'models.default.apiKey', 'set ANTHROPIC_API_KEY'],
    ['baseURL: "https://api.anthropic.com/v1"', 'models.default.apiKey', 'write apiKey: $'],
    ['provider: anthropic, apiKey: k, seed: 1', 'models.default.seed', 'provider anthropic has no seed'],
    ['provider: anthropic, apiKey: k, profile: openai', 'models.default.profile', 'anthropic has no profile'],
    ['provider: anthropic, apiKey: k, otherAgentsAs: system', 'otherAgentsAs', 'has no otherAgentsAs'],
    ['baseURL: "https://api.anthropic.com/v1", apiKey: k, seed: 1', 'seed', 'provider anthropic has no seed'],
    ['provider: anthropic, apiKey: k, temperature: 1.5', 'models.default.temperature', '0 to 1'],
    ['provider: anthropic, apiKey: k, temperature: 0, reasoningEffort: low', 'temperature', '1, or none'],
    [
      'provider: anthropic, apiKey: k, topP: 0.5, reasoningTokens: 2000',
      'models.default.topP',
      'at least 0.95',
    ],
    ['provider: anthropic, apiKey: k, reasoningEffort: minimal', 'reasoningEffort', 'none, or low to max'],
    ['provider: anthropic, apiKey: k, reasoningTokens: 4096', 'reasoningTokens', 'less than maxOutputTokens'],
    ['provider: anthropic, apiKey: k, cache: 10m', 'models.default.cache', 'one of 5m, 1h, off'],
    ['provider: openai, apiKey: k, cache: 5m', 'models.default.cache', 'openai has no cache (anthropic has)'],
    ['apiKey: k, reasoningTokens: 2000', 'models.default.reasoningTokens', 'openai has no reasoningTokens'],
    ['provider: scripted, script: none.yaml', 'models.default.script', 'a file that exists'],
    ['provider: scripted, apiKey: x', 'models.default.apiKey', 'provider scripted has no apiKey'],
    ['baseURL: "http://h", script: s.yaml', 'models.default.script', 'provider openai has no script'],
    ['baseURL: "http://h", script: s.yaml', 'models.default.script', 'remove script, or baseURL'],
    ['apiKey: x, script: s.yaml', 'models.default.script', 'remove script, or apiKey'],
    ['provider: openai, script: s.yaml', 'models.default.script', 'remove script, or provider'],
    ['provider: responses, apiKey: k, stop: x', 'models.default.stop', 'provider responses has no stop'],
    ['provider: responses, apiKey: k, callIds: nine', 'models.default.callIds', 'openai has'],
    ['provider: responses, apiKey: k, extraBody: { input: [] }', 'extraBody.input', 'do not use already'],
    ['provider: scripted, apiKey: x', 'models.default.apiKey', 'remove apiKey, or provider'],
    ['baseURL: "localhost:80"', 'models.default.baseURL', 'begins with http:// or https://'],
    ['baseURL: "http://u:p@h/v1"', 'models.default.baseURL', 'without user and password'],
    [
      'baseURL: "http://h", contextTokens: 100, maxOutputTokens: 100',
      'maxOutputTokens',
      'less than contextTokens',
    ],
    ['baseURL: "http://h", otherAgentsAs: tool', 'otherAgentsAs', 'one of system, user'],
    ['baseURL: "http://h", profile: opnai', 'models.default.profile', 'one of compatible, openai, gemini'],
    ['baseURL: "http://h", apiKey: x, apiKeys: [y, z]', 'models.default.apiKeys', 'nothing beside apiKey'],
    ['baseURL: "http://h", apiKeys: [x]', 'models.default.apiKeys', 'two keys or more'],
    ['provider: scripted, apiKeys: [x, y]', 'models.default.apiKeys', 'provider scripted has no apiKeys'],
    ['provider: scripted, reasoningTokens: 2000', 'reasoningTokens', 'no reasoningTokens (anthropic has)'],
    [
      'provider: anthropic, apiKey: k, headers: { X-API-Key: x }',
      'headers.X-API-Key',
      'a key belongs in apiKey',
    ],
    ['provider: anthropic, apiKey: k, session: { header: x-api-key }', 'session.header', 'belongs in apiKey'],
    ['provider: scripted, profile: mistral', 'models.default.profile', 'provider scripted has no profile'],
    ['provider: scripted, stream: false', 'models.default.stream', 'provider scripted has no stream'],
    ['provider: scripted, idleSeconds: 3', 'models.default.idleSeconds', 'scripted has no idleSeconds'],
    ['baseURL: "http://h", firstTokenSeconds: 0', 'models.default.firstTokenSeconds', 'above 0'],
    ['baseURL: "http://h", callIds: ten', 'models.default.callIds', 'one of plain, nine'],
    ['baseURL: "http://h", session: { field: parallel_tool_calls }', 'session.field', 'do not use already'],
    ['provider: scripted, session: { field: s }', 'models.default.session', 'scripted has no session'],
    ['baseURL: "http://h", session: { }', 'models.default.session', 'either header or field'],
    [
      'baseURL: "http://h", session: { header: a, field: b }',
      'models.default.session',
      'either header or field',
    ],
    ['baseURL: "http://h", session: { header: "x session" }', 'session.header', "a header's name"],
    ['baseURL: "http://h", session: { header: "x:y" }', 'session.header', "a header's name"],
    ['baseURL: "http://h", session: { header: "" }', 'session.header', "a header's name"],
    ['baseURL: "http://h", session: { header: AUTHORIZATION }', 'session.header', 'do not use already'],
    ['baseURL: "http://h", session: { field: messages }', 'session.field', 'do not use already'],
    ['baseURL: "http://h", session: { field: "" }', 'session.field', 'a text that is not empty'],
    ['baseURL: "http://h", session: { header: a, cookie: b }', 'session.cookie', 'a known key'],
    ['baseURL: "http://h", session: x-session', 'models.default.session', 'a mapping'],
    ['baseURL: "http://h", temprature: 1', 'models.default.temprature', 'a known key'],
  ])('a model with %s is refused', async (keys, key, expected) => {
    const text = await refusalOf(loadYaml(`models: { default: { ${keys} } }`));
    expect(text).toContain('has 1 problem\n');
    expect(text).toContain(key);
    expect(text).toContain(expected);
  });
});

it('a key of a model with two faults hides no model from its agents', async () => {
  const text = await refusalOf(
    load({
      'parley.yaml':
        'models: { default: { provider: scripted }, one: { baseURL: "http://h", apiKey: x, apiKeys: [y] } }',
      'agents/critic.md': '---\nmodel: one\n---\nCheck.\n',
    }),
  );
  expect(text).toContain('has 2 problems\n');
  expect(text).not.toContain('agents/critic.md');
});

describe('a password in the URL of an endpoint', () => {
  it.each([
    'http://user:pa55@h/v1',
    'http://:pa55@h/v1',
    'http://user:pa55/x@h/v1',
    'ftp://user:pa55@h',
    'x http://u:pa55@h',
  ])('the URL is refused and its password is not shown: %s', async (url) => {
    for (const [text, source] of [
      [await refusalOf(loadYaml(`models: { default: { baseURL: "${url}" } }`)), 'models.default.baseURL'],
      [
        await refusalOf(loadYaml('', { env: { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: url } })),
        'OPENAI_BASE_URL',
      ],
      [await refusalOf(loadYaml(`defaultAgent: "${url}"`)), 'defaultAgent'],
    ]) {
      expect(text).toContain(source);
      expect(text).toContain('[hidden]@h');
      expect(text).not.toContain('pa55');
    }
  });
});

describe('keys of models', () => {
  const yaml = `models: { default: { apiKey: "${OPENAI_REFERENCE}" }, spare: { apiKey: "${OPENAI_REFERENCE}" } }`;

  it('keys are read from the variables that the file names', async () => {
    const config = await loadYaml(yaml, { env: { OPENAI_API_KEY: KEY } });
    expect([keyOf(config), keyOf(config, 'spare')]).toEqual([KEY, KEY]);
  });

  it('a missing key is a problem for a model that an agent uses, and a notice for an unused one', async () => {
    const text = await refusalOf(loadYaml(yaml));
    expect(text).toContain('has 1 problem\n');
    expect(text).toContain(
      `models.default.apiKey\n    seen:     ${OPENAI_REFERENCE}, and OPENAI_API_KEY is not set`,
    );
    const spare = `models: { default: { provider: scripted }, spare: { apiKey: "${OPENAI_REFERENCE}" } }`;
    const { notices } = await loadYaml(spare);
    expect(notices.join()).toMatch(/models\.spare\.apiKey is empty, since OPENAI_API_KEY is not set/);
  });

  it('a missing key for OpenAI is reported at its key path', async () => {
    const text = await refusalOf(loadYaml('models: { default: { model: gpt-5 } }'));
    expect(text).toContain('models.default.apiKey\n    expected: a key for https://api.openai.com/v1');
    expect(text).toContain('set OPENAI_API_KEY');
  });

  it('OPENAI_API_KEY never goes to an endpoint of the file (MODELS-2)', async () => {
    const config = await loadYaml('models: { default: { baseURL: "http://elsewhere/v1" } }', {
      env: { OPENAI_API_KEY: KEY },
    });
    expect(keyOf(config)).toBeNull();
  });

  it('no log, error or JSON shows a key', async () => {
    const config = await load({}, { env: { OPENAI_API_KEY: KEY } });
    const shown = [
      JSON.stringify(config),
      inspect(config, { depth: 9, showHidden: true }),
      `${config.models.default}`,
    ];
    expect(shown.join()).not.toContain(KEY);
    expect(shown[0]).toContain('[secret]');
    const model = config.models.default;
    expect(model?.provider === 'openai' && String(model.apiKeys)).toBe('[secret]');
  });

  it('a problem does not quote a wrong key', async () => {
    expect(await refusalOf(loadYaml(`models: { default: { apiKey: [${KEY}] } }`))).not.toContain(KEY);
    expect(await refusalOf(loadYaml(`models: [{ apiKey: ${KEY} }]`))).not.toContain(KEY);
    expect(await refusalOf(loadYaml(`openaiKey: ${KEY}`))).not.toContain(KEY);
    const mcp = `tools: { mcpServers: { a: { url: "http://x", headers: [${KEY}] } } }`;
    expect(await refusalOf(loadYaml(mcp))).not.toContain(KEY);
    const env = { OPENAI_API_KEY: KEY };
    const text = await refusalOf(loadYaml(`limits: { turnSeconds: "${OPENAI_REFERENCE}" }`, { env }));
    expect(text).not.toContain(KEY);
    expect(text).toContain(`seen:     ${OPENAI_REFERENCE}`);
  });
});

describe('the cache of anthropic', () => {
  it('a cache of an hour costs twice the price of input, unless the file has a price', async () => {
    const writesFor = async (keys: string) => {
      const yaml = `models: { default: { provider: anthropic, apiKey: k, model: claude-haiku-4-5, ${keys} } }`;
      const model = (await loadYaml(yaml)).models.default;
      return [model?.price?.cacheWritePerMillion, model && 'cacheTtl' in model ? model.cacheTtl : undefined];
    };
    expect(await writesFor('cache: 5m')).toEqual([1.25, '5m']);
    expect(await writesFor('cache: 1h')).toEqual([2, '1h']);
    expect(await writesFor('cache: off')).toEqual([1.25, undefined]);
    const price = 'price: { inputPerMillion: 3, cacheWritePerMillion: 4, outputPerMillion: 5 }';
    expect(await writesFor(`cache: 1h, ${price}`)).toEqual([4, '1h']);
  });
});

describe('a profile', () => {
  const profileOf = async (keys: string, env = {}) =>
    (
      await load(
        { 'parley.yaml': `models: { default: { ${keys} } }` },
        { env: { OPENAI_API_KEY: KEY, ...env } },
      )
    ).models.default?.profile;

  it.each([
    ['https://api.openai.com/v1', 'openai'],
    ['https://api.mistral.ai/v1', 'mistral'],
    ['https://api.deepseek.com', 'deepseek'],
    ['https://api.moonshot.ai/v1', 'kimi'],
    ['https://api.moonshot.cn/v1', 'kimi'],
    ['https://me.openai.azure.com/openai/deployments/d?api-version=2024-10-21', 'openai'],
    ['https://me.cognitiveservices.azure.com/openai/v1', 'openai'],
    ['https://aiplatform.googleapis.com/v1/projects/p/locations/global/endpoints/openapi', 'gemini'],
    ['https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi', 'gemini'],
  ])('the host of %s selects the profile', async (baseURL, preset) => {
    const profile = await profileOf(`baseURL: "${baseURL}", apiKey: k`);
    expect(profile).toMatchObject({ preset, chosenBy: 'host' });
  });

  it.each([
    'http://127.0.0.1:11434/v1',
    'https://api.openai.com.example.org/v1',
    'https://api.openai.com:8443/v1',
    'https://openai.azure.com.example.org/v1',
    'http://h/api.mistral.ai',
  ])('the profile for %s is compatible, since any provider may be there', async (baseURL) => {
    const profile = await profileOf(`baseURL: "${baseURL}"`);
    expect(profile).toMatchObject({ preset: 'compatible', chosenBy: 'default' });
  });

  it('the profile of the file overrides the host, and single settings override both', async () => {
    const keys =
      'baseURL: "https://api.openai.com/v1", apiKey: k, profile: mistral, callIds: plain, mergeMessages: false';
    expect(await profileOf(keys)).toEqual({
      ...PRESETS.mistral,
      preset: 'mistral',
      chosenBy: 'file',
      callIds: 'plain',
      mergeMessages: false,
    });
  });

  it('variables can set the profile and single settings', async () => {
    const env = { PARLEY_MODELS_DEFAULT_PROFILE: 'deepseek', PARLEY_MODELS_DEFAULT_STREAM: 'false' };
    expect(await profileOf('baseURL: "http://h"', env)).toMatchObject({ preset: 'deepseek', stream: false });
  });
});

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
