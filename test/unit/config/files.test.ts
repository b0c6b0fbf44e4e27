import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig, SHIPPED_CONFIG } from '../../../src/config/index.ts';
import { newFolder } from '../../support/lifetime.ts';
import { load, refusalOf } from './folder.ts';

describe('files of a configuration folder', () => {
  it('the shipped folder replaces a missing default folder, with a notice', async () => {
    const folder = await newFolder({});
    const config = await loadConfig({ env: {}, workingDirectory: folder });
    expect(config.directory).toBe(SHIPPED_CONFIG);
    expect(config.notices.join()).toContain(`there is no folder ${folder}/config: using the team that ships`);
    expect(config.tools.project).toBe(folder);
  });

  it('the shipped folder never replaces a folder that a flag or variable names, or a file', async () => {
    const folder = await newFolder({});
    const named = { env: {}, workingDirectory: folder, configDirectory: 'config' };
    await expect(loadConfig(named)).rejects.toThrow(`${folder}/config`);
    const byVariable = loadConfig({ env: { PARLEY_CONFIG: 'config' }, workingDirectory: folder });
    await expect(byVariable).rejects.toThrow(`${folder}/config`);
    const withFile = await newFolder({ config: 'a file' });
    await expect(loadConfig({ env: {}, workingDirectory: withFile })).rejects.toThrow('a file');
  });

  it.each([
    ['a tab', 'models:\n\tfast: { provider: scripted }\n', 'parley.yaml:2:1', 'a tab in the indentation'],
    [
      'a key twice',
      'models:\n  fast: { provider: scripted }\n  fast: {}\n',
      'parley.yaml:3:3',
      'a duplicate key',
    ],
    ['an open bracket', 'models: { fast: [ }\nphases:\n  x\n   y: z\n', 'parley.yaml:1:19', 'Flow sequence'],
  ])('a parley.yaml with %s has that problem only', async (_name, yaml, where, what) => {
    const agents = {
      'agents/dev.md': '---\nmodel: fast\nphases: [wild]\n---\nhi',
      'agents/pm.md': '---\nmodel: fast\n---\nhi',
    };
    const workflow =
      'id: w\nstart: a\nnodes: { a: { agent: dev, brief: x, tools: [fs_read], outcomes: { done: end } } }\n';
    const refusal = await refusalOf(load({ ...agents, 'workflows/w.yaml': workflow, 'parley.yaml': yaml }));
    expect(refusal).toContain('the configuration has 1 problem\n');
    expect(refusal).toContain(where);
    expect(refusal).toContain(what);
  });

  it('an agent file with a tab has that problem only', async () => {
    const broken = '---\nname: Dev\n\tmodel: fast\nname: X\ntools: [fs_write]\n---\nhi';
    const workflow =
      'id: w\nstart: a\nnodes: { a: { agent: dev, brief: x, tools: [fs_read], outcomes: { done: end } } }\n';
    const yaml = 'models:\n  fast: { provider: scripted }\n';
    const refusal = await refusalOf(
      load({ 'agents/dev.md': broken, 'workflows/w.yaml': workflow, 'parley.yaml': yaml }),
    );
    expect(refusal).toContain('the configuration has 1 problem\n');
    expect(refusal).toContain('agents/dev.md:3:1');
  });

  it('a broken link is refused', async () => {
    const folder = await newFolder({ 'agents/dev.md': 'hi', 'workflows/.keep': '' });
    await symlink('missing.md', join(folder, 'agents/qa.md'));
    await symlink('missing.yaml', join(folder, 'workflows/ship.yaml'));
    const refusal = await refusalOf(loadConfig({ env: {}, workingDirectory: folder, configDirectory: '.' }));
    expect(refusal).toMatch(/agents\/qa\.md\n {4}seen: {5}a broken link/);
    expect(refusal).toMatch(/workflows\/ship\.yaml\n {4}seen: {5}a broken link/);
  });

  it('front matter that does not begin in the first line gets a notice', async () => {
    const keys = '---\nname: Quality\n---\n';
    const { notices } = await load({
      'parley.yaml': 'models: { default: { provider: scripted } }',
      'agents/qa.md': `\r\n${keys}hi`,
      'agents/dev.md': `${keys.replace('Quality', 'Dev')}\n---\na\n---\n`,
    });
    expect(notices).toEqual([expect.stringMatching(/agents\/qa\.md: its keys are not read/)]);
  });

  it('ignored files get a notice', async () => {
    const strays = {
      'agents/writer.markdown': 'x',
      'agents/Editor.MD': 'x',
      'agents/more/tester.md': 'x',
      'agents/.hidden': 'x',
      'workflows/ship.yml': 'x',
      'prompts/chat.txt': 'x',
    };
    const { notices } = await load({ 'agents/dev.md': 'hi', ...strays });
    const said = notices.join('\n');
    expect(said).toMatch(/agents\/writer\.markdown is not read: rename it to writer\.md/);
    expect(said).toMatch(/agents\/Editor\.MD is not read: rename it to Editor\.md/);
    expect(said).toMatch(/agents\/more is not read: move its files up/);
    expect(said).toMatch(/workflows\/ship\.yml is not read: rename it to ship\.yaml/);
    expect(said).toMatch(/prompts\/chat\.txt is not read: rename it to chat\.md/);
    expect(said).not.toContain('.hidden');
    expect(await refusalOf(load({ 'agents/writer.markdown': 'x' }))).toContain('writer.markdown is not read');
  });
});

