import { afterEach, describe, expect, it, vi } from 'vitest';
import { createCrashPoints } from '../../../src/daemon/crash-points.ts';

describe('the crash points of a daemon', () => {
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
  afterEach(() => kill.mockClear());

  it('do nothing when none is armed, and at points other than the armed one', () => {
    createCrashPoints(null)('before-tool');
    createCrashPoints(new Map([['after-tool', 1]]))('before-tool');
    expect(kill).not.toHaveBeenCalled();
  });

  it('end the process at the nth arrival, as kill -9 does', () => {
    const reach = createCrashPoints(new Map([['before-tool', 3]]));
    reach('before-tool');
    reach('before-tool');
    expect(kill).not.toHaveBeenCalled();
    reach('before-tool');
    expect(kill.mock.calls).toEqual([[process.pid, 'SIGKILL']]);
  });

  it('can be limited to one conversation', () => {
    const reach = createCrashPoints(new Map([['before-decision@demo', 1]]));
    reach('before-decision');
    reach('before-decision', 'other');
    expect(kill).not.toHaveBeenCalled();
    reach('before-decision', 'demo');
    expect(kill).toHaveBeenCalledTimes(1);
  });
});
