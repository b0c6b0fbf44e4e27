import type { ArmedPoints, CrashPoint } from '../config/index.ts';

/** Says that a place was reached, in the work on that conversation. Unless a test armed that place, this does nothing. */
export type ReachCrashPoint = (point: CrashPoint, conversation?: string) => void;

const PASS: ReachCrashPoint = () => undefined;

/** Ends this process as `kill -9` does, at an armed point, when it is reached for the nth time. */
export function createCrashPoints(armed: ArmedPoints): ReachCrashPoint {
  if (armed === null) return PASS;
  const left = new Map(armed);
  return (point, conversation) => {
    const name = [`${point}@${conversation}`, point].find((one) => left.has(one));
    const times = name === undefined ? undefined : left.get(name);
    if (name === undefined || times === undefined) return;
    left.set(name, times - 1);
    if (times === 1) process.kill(process.pid, 'SIGKILL');
  };
}
