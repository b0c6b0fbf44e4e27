import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { hasLongTests } from './test/support/runs.ts';

/**
 * One project per kind of test. `unit` computes: it runs first, with one worker per processor. `servers` are the folders that start
 * real servers and mostly wait for them, so three files run at once even on two processors. Without `isolate`, a worker keeps
 * its modules for the next file: loading them takes longer than many tests do.
 *
 * `*.long.test.ts` and `itLong` are tests that take long: each store, fault, crash point or attack, each look, role, key and
 * rarer state of the console, a protocol over a restart, a function whose rules unit tests cover, the examples, the package as
 * npm packs it, and whether the compiler names each place of a new entry type.
 * `npm run test:full`, CI and `PARLEY_LONG=1` run these files, and so does a command that names one.
 */
const isNamed = process.argv.some((word) => word.includes('.long'));
const exclude = [...configDefaults.exclude, ...(hasLongTests || isNamed ? [] : ['**/*.long.test.ts'])];
/**
 * `expect.poll` waits as long as Playwright does for elements, so that a slow machine fails no test. Most conditions are true
 * within milliseconds, so it looks often; not in a browser, which is slower for it.
 */
const patient = { expect: { poll: { timeout: 30_000, interval: 10 } } };
// Runs after `unit`.
const later = { ...patient, sequence: { groupOrder: 1 } };

// Tables print local times.
process.env.TZ = 'UTC';

export default defineConfig({
  test: {
    maxWorkers: Math.max(3, availableParallelism() - 1),
    projects: [
      // Processes, not threads: a program that one thread starts briefly holds the file locks of the others.
      {
        test: {
          ...patient,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          isolate: false,
          maxWorkers: availableParallelism(),
          testTimeout: 60_000,
        },
      },
      {
        test: {
          ...later,
          name: 'architecture',
          isolate: false,
          include: ['test/architecture/**/*.test.ts'],
          exclude,
          testTimeout: 240_000, // some compile the whole program
        },
      },
      {
        test: {
          ...later,
          name: 'servers',
          isolate: false,
          include: ['test/{contract,integration,security,e2e}/**/*.test.ts'],
          exclude,
          globalSetup: 'test/support/package.ts',
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          expect: { poll: { timeout: 30_000 } },
          sequence: { groupOrder: 2 }, // projects of one group have the same number of workers
          name: 'browser',
          isolate: false,
          include: ['test/browser/**/*.test.ts'],
          exclude,
          globalSetup: ['test/browser/build.ts'],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          maxWorkers: 2, // a browser works on more than one processor
        },
      },
    ],
  },
});
