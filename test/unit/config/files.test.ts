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
