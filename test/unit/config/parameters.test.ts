import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type Config, secretValuesOf } from '../../../src/config/index.ts';
import { fingerprintOf } from '../../../src/daemon/cluster/peer-monitor.ts';
import { requestSources, summariserOf } from '../../../src/daemon/team/team.ts';
import { load, refusalOf } from './folder.ts';

const SECRET = 'very-secret-value';
/** In two parts, since it is a reference and not a template. */
const REFERENCE = '$' + '{GATEWAY_KEY}';

const MODEL = (lines: string, session = '') =>
  `models:\n  default:\n    baseURL: http://h/v1\n    contextTokens: 8000\n${session}${lines}`;
const OF_MODEL = MODEL(`    temperature: 0.2
    topP: 0.9
    reasoningEffort: low
    stop: [END, STOP]
    seed: 7
    extraBody: { user: team, provider: { order: [a, b] } }
    headers: { X-Team: blue, x-key: "${REFERENCE}" }
`);
const agent = (parameters: string, more = '') => `---\n${more}parameters:\n${parameters}---\nYou plan.\n`;
const OF_AGENT = agent(`  temperature: 1
  maxOutputTokens: 100
  extraBody: { user: pm }
  headers: { X-KEY: "${REFERENCE}-pm" }
`);
const env = { GATEWAY_KEY: SECRET };
const NO_TOOLS = { definitions: () => new Map() };

function profilesOf(config: Config) {
  const { agents } = requestSources(config, NO_TOOLS);
  return Object.fromEntries([...agents].map(([slug, { profile }]) => [slug, profile]));
}

function revealed(headers: Readonly<Record<string, string | { reveal(): string }>> = {}) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : value.reveal(),
    ]),
  );
}

