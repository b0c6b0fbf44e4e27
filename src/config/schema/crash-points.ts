import { type Environment, variable } from '../problems/environment.ts';
import { didYouMean, nearest, type Problems, show } from '../problems/problems.ts';

/**
 * Points at which a daemon under test kills itself, as `kill -9` would. `PARLEY_CRASH_POINTS=before-tool:3`: at the third pass;
 * `before-decision@demo`: during work on that conversation. Ignored without a flag of the command line, so that a forgotten
 * variable kills no daemon in production.
 */

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
export type CrashPoint = (typeof CRASH_POINTS)[number];

export const CRASH_POINTS_VARIABLE = 'PARLEY_CRASH_POINTS';
const CRASH_POINTS_FLAG = '--allow-crash-points';

/** Names a file: while it exists, the store simulates a full disk. Needs the same flag. */
export const FULL_DISK_VARIABLE = 'PARLEY_FULL_DISK';

/** Appends to shared logs then name no expected sequence: a test checks that the damage is detected. Needs the same flag. */
export const NO_FENCE_VARIABLE = 'PARLEY_NO_FENCE';

/** By `point` or `point@conversation`: the pass at which it fires. Null: none is armed. */
export type ArmedPoints = ReadonlyMap<string, number> | null;

export function resolveCrashPoints(
  env: Environment,
  isAllowed: boolean,
  problems: Problems,
  notices: string[],
): ArmedPoints {
  const text = variable(env, CRASH_POINTS_VARIABLE);
  if (text === undefined) return null;
  if (!isAllowed) {
    notices.push(ignoredNotice(CRASH_POINTS_VARIABLE, 'it ends the daemon'));
    return null;
  }
  const armed = new Map<string, number>();
  for (const item of text.split(',')) {
    const [name = '', nth = '1'] = item.trim().split(':');
    const [place = '', ...conversation] = name.split('@');
    const point = CRASH_POINTS.find((known) => known === place);
    if (point !== undefined && conversation.length < 2 && /^[1-9]\d{0,8}$/.test(nth))
      armed.set(name, Number(nth));
    else {
      const where = { source: `environment ${CRASH_POINTS_VARIABLE}`, key: '', seen: show(item) };
      const expected = `NAME:N or NAME@CONVERSATION:N with a name of ${CRASH_POINTS.join(', ')} and N from 1`;
      problems.add({ ...where, expected, ...didYouMean(point ? null : nearest(place, CRASH_POINTS)) });
    }
  }
  return armed;
}

/** The file; null: no simulation. */
export function resolveFullDisk(env: Environment, isAllowed: boolean, notices: string[]): string | null {
  const file = variable(env, FULL_DISK_VARIABLE);
  if (file === undefined || isAllowed) return file ?? null;
  notices.push(ignoredNotice(FULL_DISK_VARIABLE, 'it lets no log grow'));
  return null;
}

/** True: an append to a shared log is refused if another daemon has appended since. */
export function resolveFence(env: Environment, isAllowed: boolean, notices: string[]): boolean {
  if (variable(env, NO_FENCE_VARIABLE) === undefined) return true;
  if (!isAllowed) notices.push(ignoredNotice(NO_FENCE_VARIABLE, 'it lets two daemons write to one log'));
  return !isAllowed;
}

function ignoredNotice(name: string, why: string): string {
  return `${name} is ignored without ${CRASH_POINTS_FLAG}: ${why}`;
}
