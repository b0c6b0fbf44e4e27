import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { SETTING_VARIABLES } from '../../../src/config/index.ts';
import { KEY_OF_VARIABLE } from '../../../src/config/schema/schema-keys.ts';
import { load, loadYaml, refusalOf } from './folder.ts';

const reference = (name: string) => `$\{${name}}`;

describe('a variable named in the file', () => {
  it('is replaced wherever it stands in a value', async () => {
    const { approvals } = await loadYaml(`approvals: { approvers: ["a-${reference('WHO')}", b] }`, {
      env: { WHO: 'x' },
    });
    expect(approvals.approvers).toEqual(['a-x', 'b']);
  });

  it('may stand for a number, a truth or nothing', async () => {
    const yaml = `limits: { turnSeconds: "${reference('A')}", tokensPerConversation: "${reference('B')}" }
context: { includeToolResultsInContext: "${reference('C')}" }`;
    const { limits, context } = await loadYaml(yaml, { env: { A: '12.5', B: 'null', C: 'false' } });
    expect(limits).toMatchObject({ turnSeconds: 12.5, tokensPerConversation: null });
    expect(context.includeToolResultsInContext).toBe(false);
  });

  it('that is not set is refused with file, key and variable', async () => {
    const text = await refusalOf(loadYaml(`tools:\n  project: ${reference('NOWHERE')}/x\n`));
    expect(text).toContain(
      `- parley.yaml:2:12: tools.project\n    seen:     ${reference('NOWHERE')}/x, and NOWHERE is not set\n` +
        '    expected: the variable NOWHERE in the environment',
    );
    expect(text).toContain('has 1 problem\n');
  });

  it('stays as it is behind a second dollar, in a key, and in a comment', async () => {
    const { phases } = await loadYaml(
      `# ${reference('NO')}\nphases: { a: { description: "$${reference('X')}" } }`,
    );
    expect(phases.a?.description).toBe(reference('X'));
  });
});

describe('the environment', () => {
  it('wins over the file, and the file over the default', async () => {
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
  ])('says with %s what %s says', (name, key) => {
    expect(KEY_OF_VARIABLE.get(name)?.join('.')).toBe(key);
  });

  it('can point the default model at an endpoint with nothing in the file', async () => {
    const { models } = await load(
      {},
      { env: { PARLEY_MODELS_DEFAULT_BASE_URL: 'http://h/v1', PARLEY_MODELS_DEFAULT_MODEL: 'llama' } },
    );
    expect(models.default).toMatchObject({ provider: 'openai', baseURL: 'http://h/v1', model: 'llama' });
  });

  it('stands in for a section that is empty', async () => {
    const { shutdown } = await loadYaml('shutdown:', { env: { PARLEY_SHUTDOWN_GRACE_MS: '5' } });
    expect(shutdown.graceMs).toBe(5);
  });

  it.each([
    ['1e-9', 1e-9],
    ['2.5E+1', 25],
    ['0.5', 0.5],
  ])('accepts the number %s in a form that JSON has', async (text, number) => {
    const { limits } = await load({}, { env: { PARLEY_LIMITS_USD_PER_CONVERSATION: text } });
    expect(limits.usdPerConversation).toBe(number);
  });

  it.each(['1e', 'e5', '0x10', '1e999', 'Infinity'])('refuses %s where a number is wanted', async (text) => {
    const refused = await refusalOf(load({}, { env: { PARLEY_LIMITS_USD_PER_CONVERSATION: text } }));
    expect(refused).toContain('environment PARLEY_LIMITS_USD_PER_CONVERSATION: limits.usdPerConversation');
  });

  it('is named when its value is wrong', async () => {
    const text = await refusalOf(load({}, { env: { PARLEY_RETRY_ATTEMPTS: 'often' } }));
    expect(text).toContain(
      '- environment PARLEY_RETRY_ATTEMPTS: retry.attempts\n    seen:     "often"\n    expected: a number',
    );
  });

  it('is named when it names an agent that does not exist', async () => {
    const text = await refusalOf(load({}, { env: { PARLEY_DEFAULT_AGENT: 'de' } }));
    expect(text).toContain('- environment PARLEY_DEFAULT_AGENT: defaultAgent\n    seen:     "de"');
  });

  it('overrides nothing when empty', async () => {
    expect((await load({}, { env: { PARLEY_SUBJECT_PREFIX: '' } })).subjectPrefix).toBe('parley');
  });

  it('does not need the variable that it overrides', async () => {
    const yaml = `tools: { project: "${reference('GONE')}" }`;
    const config = await loadYaml(yaml, { env: { PARLEY_TOOLS_PROJECT: '.' } });
    expect(config.tools.project).toBe(config.directory);
  });

  it('is asked what it meant by a name that resembles a known one, and by no other', async () => {
    const { notices } = await load(
      {},
      { env: { PARLEY_STROE: 'file', PARLEY_SOMETHING_ELSE_ENTIRELY: '1' } },
    );
    expect(notices.filter((notice) => notice.includes('PARLEY_'))).toEqual([
      'the variable PARLEY_STROE means nothing here; did you mean PARLEY_STORE?',
    ]);
  });

  it('is documented, every variable of it', async () => {
    const page = await readFile(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
    const all = [...KEY_OF_VARIABLE.keys(), ...SETTING_VARIABLES];
    expect(all.length).toBeGreaterThan(30);
    expect(all.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
