#!/usr/bin/env node
// node deploy/nats/prepare.mjs [FOLDER] [SERVER…]
// Makes what the servers need, in FOLDER (default: that of this file). SERVER: the host names of the servers (default: nats-1 nats-2 nats-3).
//   secrets/<user>.nk  the seed of each user in users.yaml; nats.conf  for the servers, with public keys only
//   secrets/routes/    the password, certificate and key by which the servers recognize each other. Needs openssl.
// It changes nothing if nats.conf exists.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nkeys } from 'nats';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const [folder = here('.'), ...named] = process.argv.slice(2);
const servers = named.length > 0 ? named : ['nats-1', 'nats-2', 'nats-3'];
const path = (name) => join(folder, name);

function fail(message) {
  console.error(message);
  process.exit(1);
}

function run(command, parameters) {
  const { status, stdout, stderr, error } = spawnSync(command, parameters);
  if (status !== 0) fail(`${command} failed: ${error?.message ?? stderr}`);
  return stdout;
}

if (existsSync(path('nats.conf')))
  fail(`${path('nats.conf')} exists: remove it and secrets/ to make new keys`);
// The containers' user reads the files: the outer folder keeps other users of this machine out.
mkdirSync(path('secrets'), { mode: 0o700 });
mkdirSync(path('secrets/routes'));
const users = readFileSync(here('users.yaml'), 'utf8').replaceAll(
  /(\w+)(: \{.*)NEW_KEY/g,
  (_, name, rest) => {
    const key = nkeys.createUser();
    writeFileSync(path(`secrets/${name}.nk`), key.getSeed(), { mode: 0o644 });
    return `${name}${rest}${key.getPublicKey()}`;
  },
);
writeFileSync(path('secrets/users.yaml'), users);
makeRoutes();
const accounts = run(process.execPath, [
  here('../../bin/parley.js'),
  'nats-config',
  path('secrets/users.yaml'),
]);
writeFileSync(path('nats.conf'), accounts);
console.log(`wrote ${path('nats.conf')} and ${path('secrets/')}`);

// A server that joins may act as every user. Both sides of a route therefore show this certificate, which is the only one that
// they trust, and the one that connects also sends the password.
function makeRoutes() {
  const names = servers.map((name) => `${isIP(name) ? 'IP' : 'DNS'}:${name}`).join(',');
  const [certificate, key] = [path('secrets/routes/server.pem'), path('secrets/routes/server.key')];
  run('openssl', [
    ...[
      'req',
      '-x509',
      '-nodes',
      '-days',
      '3650',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
    ],
    ...[
      '-keyout',
      key,
      '-out',
      certificate,
      '-subj',
      '/CN=parley routes',
      '-addext',
      `subjectAltName=${names}`,
    ],
  ]);
  chmodSync(key, 0o644);
  const password = randomBytes(24).toString('hex');
  const routes = servers.map((name) => `"nats-route://parley:${password}@${name}:6222"`);
  const file = (name) => JSON.stringify(`/etc/nats/routes/${name}`);
  writeFileSync(
    path('secrets/routes/routes.conf'),
    [
      `authorization { user: "parley", password: "${password}", timeout: 5 }`,
      `tls { cert_file: ${file('server.pem')}, key_file: ${file('server.key')}, ca_file: ${file('server.pem')}, verify: true, timeout: 5 }`,
      `routes: [${routes.join(', ')}]`,
      '',
    ].join('\n'),
  );
}
