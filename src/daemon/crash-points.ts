import type { ArmedPoints, CrashPoint } from '../config/index.ts';

/** Marks a crash point in the work on that conversation. It does nothing unless a test armed the point. */
export type ReachCrashPoint = (point: CrashPoint, conversation?: string) => void;

const PASS: ReachCrashPoint = () => undefined;

/** Kills this process with SIGKILL when an armed point is reached for the nth time. */
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
