// `npm run test:full`: all that `npm test` runs, with the long tests and more repetitions (PARLEY_FULL); the commands of a checkout
// instead of those of the package; then the attacks on each version of nats-server that is found.
import { fileURLToPath } from 'node:url';
import { runTests } from './run-tests.mjs';

const { summaryLine } = await import('./test-report.ts');
process.env.PARLEY_FULL = '1';
await import('./test.mjs');

await import('./build.mjs'); // for programs that import the package of a checkout
const launcher = fileURLToPath(new URL('../bin/parley.js', import.meta.url));
const ofCheckout = await runTests(['test/e2e/'], {
  PARLEY_TEST_LAUNCHER: launcher,
  PARLEY_FULL: '',
  PARLEY_LONG: '1',
});
console.log(`in a checkout: ${summaryLine(ofCheckout)}`);
const isFailed = ofCheckout.failed > 0 || process.exitCode !== 0;

await import('./test-servers.mjs');
if (isFailed) process.exitCode = 1;
