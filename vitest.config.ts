import { defineConfig } from 'vitest/config';

/** One project per kind of test, fast ones first. The slow ones run one file at a time: they start real servers. */
export default defineConfig({
  test: {
    projects: [
      // One module graph per worker: unit tests keep no state in modules, and loading it anew takes longer than they do.
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], isolate: false, pool: 'threads' } },
      { test: { name: 'architecture', include: ['test/architecture/**/*.test.ts'], testTimeout: 60_000 } },
      { test: { name: 'contract', include: ['test/contract/**/*.test.ts'], testTimeout: 30_000 } },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: 'test/support/package.ts',
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: 'test/support/package.ts',
          testTimeout: 120_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
