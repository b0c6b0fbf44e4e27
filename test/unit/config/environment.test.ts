import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { SETTING_VARIABLES } from '../../../src/config/index.ts';
import { keyOfVariable } from '../../../src/config/schema/schema-keys.ts';
import { load, loadYaml, refusalOf } from './folder.ts';

const reference = (name: string) => `$\{${name}}`;

describe('a variable in parley.yaml', () => {
  it('a variable is replaced anywhere in a value', async () => {
    const { approvals } = await loadYaml(`approvals: { approvers: ["a-${reference('WHO')}", b] }`, {
      env: { WHO: 'x' },
    });
    expect(approvals.approvers).toEqual(['a-x', 'b']);
  });

  it('a variable can supply a number, a boolean or null', async () => {
    const yaml = `limits: { turnSeconds: "${reference('A')}", tokensPerConversation: "${reference('B')}" }
context: { includeToolResultsInContext: "${reference('C')}" }`;
    const { limits, context } = await loadYaml(yaml, { env: { A: '12.5', B: 'null', C: 'false' } });
    expect(limits).toMatchObject({ turnSeconds: 12.5, tokensPerConversation: null });
    expect(context.includeToolResultsInContext).toBe(false);
  });

  it('a missing variable is refused with file, key and variable', async () => {
    const text = await refusalOf(loadYaml(`tools:\n  project: ${reference('NOWHERE')}/x\n`));
    expect(text).toContain(
      `- parley.yaml:2:12: tools.project\n    seen:     ${reference('NOWHERE')}/x, and NOWHERE is not set\n` +
        '    expected: the variable NOWHERE in the environment',
    );
    expect(text).toContain('has 1 problem\n');
  });

  it('a variable is not replaced after a second dollar sign, in a key or in a comment', async () => {
    const { phases } = await loadYaml(
      `# ${reference('NO')}\nphases: { a: { description: "$${reference('X')}" } }`,
    );
    expect(phases.a?.description).toBe(reference('X'));
  });
});

describe('the environment', () => {
  it('a variable overrides the file, and the file overrides the default', async () => {
    const yaml = 'limits: { turnSeconds: 5, modelCallsPerTurn: 7 }';
    const { limits } = await loadYaml(yaml, { env: { PARLEY_LIMITS_TURN_SECONDS: '9' } });
    expect(limits).toMatchObject({ turnSeconds: 9, modelCallsPerTurn: 7, hopsPerTrigger: 16 });
  });

  it.each([
    ['PARLEY_DEFAULT_AGENT', 'defaultAgent'],
    ['PARLEY_SUBJECT_PREFIX', 'subjectPrefix'],
    ['PARLEY_SHUTDOWN_GRACE_MS', 'shutdown.graceMs'],
    ['PARLEY_LIMITS_MODEL_CALLS_PER_TURN', 'limits.modelCallsPerTurn'],
    ['PARLEY_LIMITS_USD_PER_CONVERSATION', 'limits.usdPerConversation'],
    ['PARLEY_CONTEXT_MAX_MESSAGES', 'context.contextMaxMessages'],
    ['PARLEY_CONTEXT_INCLUDE_TOOL_RESULTS_IN_CONTEXT', 'context.includeToolResultsInContext'],
    ['PARLEY_RETRY_BASE_MS', 'retry.baseMs'],
    ['PARLEY_TOOLS_PROJECT', 'tools.project'],
    ['PARLEY_MODELS_DEFAULT_BASE_URL', 'models.default.baseURL'],
    ['PARLEY_MODELS_DEFAULT_API_KEY', 'models.default.apiKey'],
  ])('the variable %s sets the key %s', (name, key) => {
    expect(keyOfVariable().get(name)?.join('.')).toBe(key);
  });

  it('variables can set the endpoint of the default model without a model in the file', async () => {
    const { models } = await load(
      {},
      { env: { PARLEY_MODELS_DEFAULT_BASE_URL: 'http://h/v1', PARLEY_MODELS_DEFAULT_MODEL: 'llama' } },
    );
    expect(models.default).toMatchObject({ provider: 'openai', baseURL: 'http://h/v1', model: 'llama' });
  });

  it('a variable sets a key of an empty section', async () => {
    const { shutdown } = await loadYaml('shutdown:', { env: { PARLEY_SHUTDOWN_GRACE_MS: '5' } });
    expect(shutdown.graceMs).toBe(5);
  });

  it.each([
    ['1e-9', 1e-9],
    ['2.5E+1', 25],
    ['0.5', 0.5],
  ])('the number %s in a form of JSON is accepted', async (text, number) => {
    const { limits } = await load({}, { env: { PARLEY_LIMITS_USD_PER_CONVERSATION: text } });
    expect(limits.usdPerConversation).toBe(number);
  });

  it.each(['1e', 'e5', '0x10', '1e999', 'Infinity'])(
    'the text %s is refused where a number is expected',
    async (text) => {
      const refused = await refusalOf(load({}, { env: { PARLEY_LIMITS_USD_PER_CONVERSATION: text } }));
      expect(refused).toContain('environment PARLEY_LIMITS_USD_PER_CONVERSATION: limits.usdPerConversation');
    },
  );

  it('a variable with a wrong value is named in the problem', async () => {
    const text = await refusalOf(load({}, { env: { PARLEY_RETRY_ATTEMPTS: 'often' } }));
    expect(text).toContain(
      '- environment PARLEY_RETRY_ATTEMPTS: retry.attempts\n    seen:     "often"\n    expected: a number',
    );
  });

  it('a variable that names an unknown agent is named in the problem', async () => {
    const text = await refusalOf(load({}, { env: { PARLEY_DEFAULT_AGENT: 'de' } }));
    expect(text).toContain('- environment PARLEY_DEFAULT_AGENT: defaultAgent\n    seen:     "de"');
  });

  it('an empty variable overrides nothing', async () => {
    expect((await load({}, { env: { PARLEY_SUBJECT_PREFIX: '' } })).subjectPrefix).toBe('parley');
  });

  it('a missing variable in an overridden value is no problem', async () => {
    const yaml = `tools: { project: "${reference('GONE')}" }`;
    const config = await loadYaml(yaml, { env: { PARLEY_TOOLS_PROJECT: '.' } });
    expect(config.tools.project).toBe(config.directory);
  });

  it('an unknown variable gets a notice only if it resembles a known one', async () => {
    const { notices } = await load(
      {},
      { env: { PARLEY_STROE: 'file', PARLEY_SOMETHING_ELSE_ENTIRELY: '1' } },
    );
    expect(notices.filter((notice) => notice.includes('PARLEY_'))).toEqual([
      'the variable PARLEY_STROE means nothing here; did you mean PARLEY_STORE?',
    ]);
  });

  it('every variable is documented', async () => {
    const page = await readFile(new URL('../../../docs/reference/configuration.md', import.meta.url), 'utf8');
    const all = [...keyOfVariable().keys(), ...SETTING_VARIABLES];
    expect(all.length).toBeGreaterThan(30);
    expect(all.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
