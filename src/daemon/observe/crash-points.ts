import {
  CRASH_POINTS_VARIABLE,
  didYouMean,
  type Environment,
  Problems,
  show,
  variable,
} from '../../config/index.ts';
import { nearest } from '../../kernel/index.ts';
import { STORE_POINTS, type StorePoint } from '../../persistence/index.ts';

/** Places that work passes, in the order of their use; the store has its own (`STORE_POINTS`). */
export const CRASH_POINTS = [
  'post-received',
  'before-decision',
  'marked',
  'before-append',
  'after-append',
  'before-model-call',
  'before-recovery',
  'after-model-call',
  'before-tool-record',
  'before-tool',
  'after-tool',
  'after-tool-record',
  'post-settled',
  'position-saved',
  'before-answer',
  'conversation-removed',
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number] | StorePoint;

export type ReachCrashPoint = (point: CrashPoint) => void;

const POINTS: readonly CrashPoint[] = [...CRASH_POINTS, ...STORE_POINTS];

/** The pass at which each fires. */
type ArmedPoints = ReadonlyMap<CrashPoint, number>;

/**
 * For tests: `PARLEY_CRASH_POINTS=before-tool:3` kills the daemon at the third pass. Undefined: no point is armed. Throws
 * `CONFIG_INVALID`. `parley up --allow-crash-points` calls it.
 */
export function crashPointsFrom(env: Environment): ReachCrashPoint | undefined {
  const points = variable(env, CRASH_POINTS_VARIABLE);
  return points === undefined ? undefined : createCrashPoints(armedPoints(points));
}

function armedPoints(text: string): ArmedPoints {
  const problems = new Problems('CONTRIBUTING.md');
  const armed = new Map<CrashPoint, number>();
  for (const item of text.split(',')) {
    const [name = '', nth = '1'] = item.trim().split(':');
    const point = POINTS.find((known) => known === name);
    if (point !== undefined && /^[1-9]\d{0,8}$/.test(nth)) {
      armed.set(point, Number(nth));
      continue;
    }
    const where = { source: `environment ${CRASH_POINTS_VARIABLE}`, key: '', seen: show(item) };
    const expected = `NAME:N with a name of ${POINTS.join(', ')} and N from 1`;
    problems.add({ ...where, expected, ...didYouMean(point ? null : nearest(name, POINTS)) });
  }
  problems.throwIfAny();
  return armed;
}

/** Kills this process with SIGKILL when an armed point is reached for the nth time. */
export function createCrashPoints(armed: ArmedPoints): ReachCrashPoint {
  const left = new Map(armed);
  return (point) => {
    const times = left.get(point);
    if (times === undefined) return;
    left.set(point, times - 1);
    if (times === 1) process.kill(process.pid, 'SIGKILL');
  };
}
