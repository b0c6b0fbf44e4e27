import { describe, expect, it } from 'vitest';
import { inTime } from '../../../src/kernel/index.ts';

const ENDLESS = () => /^(a+)+$/u.test(`${'a'.repeat(60)}!`);
/** Takes time without CPU time, as in a process that the system does not schedule. */
const sleep = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe('inTime', () => {
  it('work that computes for too long ends with a timeout error', () => {
    expect(() => inTime(ENDLESS, 50)).toThrow(
      expect.objectContaining({ code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' }),
    );
  });

  it('work runs again if the process got no CPU time', () => {
    let runs = 0;
    const result = inTime(() => {
      runs++;
      if (runs < 3) sleep(5_000);
      return 'done';
    }, 100);
    expect({ result, runs }).toEqual({ result: 'done', runs: 3 });
  });

  it('the number of runs is limited', () => {
    let runs = 0;
    const work = () => {
      runs++;
      sleep(5_000);
    };
    expect(() => inTime(work, 100)).toThrow(
      expect.objectContaining({ code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' }),
    );
    expect(runs).toBe(5);
  });

  it('errors and results of the work are passed on, also of nested work', () => {
    expect(inTime(() => inTime(() => 7, 1_000) + 1, 1_000)).toBe(8);
    expect(() =>
      inTime(() => {
        throw new TypeError('no');
      }, 1_000),
    ).toThrow(TypeError);
  });
});
