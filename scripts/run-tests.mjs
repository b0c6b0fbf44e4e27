import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';

register();
const { countTests } = await import('./test-report.ts');

const root = fileURLToPath(new URL('..', import.meta.url));

/** Runs a program of node_modules with this process's output. Resolves with its exit code; null after a signal. */
export function run(program, parameters, variables = {}) {
  return new Promise((resolve) => {
    const child = spawn(join(root, 'node_modules/.bin', program), parameters, {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, ...variables },
    });
    child.once('error', (error) => {
      console.error(`${program}: ${error.message}`);
      resolve(null);
    });
    child.once('exit', (code) => resolve(code));
  });
}

/** Runs Vitest with these arguments and those of the command line. Resolves with the counts (`scripts/test-report.ts`). */
export async function runTests(parameters = [], variables = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-'));
  const file = join(folder, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  try {
    const all = ['run', ...parameters, ...reporters, ...process.argv.slice(2)];
    const exitCode = await run('vitest', all, variables);
    const report = await readFile(file, 'utf8').then(JSON.parse, () => null);
    return countTests(report, exitCode);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
