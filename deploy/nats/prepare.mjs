#!/usr/bin/env node
// node deploy/nats/prepare.mjs [FOLDER]
// Makes the keys of the users in users.yaml and the server's configuration in FOLDER (default: that of this file):
//   secrets/<user>.nk  the seeds; nats.conf  for the servers, with public keys only
// It changes nothing if nats.conf exists.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nkeys } from 'nats';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const path = (name) => join(process.argv[2] ?? here('.'), name);

if (existsSync(path('nats.conf'))) {
  console.error(`${path('nats.conf')} exists: remove it and secrets/ to make new keys`);
  process.exit(1);
}
// The containers' user reads the seeds: the folder, not the files, keeps other users of this machine out.
mkdirSync(path('secrets'), { mode: 0o700 });
const users = readFileSync(here('users.yaml'), 'utf8').replaceAll(
  /(\w+)(: \{.*)NEW_KEY/g,
  (_, name, rest) => {
    const key = nkeys.createUser();
    writeFileSync(path(`secrets/${name}.nk`), key.getSeed(), { mode: 0o644 });
    return `${name}${rest}${key.getPublicKey()}`;
  },
);
writeFileSync(path('secrets/users.yaml'), users);
const parley = spawnSync(process.execPath, [
  here('../../bin/parley.js'),
  'nats-config',
  path('secrets/users.yaml'),
]);
if (parley.status !== 0) {
  process.stderr.write(parley.stderr);
  process.exit(1);
}
writeFileSync(path('nats.conf'), parley.stdout);
console.log(`wrote ${path('nats.conf')} and ${path('secrets/')}`);
