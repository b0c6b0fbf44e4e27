import { existsSync } from 'node:fs';
import {
  didYouMean,
  type Environment,
  FAULT_VARIABLES,
  Problems,
  show,
  variable,
} from '../../config/index.ts';
import { nearest } from '../../kernel/index.ts';
import { STORE_POINTS } from '../../persistence/index.ts';
import type { LogFile, LogFiles } from '../../persistence/jsonl/index.ts';
import { CRASH_POINTS, type CrashPoint, type ReachCrashPoint } from '../observe/crash-points.ts';
/** What a test may change in a daemon: `parley up --allow-crash-points` reads it from the environment, here alone. */

/** Absent in production. */
export interface Faults {
  /** Called at each crash point. */
  readonly reach?: ReachCrashPoint;
  /** Replaces the files of logs, for example to simulate a full disk. */
  readonly logFiles?: (files: LogFiles) => LogFiles;
  /** False: an append to a shared log names no expected sequence. Default: true. */
  readonly isFenced?: boolean;
}

const POINTS: readonly CrashPoint[] = [...CRASH_POINTS, ...STORE_POINTS];

/** The pass at which each fires. */
type ArmedPoints = ReadonlyMap<CrashPoint, number>;

/**
 * `PARLEY_CRASH_POINTS=before-tool:3` kills the daemon at the third pass. `PARLEY_FULL_DISK` names a file: while it exists, the
 * disk is full. `PARLEY_NO_FENCE` disables fencing.
 */
export function faultsFrom(env: Environment): Faults {
  const points = variable(env, FAULT_VARIABLES.crashPoints);
  const flag = variable(env, FAULT_VARIABLES.fullDisk);
  return {
    ...(points !== undefined && { reach: createCrashPoints(armedPoints(points)) }),
    ...(flag !== undefined && { logFiles: (files: LogFiles) => onFullDisk(files, flag) }),
    isFenced: variable(env, FAULT_VARIABLES.noFence) === undefined,
  };
}

/** Throws `CONFIG_INVALID`. */
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
    const where = { source: `environment ${FAULT_VARIABLES.crashPoints}`, key: '', seen: show(item) };
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

/**
 * Simulates a full disk. While the file `flag` exists, no log can be created and none grows (ENOSPC). The first write then
 * stores half of its bytes, as on a real disk.
 */
export function onFullDisk(files: LogFiles, flag: string): LogFiles {
  const isFull = () => existsSync(flag);
  const simulate = (file: LogFile): LogFile => {
    let isExhausted = false;
    return {
      ...file,
      async write(bytes, position) {
        if (!isFull()) {
          isExhausted = false;
          return file.write(bytes, position);
        }
        if (isExhausted || bytes.length < 2) throw noSpace('write');
        isExhausted = true;
        return file.write(bytes.subarray(0, bytes.length >> 1), position);
      },
    };
  };
  return {
    async open(path) {
      const file = await files.open(path);
      return file && simulate(file);
    },
    async create(path) {
      if (isFull()) throw noSpace('mkdir');
      return simulate(await files.create(path));
    },
  };
}

function noSpace(syscall: string): Error {
  const message = `ENOSPC: no space left on device, ${syscall}`;
  return Object.assign(new Error(message), { code: 'ENOSPC', syscall });
}
