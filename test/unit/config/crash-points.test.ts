import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/index.ts';
import { AGENT, folderOf, refusalOf } from './folder.ts';

async function load(points: string, allowCrashPoints: boolean) {
  const directory = await folderOf(AGENT);
  const env = { PARLEY_CRASH_POINTS: points };
  return loadConfig({ configDirectory: directory, workingDirectory: directory, env, allowCrashPoints });
}

describe('crash points', () => {
  it('the environment arms crash points if the command line allows it', async () => {
    const { crashPoints } = await load('before-tool:3, after-tool, before-decision@demo:2', true);
    expect([...(crashPoints ?? [])]).toEqual([
      ['before-tool', 3],
      ['after-tool', 1],
      ['before-decision@demo', 2],
    ]);
  });

  it('without the flag, crash points are ignored with a notice', async () => {
    const { crashPoints, notices } = await load('before-tool:3', false);
    expect(crashPoints).toBeNull();
    expect(notices.join()).toMatch(/PARLEY_CRASH_POINTS is ignored without --allow-crash-points/);
  });

  it.each(['before-tol:3', 'before-tool:0', 'before-tool:often', 'marked@a@b', ','])(
    'the crash point %j is refused',
    async (text) => {
      const refusal = await refusalOf(load(text, true));
      expect(refusal).toContain('environment PARLEY_CRASH_POINTS');
      expect(refusal).toContain('expected: NAME:N or NAME@CONVERSATION:N with a name of post-received');
      if (text.startsWith('before-tol')) expect(refusal).toContain('did you mean "before-tool"?');
    },
  );

  it('the simulated full disk needs the same flag', async () => {
    const directory = await folderOf(AGENT);
    const given = {
      configDirectory: directory,
      workingDirectory: directory,
      env: { PARLEY_FULL_DISK: '/full' },
    };
    expect(await loadConfig({ ...given, allowCrashPoints: true })).toMatchObject({ fullDisk: '/full' });
    const { fullDisk, notices } = await loadConfig(given);
    expect(fullDisk).toBeNull();
    expect(notices.join()).toMatch(/PARLEY_FULL_DISK is ignored without --allow-crash-points/);
  });

  it('without the flag, appends to shared logs stay fenced', async () => {
    const directory = await folderOf(AGENT);
    const env = { PARLEY_NO_FENCE: '1' };
    const given = { configDirectory: directory, workingDirectory: directory, env };
    expect(await loadConfig({ ...given, allowCrashPoints: true })).toMatchObject({ isFenced: false });
    expect(await loadConfig({ ...given, env: {}, allowCrashPoints: true })).toMatchObject({ isFenced: true });
    const { isFenced, notices } = await loadConfig(given);
    expect(isFenced).toBe(true);
    expect(notices.join()).toMatch(/PARLEY_NO_FENCE is ignored without --allow-crash-points/);
  });
});
