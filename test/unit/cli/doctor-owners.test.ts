import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../../../src/config/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { OPENAI } from './doctor-support.ts';
import { parley } from './support.ts';

const IS_ROOT = process.getuid?.() === 0;
const OTHER = 65_534;

const root = folderPerTest();
const at = (...names: string[]) => join(root, ...names);
beforeEach(async () => {
  for (const folder of ['up', 'up/data', 'up/data/conversations', 'up/config', 'up/config/agents'])
    await mkdir(at(folder), { mode: 0o700 });
  for (const file of ['up/data/LOCK', 'up/data/conversations/log.jsonl', 'up/config/parley.yaml'])
    await writeFile(at(file), '', { mode: 0o600 });
  await writeFile(at('up/config/agents/pm.md'), '', { mode: 0o600 });
});

/** The check with that name. */
async function doctor(name: 'configuration' | 'data directory') {
  const config = {
    ...{
      directory: at('up/config'),
      notices: [],
      environmentFiles: [],
      variables: [],
      agents: [{ slug: 'pm', runtime: 'local' }],
    },
    ...{ models: { default: OPENAI }, daemon: { nats: { kind: 'managed' } } },
    tools: { project: root, mcpServers: {} },
  } as unknown as Config;
  const dependencies = { loadConfig: async () => config };
  const ran = await parley(['doctor', '--json', '--data', at('up/data')], {
    dependencies,
    workingDirectory: root,
  });
  return ran.json().find((check) => (check as { name: string }).name === name);
}

describe('doctor on file owners', () => {
  it('doctor reports no owner if everything belongs to this user', async () => {
    expect(await doctor('data directory')).toMatchObject({ status: 'ok' });
    expect(await doctor('configuration')).toMatchObject({ status: 'ok' });
  });

  it.each(['configuration', 'data directory'] as const)(
    'doctor reports a directory above the %s that every user may write to, unless it has the sticky bit',
    async (name) => {
      await chmod(at('up'), 0o777);
      expect(await doctor(name)).toMatchObject({
        status: 'fail',
        message: expect.stringContaining(`may write to ${at('up')}`),
        fix: expect.stringMatching(/^run: (sudo )?chmod o-w \S+\/up$/),
      });
      await chmod(at('up'), 0o1777);
      expect(await doctor(name)).toMatchObject({ status: 'ok' });
    },
  );

  it('doctor reports a directory above a data directory that does not exist yet', async () => {
    await rm(at('up/data'), { recursive: true });
    await chmod(at('up'), 0o777);
    const found = await doctor('data directory');
    expect(found).toMatchObject({ status: 'fail', message: expect.stringContaining(at('up')) });
  });
});

describe.skipIf(!IS_ROOT)('doctor on files of another user', () => {
  it.each(['up/data', 'up/data/LOCK', 'up/data/conversations/log.jsonl'])(
    'doctor fails if %s belongs to another user',
    async (path) => {
      await chown(at(path), OTHER, OTHER);
      const message = expect.stringContaining(`another user owns ${at(path)};`);
      expect(await doctor('data directory')).toMatchObject({ status: 'fail', message });
      expect(await doctor('configuration')).toMatchObject({ status: 'ok' });
    },
  );

  it('the command that gives the data to this user is short, however many files there are', async () => {
    await chown(at('up/data'), OTHER, OTHER);
    for (let n = 0; n < 50; n++) {
      await writeFile(at(`up/data/conversations/${n}`), '');
      await chown(at(`up/data/conversations/${n}`), OTHER, OTHER);
    }
    const fix = `run: chown 0 ${at('up/data')} && chown -R 0 ${at('up/data/conversations')}`;
    expect(await doctor('data directory')).toMatchObject({ status: 'fail', fix });
  });

  it.each(['up/config', 'up/config/parley.yaml', 'up/config/agents/pm.md'])(
    'doctor warns if %s belongs to another user',
    async (path) => {
      await chown(at(path), OTHER, OTHER);
      const message = expect.stringContaining(`another user owns ${at(path)}, and may change`);
      const fix = `run: chown 0 ${at(path)}`;
      expect(await doctor('configuration')).toMatchObject({ status: 'warn', message, fix });
      expect(await doctor('data directory')).toMatchObject({ status: 'ok' });
    },
  );

  it.each(['configuration', 'data directory'] as const)(
    'doctor warns of a directory above the %s that belongs to another user',
    async (name) => {
      await chown(at('up'), OTHER, OTHER);
      expect(await doctor(name)).toMatchObject({
        status: 'warn',
        message: expect.stringContaining(`that user owns ${at('up')}`),
      });
    },
  );

  it('doctor ignores files in the data directory that are not its own', async () => {
    await writeFile(at('up/data/notes.txt'), '', { mode: 0o600 });
    await chown(at('up/data/notes.txt'), OTHER, OTHER);
    expect(await doctor('data directory')).toMatchObject({ status: 'ok' });
  });
});
