// `npm run test:full`: all that `npm test` runs, with the long suites, which look at PARLEY_FULL; then the attacks on each
// version of nats-server that is found.
process.env.PARLEY_FULL = '1';
await import('./test.mjs');
const { exitCode } = process;
await import('./test-servers.mjs');
process.exitCode ||= exitCode;
