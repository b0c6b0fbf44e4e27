import { describe, expect, it } from 'vitest';
import { add, countCheck, countTests, summaryLine } from '../../../scripts/test-report.ts';

const file = (status: string, ...tests: string[]) => ({
  status,
  assertionResults: tests.map((one) => ({ status: one })),
});
const report = (...testResults: object[]) => ({ testResults });

describe('counting a test run', () => {
  it('a test report counts tests by their result', () => {
    const run = report(
      file('passed', 'passed', 'passed', 'skipped'),
      file('failed', 'passed', 'failed', 'todo'),
    );
    expect(countTests(run, 1)).toEqual({ passed: 3, failed: 1, skipped: 2 });
  });

  it('T2: a missing or broken report counts as a failure, whatever the exit code', () => {
    for (const broken of [null, undefined, 'text', {}, { testResults: 1 }, { testResults: [null] }]) {
      expect(countTests(broken, 0)).toEqual({ passed: 0, failed: 1, skipped: 0 });
    }
  });

  it('T2: an unhandled error, a signal, or no test at all counts as a failure', () => {
    const good = report(file('passed', 'passed'));
    expect(countTests(good, 0)).toEqual({ passed: 1, failed: 0, skipped: 0 });
    expect(countTests(good, 1)).toEqual({ passed: 1, failed: 1, skipped: 0 });
    expect(countTests(good, null)).toEqual({ passed: 1, failed: 1, skipped: 0 });
    expect(countTests(report(), 0).failed).toBe(1);
    expect(countTests(report(file('passed', 'skipped')), 0).failed).toBe(1);
  });

  it('T3: a file that could not be loaded, and one whose clean-up failed, counts as a failure', () => {
    const run = report(file('failed'), file('failed', 'passed'), file('passed', 'passed'));
    expect(countTests(run, 1)).toEqual({ passed: 2, failed: 2, skipped: 0 });
  });

  it('T1: a failed check counts once, and a passed one does not count', () => {
    expect(countCheck(0).failed).toBe(0);
    expect(countCheck(2)).toEqual({ passed: 0, failed: 1, skipped: 0 });
    expect(countCheck(null).failed).toBe(1);
  });

  it('a test report ends in one plain line', () => {
    const sum = add([
      countCheck(1),
      countTests(report(file('passed', 'passed', 'skipped')), 0),
      countCheck(0),
    ]);
    expect(summaryLine(sum)).toBe('1 passed, 1 failed, 1 skipped');
    expect(summaryLine({ passed: 12, failed: 0, skipped: 0 })).toBe('12 passed, 0 failed');
  });
});
