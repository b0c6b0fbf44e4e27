import type { ArmedPoints, CrashPoint } from '../config/index.ts';

/** Says that a place was reached. Unless a test armed that place, this does nothing. */
export type Reach = (point: CrashPoint) => void;

const PASS: Reach = () => undefined;

/** Ends this process as `kill -9` does, at an armed point, when it is reached for the nth time. */
export function createCrashPoints(armed: ArmedPoints): Reach {
  if (armed === null) return PASS;
  const left = new Map(armed);
  return (point) => {
    const times = left.get(point);
    if (times === undefined) return;
    left.set(point, times - 1);
    if (times === 1) process.kill(process.pid, 'SIGKILL');
  };
}
