// `npm run test:servers`: the tests that use a nats-server, once on each version that is found; a row for each, and what
// they came to together as the last line. What is passed on the command line goes to Vitest.
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';

register();
const { add, countCheck, countTests, summaryLine } = await import('./test-report.ts');
const { findServers, serversFolder } = await import('./nats-servers.ts');

const root = fileURLToPath(new URL('..', import.meta.url));
/** `npm run test:full` has run the others on the server of the machine. */
const NAMES = process.env.PARLEY_FULL === '1' ? ['security'] : ['contract', 'integration', 'security', 'e2e'];
const PROJECTS = NAMES.flatMap((name) => ['--project', name]);

async function runOn(server) {
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-'));
  const file = join(folder, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  try {
    const exitCode = await new Promise((resolve) => {
      const vitest = join(root, 'node_modules/.bin/vitest');
      const child = spawn(vitest, ['run', ...PROJECTS, ...reporters, ...process.argv.slice(2)], {
        cwd: root,
        stdio: 'inherit',
        env: { ...process.env, NATS_BIN: server.path },
      });
      child.once('error', () => resolve(null));
      child.once('exit', (code) => resolve(code));
    });
    return countTests(await readFile(file, 'utf8').then(JSON.parse, () => null), exitCode);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const rows = [];
try {
  for (const server of await findServers(process.env)) {
    console.log(`\nnats-server ${server.version}: ${server.path}`);
    rows.push({ version: server.version, counts: await runOn(server) });
  }
} catch (error) {
  console.error(error.message);
}
if (rows.length === 0)
  console.error(
    `no nats-server was found: run scripts/fetch-nats-servers (into ${serversFolder(process.env)}), or set NATS_BINS`,
  );
console.log('');
for (const { version, counts } of rows)
  console.log(`nats-server ${version.padEnd(10)} ${summaryLine(counts)}`);
const total = rows.length === 0 ? countCheck(1) : add(rows.map(({ counts }) => counts));
process.exitCode = total.failed === 0 ? 0 : 1;
console.log(summaryLine(total));
