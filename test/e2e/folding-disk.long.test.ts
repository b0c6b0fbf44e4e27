import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openSite, TEAM } from '../support/daemon.ts';

const DISK = join(import.meta.dirname, '..', 'support', 'folding-disk.mjs');

it('a daemon on a case-insensitive disk keeps the conversations CIX and cix apart: logs, explained views, and a deletion', async () => {
  const env = { NODE_OPTIONS: `--import ${DISK}`, FOLDING_DISK: tmpdir() };
  const site = await openSite({ env, agents: TEAM, settings: SETTINGS, files: { 'script.yaml': SCRIPT } });
  try {
    const first = await site.up();
    for (const id of ['CIX', 'cix']) {
      const posted = await site.parley('say', id, `words of ${id}`, '--as', 'Alice', '--wait', '--json');
      expect([posted.code, posted.stderr]).toEqual([0, '']);
    }
    await first.kill9();
    const explained = await site.parley(
      'explain',
      'CIX',
      '--agent',
      'pm',
      '--config',
      site.config,
      '--data',
      site.data,
      '--json',
    );
    expect(explained.stdout).toContain('words of CIX');
    expect(explained.stdout).not.toContain('words of cix');
    expect((await site.parley('fsck')).stdout).toContain('2 conversations: sound');
    const second = await site.up();
    const words = async (id: string) =>
      (await site.parley('show', id, '--json')).json().map((one) => one.content);
    expect(await words('CIX')).toContain('words of CIX');
    expect(await words('cix')).toContain('words of cix');
    expect((await site.parley('rm', 'CIX')).code).toBe(0);
    expect(await words('cix')).toContain('words of cix');
    expect((await site.parley('ls', '--json')).json().map((row) => row.id)).toEqual(['cix']);
    expect(await second.stop()).toBe(0);
  } finally {
    await site.close();
  }
});

const SETTINGS = {
  defaultAgent: 'pm',
  models: { default: { provider: 'scripted', script: 'script.yaml' } },
};
const SCRIPT = { rules: [{ reply: { text: 'Noted.' } }] };
