#!/usr/bin/env node
// Starts the command line: the built one, or, in a checkout, a bundle of the source as it is now.
// Plain JavaScript that old versions of Node can read, so that they can say that they are too old.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const OLDEST = [20, 19];

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
  process.stderr.write(
    `parley needs Node ${OLDEST.join('.')} or later; this is ${process.versions.node}.\n` +
      'Install a newer one (https://nodejs.org, or `nvm install 22`) and start again.\n',
  );
  process.exit(1);
}

const source = new URL('../src/cli/main.ts', import.meta.url);
const built = new URL('../dist/cli/main.cjs', import.meta.url);

if (process.argv.length === 3 && process.argv[2] === '--version') {
  // As the program prints it, without loading it.
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  process.stdout.write(`${version}\n`);
} else if (existsSync(source)) {
  await start(await programOfCheckout());
} else if (existsSync(built)) {
  await start(fileURLToPath(built));
} else {
  process.stderr.write('parley is not complete here: neither src/cli nor dist/cli is there.\n');
  process.stderr.write('In a checkout, restore the source; else install the package again.\n');
  process.exit(1);
}

async function start(program) {
  if (process.argv.includes('--verbose')) {
    process.setSourceMapsEnabled(true); // it prints stack traces
    createRequire(program)(program);
  } else {
    const { load } = await import('./load.js');
    load(program);
  }
}

async function programOfCheckout() {
  const { adviceOn, programOf } = await import('../scripts/checkout.mjs');
  try {
    return await programOf(new URL('..', import.meta.url));
  } catch (error) {
    process.stderr.write(`the source cannot be bundled: ${error.message}\n${adviceOn(error)}\n`);
    process.exit(1);
  }
}
