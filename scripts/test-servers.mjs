// `npm run test:servers`: the tests that use a nats-server, once on each version that is found; a row for each, and what
// they came to together as the last line. What is passed on the command line goes to Vitest.
import { runTests } from './run-tests.mjs';

const { add, countCheck, summaryLine } = await import('./test-report.ts');
const { findServers, serversFolder } = await import('./nats-servers.ts');

/** `npm run test:full` has run the others on the server of the machine. */
const NAMES = process.env.PARLEY_FULL === '1' ? ['security'] : ['contract', 'integration', 'security', 'e2e'];
const FOLDERS = NAMES.map((name) => `test/${name}/`);

const rows = [];
try {
  for (const server of await findServers(process.env)) {
    console.log(`\nnats-server ${server.version}: ${server.path}`);
    rows.push({
      version: server.version,
      counts: await runTests(FOLDERS, { NATS_BIN: server.path, PARLEY_LONG: '1' }),
    });
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
