// `npm run test:full`: all that `npm test` runs, and the long suites, which look at PARLEY_FULL.
process.env.PARLEY_FULL = '1';
await import('./test.mjs');
