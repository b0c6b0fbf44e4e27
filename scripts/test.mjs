// `npm test`: finds a nats-server, then runs the linter, the type checks and all tests. The last line has the counts.
// Arguments are passed to Vitest (`npm test -- test/unit/config`).
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';

register();
const { add, countCheck, countTests, summaryLine } = await import('./test-report.ts');

const root = fileURLToPath(new URL('..', import.meta.url));

/** Runs a program of node_modules with this process's output. Resolves with its exit code; null after a signal. */
function run(program, ...parameters) {
  return new Promise((resolve) => {
    const child = spawn(join(root, 'node_modules/.bin', program), parameters, {
      cwd: root,
      stdio: 'inherit',
    });
    child.once('error', (error) => {
      console.error(`${program}: ${error.message}`);
      resolve(null);
    });
    child.once('exit', (code) => resolve(code));
  });
}

/** The tests start real servers. A missing nats-server is installed if that needs no password; otherwise the command is printed. */
async function findNatsServer() {
  try {
    const { ensureNatsServer } = await import('../src/bus/nats/managed/index.ts');
    await ensureNatsServer(process.env, (_level, message) => console.error(message));
    return 0;
  } catch (error) {
    console.error(error.message);
    if (error.hint) console.error(error.hint);
    return 1;
  }
}

/** The console is tested in a real browser. Without one, its tests are skipped and the command that installs one is printed. */
async function lookForChromium() {
  const { ensureChromium } = await import('./chromium.ts');
  const found = await ensureChromium(process.env, (message) => console.error(message));
  if (found.path === null)
    console.error(`the tests in a browser are skipped: ${found.why}; ${found.instruction}`);
}

async function runTests() {
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-'));
  const file = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
    const exitCode = await run('vitest', 'run', ...reporters, ...process.argv.slice(2));
    const report = await readFile(file, 'utf8').then(JSON.parse, () => null);
    return countTests(report, exitCode);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runAll() {
  const server = countCheck(await findNatsServer());
  if (server.failed > 0) return server; // no test can run
  const lint = countCheck(await run('biome', 'check', '.'));
  const types = countCheck(await run('tsc', '--noEmit'));
  const consoleTypes = countCheck(await run('tsc', '-p', 'src/console'));
  await lookForChromium();
  return add([lint, types, consoleTypes, await runTests()]);
}

const counts = await runAll();
process.exitCode = counts.failed === 0 ? 0 : 1;
console.log(summaryLine(counts));
