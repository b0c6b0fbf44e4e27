/**
 * Counts what a test run came to.
 *
 * T1 A check (linter, types) that fails counts as one failure; one that passes counts as nothing, since it is no test.
 * T2 A run that left no report, or ended badly though no test failed, counts as one failure: silence is not success.
 * T3 A file that could not be loaded counts as one failure, though none of its tests ran.
 */

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** As much of Vitest's JSON report as is counted. */
export interface TestReport {
  readonly testResults: readonly {
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

const NOTHING: Counts = { passed: 0, failed: 0, skipped: 0 };
const ONE_FAILURE: Counts = { passed: 0, failed: 1, skipped: 0 };

/** What one check adds (T1). */
export function countCheck(exitCode: number | null): Counts {
  return exitCode === 0 ? NOTHING : ONE_FAILURE;
}

/** What the tests add. `report`: the parsed report, or null if none could be read; `exitCode`: null after a signal. */
export function countTests(report: unknown, exitCode: number | null): Counts {
  if (!isReport(report)) return ONE_FAILURE; // T2
  const files = report.testResults;
  const tests = files.flatMap((file) => file.assertionResults);
  const of = (...statuses: string[]) => tests.filter(({ status }) => statuses.includes(status)).length;
  const broken = files.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
  ).length; // T3
  const passed = of('passed');
  const failed = of('failed') + broken;
  const silent = failed === 0 && (exitCode !== 0 || passed === 0) ? 1 : 0; // T2
  return { passed, failed: failed + silent, skipped: tests.length - passed - of('failed') };
}

export function add(counts: readonly Counts[]): Counts {
  return counts.reduce(
    (sum, one) => ({
      passed: sum.passed + one.passed,
      failed: sum.failed + one.failed,
      skipped: sum.skipped + one.skipped,
    }),
    NOTHING,
  );
}

/** The last line: `12 passed, 0 failed`, with `, 1 skipped` when something was. */
export function summaryLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

function isReport(report: unknown): report is TestReport {
  if (typeof report !== 'object' || report === null || !('testResults' in report)) return false;
  const files: unknown = report.testResults;
  return (
    Array.isArray(files) &&
    files.every((file: unknown) => {
      if (typeof file !== 'object' || file === null) return false;
      return 'status' in file && 'assertionResults' in file && Array.isArray(file.assertionResults);
    })
  );
}
