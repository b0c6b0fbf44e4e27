import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig, resolveDaemonAddress } from '../../../src/config/index.ts';
import { newFolder } from '../../support/lifetime.ts';
import { load, refusalOf } from './folder.ts';

const KEY = '$' + '{SOME_KEY}';
const MODELS = `models: { default: { baseURL: "http://127.0.0.1:1/v1", apiKey: "${KEY}", model: m } }\n`;

/** Loads `config/` below a folder of these files. */
async function loadProject(
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
) {
  const workingDirectory = await newFolder({ 'config/agents/dev.md': 'You write code.\n', ...files });
  return { workingDirectory, config: await loadConfig({ env, workingDirectory }) };
}

function keyOf({ models }: Awaited<ReturnType<typeof load>>): string | undefined {
  const { default: model } = models;
  return model?.provider === 'openai' ? model.apiKeys[0]?.reveal() : undefined;
}

describe('.env', () => {
  it('a variable of .env beside the configuration folder replaces its name in parley.yaml', async () => {
    const { config, workingDirectory } = await loadProject({
      'config/parley.yaml': MODELS,
      '.env': 'SOME_KEY="from file"\nOTHER=1\n',
    });
    expect(keyOf(config)).toBe('from file');
    expect(config.environmentFiles).toEqual([{ file: join(workingDirectory, '.env'), names: ['SOME_KEY'] }]);
  });

  it('.env in the configuration folder has priority over .env beside it', async () => {
    const { config, workingDirectory } = await loadProject({
      'config/parley.yaml': MODELS,
      'config/.env': 'SOME_KEY=inner',
      '.env': 'SOME_KEY=outer\nPARLEY_HTTP=127.0.0.1:0\n',
    });
    expect(keyOf(config)).toBe('inner');
    expect(config.daemon.http?.port).toBe(0);
    expect(config.environmentFiles).toEqual([
      { file: join(workingDirectory, 'config/.env'), names: ['SOME_KEY'] },
      { file: join(workingDirectory, '.env'), names: ['PARLEY_HTTP'] },
    ]);
  });

  it('DOTENV-1: a variable of the environment has priority over .env, also if it is empty', async () => {
    const files = { 'config/parley.yaml': MODELS, '.env': 'SOME_KEY=file' };
    const { config } = await loadProject(files, { SOME_KEY: 'outer' });
    expect(keyOf(config)).toBe('outer');
    expect(config.environmentFiles).toMatchObject([{ names: [] }]);
    const refusal = await refusalOf(loadProject(files, { SOME_KEY: '' }));
    expect(refusal).toContain('expected: a text that is not empty');
  });

  it('DOTENV-2: tools get no variable of .env, and the process does not change', async () => {
    const text = 'LC_ALL=x\nPATH=/evil\nHOME=/evil\nNODE_OPTIONS=--require=/evil.js\nLD_PRELOAD=/evil.so\n';
    const before = { ...process.env };
    const { config } = await loadProject({ '.env': text }, { PATH: '/bin' });
    const {
      GIT_CONFIG_COUNT: _,
      GIT_CONFIG_KEY_0: __,
      GIT_CONFIG_VALUE_0: value,
      ...rest
    } = config.tools.environment;
    expect([rest, value]).toEqual([{ PATH: '/bin' }, 'explicit']);
    expect(process.env).toEqual(before);
  });

  it('DOTENV-3: variables that select a program, a folder or an endpoint are ignored with a notice', async () => {
    const text =
      'NATS_BIN=/evil\nPARLEY_CONFIG=/evil\nOPENAI_BASE_URL=http://evil.example/v1\nPARLEY_CRASH_POINTS=x\n';
    const { config } = await loadProject({ '.env': text }, { OPENAI_API_KEY: 'sk-own' });
    expect(config.daemon.natsBinary).toBeNull();
    expect(config.models.default).toMatchObject({ baseURL: 'https://api.openai.com/v1' });
    for (const name of ['NATS_BIN', 'PARLEY_CONFIG', 'OPENAI_BASE_URL', 'PARLEY_CRASH_POINTS'])
      expect(config.notices.join('\n')).toContain(`.env: ${name} is ignored there`);
  });

  it('.env of a working directory that does not contain the configuration folder is not read', async () => {
    const workingDirectory = await newFolder({
      '.env': 'PARLEY_DEFAULT_AGENT=nobody\nPARLEY_DATA=/elsewhere\n',
    });
    const configDirectory = await newFolder({ 'agents/dev.md': 'You write code.\n' });
    const config = await loadConfig({ configDirectory, env: {}, workingDirectory });
    expect(config.environmentFiles).toEqual([]);
    expect(resolveDaemonAddress({ env: {}, workingDirectory }).data).toBe(join(workingDirectory, 'data'));
  });

  it('commands find the daemon by the .env of its project', async () => {
    const text = 'PARLEY_DATA=/srv/data\nPARLEY_SUBJECT_PREFIX=mine\nPARLEY_NATS_USER=ann\n';
    const workingDirectory = await newFolder({ 'config/agents/dev.md': 'D', '.env': text });
    const address = resolveDaemonAddress({ env: {}, workingDirectory });
    expect(address).toMatchObject({ data: '/srv/data', subjectPrefix: 'mine', user: 'ann' });
  });

  it('credentials of the environment do not belong to a server that .env names, also where the environment names another', async () => {
    const text = 'PARLEY_NATS_URL=nats://evil:1\n';
    const workingDirectory = await newFolder({ 'config/agents/dev.md': 'D', '.env': text });
    const env = { PARLEY_NATS: 'nats://known:1', PARLEY_NATS_USER: 'me', PARLEY_NATS_PASSWORD: 'mine' };
    const { nats } = resolveDaemonAddress({ env, workingDirectory });
    expect(nats).toEqual({ kind: 'url', url: 'nats://evil:1' });
    const own = resolveDaemonAddress({ env, flags: { nats: 'nats://known:2' }, workingDirectory });
    expect(own.nats).toMatchObject({ url: 'nats://known:2', user: 'me' });
  });

  it('a misspelled variable of Parley in .env is a notice', async () => {
    const { config } = await loadProject({ '.env': 'PARLEY_HTP=off\n' });
    expect(config.notices.join('\n')).toContain('did you mean PARLEY_HTTP?');
  });

  it.each([
    ['a line without an assignment', 'A=1\n\nsecret words\nB=2\n', 'line 3'],
    ['a quote that is not closed', 'A=1\nSOME_KEY="secret\n', 'line 2'],
    ['a name that no variable can have', '# note\n1SECRET=secret\n', 'line 2'],
  ])('%s in .env is refused with its line and without its text', async (_, text, line) => {
    const refusal = await refusalOf(load({ '.env': text }));
    expect(refusal).toContain(`.env\n    seen:     ${line} assigns no variable`);
    expect(refusal.toLowerCase()).not.toContain('secret');
  });

  it('a folder in the place of .env is refused', async () => {
    expect(await refusalOf(load({ '.env/file': '' }))).toContain('expected: a readable file');
  });

  it.each([
    'A=1',
    'export A=1\r\nB=2\r\n',
    'A="two\nlines" # note\n\n  # note\nB = c\n',
    'A=\'{"a": 1}\'\nB=a=b # note\nC=\nD=`x`\n',
  ])('%j is accepted in .env', async (text) => {
    expect((await load({ '.env': text })).environmentFiles).toMatchObject([{ names: [] }]);
  });
});
