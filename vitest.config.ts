import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/**
 * One project per kind of test, fast ones first. Those of `integration` and `e2e` start real servers, each at ports and
 * in a directory of its own, and wait for them for much of the time: three files go on at once even on two processors.
 *
 * One module graph per worker where nothing keeps state in modules: loading it anew takes longer than many a test.
 */
const shared = { isolate: false, globalSetup: 'test/support/package.ts', hookTimeout: 60_000 };

export default defineConfig({
  test: {
    maxWorkers: Math.max(3, availableParallelism() - 1),
    projects: [
      // Processes, not threads: a child that one thread starts holds, for a moment, the locks of the others.
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], isolate: false, testTimeout: 30_000 } },
      { test: { name: 'architecture', include: ['test/architecture/**/*.test.ts'], testTimeout: 60_000 } },
      { test: { name: 'contract', include: ['test/contract/**/*.test.ts'], testTimeout: 30_000 } },
      {
        test: {
          ...shared,
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      { test: { ...shared, name: 'security', include: ['test/security/**/*.test.ts'], testTimeout: 60_000 } },
      { test: { ...shared, name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 120_000 } },
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          globalSetup: ['test/browser/build.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
