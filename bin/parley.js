#!/usr/bin/env node
// Starts the command line: the built one, or, in a checkout, the source itself by way of tsx.
// Plain JavaScript that old versions of Node can read, so that they can say that they are too old.

import { existsSync } from 'node:fs';

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
const built = new URL('../dist/cli/main.js', import.meta.url);

if (existsSync(source)) {
  const { register } = await import('tsx/esm/api');
  register({ tsconfig: false }); // the folder that a person happens to be in may hold a tsconfig.json of its own
  await import(source.href);
} else if (existsSync(built)) {
  await import(built.href);
} else {
  process.stderr.write('parley is not complete here: neither src/cli nor dist/cli is there.\n');
  process.stderr.write('In a checkout, restore the source; else install the package again.\n');
  process.exit(1);
}
