// `npm test`: finds a nats-server, then runs the linter, the type checks and all tests. The last line has the counts.
// Arguments are passed to Vitest (`npm test -- test/unit/config`).
import { run, runTests } from './run-tests.mjs';

const { add, countCheck, summaryLine } = await import('./test-report.ts');

/** The tests start real servers. A missing nats-server is installed if that needs no password; otherwise the command is printed. */
async function findNatsServer() {
  try {
    const { locateNatsServer } = await import('../src/bus/nats/managed/index.ts');
    await locateNatsServer({
      env: process.env,
      log: (_level, message) => console.error(message),
      mayInstall: true,
    });
    return 0;
  } catch (error) {
    console.error(error.message);
    if (error.hint) console.error(error.hint);
    return 1;
  }
}

/** Other programs that tests start. What is missing is installed if that needs no password; otherwise the command is printed. */
async function lookForPrograms() {
  const { ensurePrograms } = await import('./programs.ts');
  const missing = await ensurePrograms(process.env, (message) => console.error(message));
  for (const { name, why, instruction } of missing)
    console.error(`tests that need ${name} fail or are skipped: ${why}; ${instruction}`);
}

/** The console is tested in a real browser. Without one, its tests are skipped and the command that installs one is printed. */
async function lookForChromium() {
  const { ensureChromium } = await import('./chromium.ts');
  const found = await ensureChromium(process.env, (message) => console.error(message));
  if (found.path === null)
    console.error(`the tests in a browser are skipped: ${found.why}; ${found.instruction}`);
}

async function runAll() {
  const server = countCheck(await findNatsServer());
  if (server.failed > 0) return server; // no test can run
  const checks = await Promise.all([
    run('biome', ['check', '.']),
    run('../typescript-7/bin/tsc', ['--noEmit']),
    run('../typescript-7/bin/tsc', ['-p', 'src/console']),
  ]);
  await lookForPrograms();
  await lookForChromium();
  return add([...checks.map(countCheck), await runTests()]);
}

const counts = await runAll();
process.exitCode = counts.failed === 0 ? 0 : 1;
console.log(summaryLine(counts));
