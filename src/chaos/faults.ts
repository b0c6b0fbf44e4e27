import { existsSync } from 'node:fs';
import {
  didYouMean,
  type Environment,
  FAULT_VARIABLES,
  nearest,
  Problems,
  show,
  variable,
} from '../config/index.ts';
import type { CrashPoint, Faults, ReachCrashPoint } from '../daemon/index.ts';
import type { LogFile, LogFiles } from '../persistence/jsonl/index.ts';

/** The faults inside a daemon under test, from its environment. Only `parley up --allow-crash-points` loads this file. */

const KNOWN: Readonly<Record<CrashPoint, true>> = {
  'post-received': true,
  'before-decision': true,
  marked: true,
  'before-append': true,
  'after-append': true,
  'before-model-call': true,
  'before-recovery': true,
  'after-model-call': true,
  'before-tool-record': true,
  'before-tool': true,
  'after-tool': true,
  'after-tool-record': true,
  'post-settled': true,
  'position-saved': true,
  'before-answer': true,
  'conversation-removed': true,
};
export const CRASH_POINTS = Object.keys(KNOWN) as readonly CrashPoint[];

/** By `point` or `point@conversation`: the pass at which it fires. */
type ArmedPoints = ReadonlyMap<string, number>;

/**
 * `PARLEY_CRASH_POINTS=before-tool:3` kills the daemon at the third pass, `before-decision@demo` during work on that
 * conversation. `PARLEY_FULL_DISK` names a file: while it exists, the disk is full. `PARLEY_NO_FENCE` disables fencing.
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
  const problems = new Problems('docs/guides/inject-faults.md');
  const armed = new Map<string, number>();
  for (const item of text.split(',')) {
    const [name = '', nth = '1'] = item.trim().split(':');
    const [place = '', ...conversation] = name.split('@');
    const point = CRASH_POINTS.find((known) => known === place);
    if (point !== undefined && conversation.length < 2 && /^[1-9]\d{0,8}$/.test(nth)) {
      armed.set(name, Number(nth));
      continue;
    }
    const where = { source: `environment ${FAULT_VARIABLES.crashPoints}`, key: '', seen: show(item) };
    const expected = `NAME:N or NAME@CONVERSATION:N with a name of ${CRASH_POINTS.join(', ')} and N from 1`;
    problems.add({ ...where, expected, ...didYouMean(point ? null : nearest(place, CRASH_POINTS)) });
  }
  problems.throwIfAny();
  return armed;
}

/** Kills this process with SIGKILL when an armed point is reached for the nth time. */
export function createCrashPoints(armed: ArmedPoints): ReachCrashPoint {
  const left = new Map(armed);
  return (point, conversation) => {
    const name = [`${point}@${conversation}`, point].find((one) => left.has(one));
    const times = name === undefined ? undefined : left.get(name);
    if (name === undefined || times === undefined) return;
    left.set(name, times - 1);
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