/** One problem for each cause: where, what, and what to do. */

const PARLEY = 'models:\n  fast: { provider: scripted }\ndefaultAgent: pm\n';
const PM = '---\nname: PM\nmodel: fast\ntools: [handoff]\n---\nYou lead.\n';
const SHIP =
  'id: ship\nstart: build\nnodes:\n  build: { agent: pm, brief: Build., tools: [handoff], outcomes: { built: end } }\n';
const FILES = { 'parley.yaml': PARLEY, 'agents/pm.md': PM, 'workflows/ship.yaml': SHIP };
type File = keyof typeof FILES;

const TAB = ['a tab in the indentation', 'replace the tab'] as const;
const TWICE = ['a duplicate key', 'keep one of them; the first one is in line 2'] as const;
const QUOTE = ['a quote that is not closed', 'close it, or leave both out'] as const;
const UNKNOWN = 'a known key (this one is unknown)';
const BRIEF = [UNKNOWN, 'did you mean nodes.build.brief?'] as const;
const COLUMN = [
  'a line that is not in the column of the keys beside it',
  'indent this line as the others of its level',
] as const;
const DEEPER = [
  'a value, and below it keys that are indented deeper',
  'indent the next line as this one',
] as const;

it.each([
  ['a tab', 'parley.yaml', PARLEY.replace('  fast', '\tfast'), '2:1', ...TAB],
  ['a tab', 'agents/pm.md', PM.replace('model', '\tmodel'), '3:1', ...TAB],
  ['a tab', 'workflows/ship.yaml', SHIP.replace('  build', '\tbuild'), '4:1', ...TAB],
  ['a key twice', 'parley.yaml', `${PARLEY}models: {}\n`, '4:1: models', 'a duplicate key', 'is in line 2'],
  ['a key twice', 'agents/pm.md', PM.replace('model', 'name: PM\nmodel'), '3:1: name', ...TWICE],
  ['a key twice', 'workflows/ship.yaml', `${SHIP}start: build\n`, '5:1: start', ...TWICE],
  ['a wrong indentation', 'parley.yaml', 'models:\n    fast: {}\n  slow: {}\n', '3:1', ...COLUMN],
  ['a key below a value', 'workflows/ship.yaml', SHIP.replace('start', ' start'), '1:5', ...DEEPER],
  ['an open quote', 'parley.yaml', PARLEY.replace(': pm', ': "pm'), '3:15', ...QUOTE],
  ['an open quote', 'agents/pm.md', PM.replace(': PM', ": 'PM"), '2:7', ...QUOTE],
  ['an open quote', 'workflows/ship.yaml', SHIP.replace(': ship', ': "ship'), '1:5', ...QUOTE],
  ['an unknown key', 'parley.yaml', `${PARLEY}retyr: {}\n`, '4:1: retyr', UNKNOWN, 'did you mean retry?'],
  [
    'an unknown key',
    'agents/pm.md',
    PM.replace('model', 'modle'),
    '3:1: modle',
    UNKNOWN,
    'did you mean model?',
  ],
  [
    'an unknown key',
    'workflows/ship.yaml',
    SHIP.replace('brief', 'breif'),
    '4:23: nodes.build.breif',
    ...BRIEF,
  ],
  ['a wrong type', 'parley.yaml', `${PARLEY}limits: { turnSeconds: soon }\n`, '4:24', '"soon"', 'a number'],
  ['a wrong type', 'agents/pm.md', PM.replace('[handoff]', 'handoff'), '4:8: tools', '"handoff"', 'a list'],
  [
    'a missing key',
    'workflows/ship.yaml',
    SHIP.replace('start: build\n', ''),
    '1:1: start',
    'a run begins',
    '',
  ],
  [
    'front matter without an end',
    'agents/pm.md',
    '---\nname: PM\n',
    '1:1',
    'never ends',
    'a second line of ---',
  ],
] as const)('%s in %s is one problem', async (_, file: File, text, where, what, todo) => {
  const directory = await newFolder({ ...FILES, [file]: text });
  const error = await loadConfig({ env: {}, configDirectory: directory }).catch((failure: Error) => failure);
  const message = error instanceof Error ? error.message : 'no error';
  expect(message).toContain('the configuration has 1 problem\n');
  expect(message).toContain(`${file}:${where}\n`.replace(/(:\d+:\d+)\n$/, '$1'));
  expect(message).toContain(what);
  expect(message).toContain(todo);
});

it('a notice names each file of the folders that is not read, except hidden files and README.md', async () => {
  const agents = {
    'agents/qa.txt': 'x',
    'agents/dev.json': '{}',
    'agents/README.md': '# x',
    'agents/.x': '',
  };
  const workflows = { 'workflows/talk.yml': SHIP, 'workflows/README.md': 'x' };
  const directory = await newFolder({ ...FILES, ...agents, ...workflows });
  const { notices } = await loadConfig({ env: {}, configDirectory: directory });
  expect(notices.filter((notice) => notice.includes('is not read'))).toEqual([
    expect.stringContaining('agents/dev.json is not read: rename it to dev.md, or move it elsewhere'),
    expect.stringContaining('agents/qa.txt is not read: rename it to qa.md, or move it elsewhere'),
    expect.stringContaining('workflows/talk.yml is not read: rename it to talk.yaml, or move it elsewhere'),
  ]);
});
