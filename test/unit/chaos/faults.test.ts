import { afterEach, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../../src/config/index.ts';
import type { CrashPoint } from '../../../src/daemon/index.ts';
import { crashPointsFrom, createCrashPoints } from '../../../src/daemon/observe/crash-points.ts';
import { newFolder } from '../../support/lifetime.ts';
import { AGENT, refusalOf } from '../config/folder.ts';

const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
afterEach(() => kill.mockClear());

describe('crash points', () => {
  it('a crash point does nothing if another one is armed', () => {
    createCrashPoints(new Map([['after-tool', 1]]))('before-tool');
    expect(kill).not.toHaveBeenCalled();
  });

  it('a crash point ends the process at the nth arrival, as kill -9 does', () => {
    const reach = createCrashPoints(new Map([['before-tool', 3]]));
    reach('before-tool');
    reach('before-tool');
    expect(kill).not.toHaveBeenCalled();
    reach('before-tool');
    expect(kill.mock.calls).toEqual([[process.pid, 'SIGKILL']]);
  });
});

describe('the crash points of an environment', () => {
  it('an environment arms several crash points, each at its pass', () => {
    const text = 'before-tool:3, after-tool, before-decision:2';
    const reach = crashPointsFrom({ PARLEY_CRASH_POINTS: text });
    const arrivals = (point: CrashPoint) => {
      kill.mockClear();
      for (let count = 1; count < 5; count++) {
        reach?.(point);
        if (kill.mock.calls.length > 0) return count;
      }
      return null;
    };
    expect(arrivals('before-tool')).toBe(3);
    expect(arrivals('after-tool')).toBe(1);
    expect(arrivals('before-decision')).toBe(2);
    expect(arrivals('marked')).toBeNull();
  });

  it('an environment without the variable arms none', () => {
    expect(crashPointsFrom({ PATH: '/bin', PARLEY_CRASH_POINTS: '' })).toBeUndefined();
  });

  it.each(['before-tol:3', 'before-tool:0', 'before-tool:often', 'marked@a', ','])(
    'the crash point %j is refused',
    async (text) => {
      const refusal = await refusalOf((async () => crashPointsFrom({ PARLEY_CRASH_POINTS: text }))());
      expect(refusal).toContain('environment PARLEY_CRASH_POINTS');
      expect(refusal).toContain('expected: NAME:N with a name of post-received');
      if (text.startsWith('before-tol')) expect(refusal).toContain('did you mean "before-tool"?');
    },
  );

  it('a configuration does not depend on the variable of crash points', async () => {
    const directory = await newFolder(AGENT);
    const given = { configDirectory: directory, workingDirectory: directory };
    const env = { PARLEY_CRASH_POINTS: 'nonsense' };
    const [loaded, plain] = [await loadConfig({ ...given, env }), await loadConfig({ ...given, env: {} })];
    expect(JSON.stringify(loaded)).toBe(JSON.stringify(plain));
  });
});
