import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { untilTestEnds } from '../support/lifetime.ts';
import { openProject, TEAM } from '../support/project.ts';

const DISK = join(import.meta.dirname, '..', 'support', 'folding-disk.mjs');

it('a daemon on a case-insensitive disk keeps the conversations CIX and cix apart: logs, explained views, and a deletion', async () => {
  const env = { NODE_OPTIONS: `--import ${DISK}`, FOLDING_DISK: tmpdir() };
  const script = [{ reply: { text: 'Noted.' } }];
  const project = untilTestEnds(await openProject({ env, agents: TEAM, script }));
  const first = await project.up();
  for (const id of ['CIX', 'cix']) {
    const posted = await project.parley('say', id, `words of ${id}`, '--as', 'Alice', '--wait', '--json');
    expect([posted.code, posted.stderr]).toEqual([0, '']);
  }
  await first.kill9();
  const explained = await project.parley(
    'explain',
    'CIX',
    '--agent',
    'pm',
    '--config',
    project.config,
    '--data',
    project.data,
    '--json',
  );
  expect(explained.stdout).toContain('words of CIX');
  expect(explained.stdout).not.toContain('words of cix');
  expect((await project.parley('fsck')).stdout).toContain('2 conversations: sound');
  const second = await project.up();
  const words = async (id: string) =>
    (await project.parley('show', id, '--json')).json().map((one) => one.content);
  expect(await words('CIX')).toContain('words of CIX');
  expect(await words('cix')).toContain('words of cix');
  expect((await project.parley('rm', 'CIX')).code).toBe(0);
  expect(await words('cix')).toContain('words of cix');
  expect((await project.parley('ls', '--json')).json().map((row) => row.id)).toEqual(['cix']);
  expect(await second.stop()).toBe(0);
});