describe('parameters of a model and of an agent', () => {
  it('the value of a variable that the parameters of an agent name is hidden wherever values of variables are', async () => {
    const user = '$' + '{USER_OF_AGENT}';
    const file = agent(`  extraBody: { user: "${user}" }\n`);
    const config = await load(
      { 'parley.yaml': MODEL(''), 'agents/pm.md': file },
      { env: { USER_OF_AGENT: 'a user that is no header' } },
    );
    expect(secretValuesOf(config)).toContain('a user that is no header');
  });

  it('the parameters of a model are fields and headers of its requests', async () => {
    const config = await load({ 'parley.yaml': OF_MODEL, 'agents/dev.md': 'You write.' }, { env });
    const profile = profilesOf(config).dev;
    expect(profile?.fields).toEqual({
      model: 'gpt-5-mini',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 2000,
      temperature: 0.2,
      top_p: 0.9,
      reasoning_effort: 'low',
      stop: ['END', 'STOP'],
      seed: 7,
      user: 'team',
      provider: { order: ['a', 'b'] },
    });
    expect(revealed(profile?.headers)).toEqual({ 'x-team': 'blue', 'x-key': SECRET });
  });

  it('the parameters of an agent override those of its model one by one', async () => {
    const config = await load({ 'parley.yaml': OF_MODEL, 'agents/pm.md': OF_AGENT }, { env });
    const profile = profilesOf(config).pm;
    expect(profile).toMatchObject({
      maxOutputTokens: 100,
      fields: { temperature: 1, top_p: 0.9, max_tokens: 100, user: 'pm', provider: { order: ['a', 'b'] } },
    });
    expect(revealed(profile?.headers)).toEqual({ 'x-team': 'blue', 'x-key': `${SECRET}-pm` });
  });

  it('a summary uses the parameters of its model and none of the agent', async () => {
    const files = {
      'parley.yaml': `${OF_MODEL}context: { summaryModel: default }\n`,
      'agents/pm.md': OF_AGENT,
    };
    const config = await load(files, { env });
    const [pm] = config.agents;
    const model = { call: () => Promise.reject(new Error('not called')) };
    const summariser = pm && summariserOf(config, pm, new Map([['default', model]]));
    expect(summariser?.profile).toMatchObject({
      maxOutputTokens: 2000,
      fields: { temperature: 0.2, max_tokens: 2000, user: 'team' },
    });
    expect(revealed(summariser?.profile.headers)).toEqual({ 'x-team': 'blue', 'x-key': SECRET });
  });

  it('without parameters the fields of a request are the same as before', async () => {
    const config = await load({ 'parley.yaml': MODEL(''), 'agents/dev.md': 'You write.' });
    expect(JSON.stringify(profilesOf(config).dev?.fields)).toBe(
      '{"model":"gpt-5-mini","stream":true,"stream_options":{"include_usage":true},"max_tokens":2000}',
    );
  });

  it('the value of a header is in no printed form of the configuration or of a profile', async () => {
    const config = await load({ 'parley.yaml': OF_MODEL, 'agents/pm.md': OF_AGENT }, { env });
    for (const shown of [config, profilesOf(config)]) {
      expect(JSON.stringify(shown)).not.toContain(SECRET);
      expect(inspect(shown, { depth: 9 })).not.toContain(SECRET);
    }
  });

  it('daemons that share the work report different parameters, but not different values of headers', async () => {
    const of = async (yaml: string, key: string) =>
      fingerprintOf(await load({ 'parley.yaml': yaml }, { env: { GATEWAY_KEY: key } })).models;
    const own = await of(OF_MODEL, SECRET);
    expect(await of(OF_MODEL, 'another-value')).toBe(own);
    expect(await of(OF_MODEL.replace('0.2', '0.3'), SECRET)).not.toBe(own);
  });

  it('an environment variable sets a parameter of the default model', async () => {
    const variables = { PARLEY_MODELS_DEFAULT_TEMPERATURE: '0.5', PARLEY_MODELS_DEFAULT_STOP: 'END' };
    const config = await load({ 'parley.yaml': MODEL('') }, { env: variables });
    expect(config.models.default?.parameters).toEqual({ temperature: 0.5, stop: 'END' });
  });

  it.each([
    ['temperature: 3', 'models.default.temperature'],
    ['topP: -1', 'models.default.topP'],
    ['reasoningEffort: hihg', 'models.default.reasoningEffort', 'high'],
    ['stop: []', 'models.default.stop', 'a list of at least 1'],
    ['seed: 1.5', 'models.default.seed'],
    ['top_p: 0.9', 'models.default.top_p', 'did you mean models.default.topP?'],
    ['extraBody: { messages: [] }', 'models.default.extraBody.messages', 'requests do not use already'],
    ['extraBody: { top_p: 1 }', 'models.default.extraBody.top_p', 'use topP'],
    [
      'extraBody: { logit_bias: .inf }',
      'models.default.extraBody.logit_bias',
      'a value that JSON can represent',
    ],
    ['headers: { Authorization: x }', 'models.default.headers.Authorization', 'a key belongs in apiKey'],
    ['headers: { "a b": x }', 'models.default.headers["a b"]', "a header's name"],
    ['headers: { X-A: x, x-a: y }', 'models.default.headers', 'each header once'],
    [`headers: { x-a: "grün ${SECRET}" }`, 'models.default.headers.x-a', 'ASCII'],
    [`headers: { x-a: "${REFERENCE}\\n" }`, 'models.default.headers.x-a', 'ASCII'],
    ['headers: { x-a: "$' + '{UNSET_KEY}" }', 'models.default.headers.x-a', 'the variable UNSET_KEY'],
    ['session: { field: seed }', 'models.default.session.field', 'use seed'],
    [
      'session: { header: x-s }\n    headers: { X-S: a }',
      'models.default.headers.X-S',
      'session uses this one',
    ],
    ['provider: scripted\n    temperature: 1', 'models.default.temperature', 'provider scripted has no'],
  ])(
    'refuses %s of a model, naming the key and what is expected',
    async (line, key, expected = 'expected') => {
      const yaml = MODEL(`    ${line}\n`).replace(
        line.startsWith('provider') ? '    baseURL: http://h/v1\n' : '',
        '',
      );
      const text = await refusalOf(load({ 'parley.yaml': yaml }, { env }));
      expect(text).toContain(`: ${key}\n`);
      expect(text).toContain(expected);
      expect(text).toContain('the configuration has 1 problem');
      expect(text).not.toContain(SECRET);
    },
  );

  it.each([
    ['  temprature: 1\n', '', 'parameters.temprature', 'did you mean parameters.temperature?'],
    [
      '  maxOutputTokens: 8000\n',
      '',
      'parameters.maxOutputTokens',
      'less than contextTokens of the model default (8000)',
    ],
    ['  headers: { x-a: "$' + '{UNSET_KEY}" }\n', '', 'parameters.headers.x-a', 'the variable UNSET_KEY'],
    ['  headers: { X-S: a }\n', '', 'parameters.headers.x-s', 'another name'],
    ['  temperature: 1\n', 'runtime: bus\n', 'parameters.temperature', 'none for an agent with runtime: bus'],
  ])('refuses %s of an agent, naming the file and the line', async (parameters, more, key, expected) => {
    const yaml = MODEL('', '    session: { header: x-s }\n');
    const files = { 'parley.yaml': yaml, 'agents/pm.md': agent(parameters, more) };
    const text = await refusalOf(load(files, { env }));
    expect(text).toMatch(new RegExp(`pm\\.md:\\d+:\\d+: ${key.replaceAll('.', '\\.')}\n`));
    expect(text).toContain(expected);
  });

  it('refuses a parameter of an agent that the protocol of its model lacks', async () => {
    const yaml = 'models: { default: { provider: responses, apiKey: k } }\n';
    const text = await refusalOf(load({ 'parley.yaml': yaml, 'agents/pm.md': agent('  stop: x\n') }));
    expect(text).toContain('none for the model default: provider responses has no stop');
  });

  it('refuses a header of an agent that would replace the key of its model', async () => {
    const yaml = 'models: { default: { provider: anthropic, apiKey: k } }\n';
    const files = { 'parley.yaml': yaml, 'agents/pm.md': agent('  headers: { X-Api-Key: k }\n') };
    const text = await refusalOf(load(files));
    expect(text).toContain('parameters.headers.x-api-key');
    expect(text).toContain('a key belongs in apiKey');
  });

  it('a reference to a variable elsewhere in an agent stays as it is written', async () => {
    const files = { 'agents/pm.md': `---\ndescription: "uses ${REFERENCE}"\n---\nYou plan.\n` };
    expect((await load(files, { env })).agents[0]?.description).toBe(`uses ${REFERENCE}`);
  });
});
