import type { ChildProcess } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type NatsConnection, nkeyAuthenticator } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificates } from '../support/certificates.ts';
import { type DeployedCluster, prepareDeployed } from '../support/cluster.ts';
import { endChild, sharedFolder } from '../support/lifetime.ts';
import { NATS_SERVER_BINARY } from '../support/nats-server.ts';
import { hasLongTests } from '../support/runs.ts';

/** A server of a stranger that reaches the route port of the deployed cluster, and there could act as every user. */

const folder = sharedFolder();
let cluster: DeployedCluster;
let daemon: NatsConnection;
let received: string[] = [];
const servers: ChildProcess[] = [];

/** nats-server before 2.10 exits on this key. */
const forAnyVersion = (conf: string) => conf.replace(', sync_interval: "always"', '');
/** The stranger needs no key on its own server: its account has the name of the tenant, and a user with all rights. */
const OWN_ACCOUNTS = 'accounts { "parley" { users: [{ user: "x", password: "x" }] } }\nno_auth_user: "x"\n';

async function start(at: number, change: (conf: string) => string = (conf) => conf): Promise<ChildProcess> {
  const server = await cluster.start(NATS_SERVER_BINARY, at, (conf) => change(forAnyVersion(conf)));
  servers.push(server);
  return server;
}

async function open(at: number, seed?: Uint8Array): Promise<NatsConnection> {
  const own = seed && { authenticator: nkeyAuthenticator(seed), inboxPrefix: '_INBOX.daemon' };
  const servers = `nats://127.0.0.1:${cluster.ports[at]}`;
  return connect({ servers, waitOnFirstConnect: true, reconnectTimeWait: 50, ...own });
}

/** Whether a request that a client of server 2 publishes reaches the daemon, which is connected to server 0. */
async function reachesDaemon(change: (conf: string) => string, patienceMs: number): Promise<boolean> {
  const server = await start(2, (conf) => change(conf).replace(/accounts \{[\s\S]*\n\}\n/, OWN_ACCOUNTS));
  const client = await open(2);
  received = [];
  for (const end = Date.now() + patienceMs; received.length === 0 && Date.now() < end; ) {
    client.publish('parley.api.operator.stop', '{}');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await client.close();
  await endChild(server);
  return received.length > 0;
}

beforeAll(async () => {
  cluster = await prepareDeployed(folder);
  await mkdir(join(folder, 'own'));
  await makeCertificates(join(folder, 'own'));
  await Promise.all([start(0), start(1)]);
  daemon = await open(0, await readFile(join(folder, 'secrets/daemon.nk')));
  daemon.subscribe('parley.api.>', { callback: (_error, { subject }) => void received.push(subject) });
  await daemon.flush();
});
afterAll(async () => {
  await daemon?.close();
  await Promise.all(servers.map((server) => endChild(server)));
});

describe('the routes of the deployed cluster', () => {
  it('a server with the files of prepare.mjs joins, and so could anything that has them', async () => {
    expect(await reachesDaemon((conf) => conf, 20_000)).toBe(true);
  });

  const strangers: readonly (readonly [string, (conf: string) => string])[] = [
    [
      'without TLS and without a password',
      (conf: string) => conf.replace(/^authorization .*\ntls .*$/m, '').replaceAll(/parley:\w+@/g, ''),
    ],
    ['with the password and without TLS', (conf: string) => conf.replace(/^tls .*$/m, '')],
    [
      'with the certificate and another password',
      (conf: string) => conf.replaceAll(/(parley:|password: ")\w{48}/g, '$1wrong'),
    ],
    [
      'with the password and a certificate of its own',
      (conf: string) =>
        conf
          .replaceAll(/(cert_file: ").*?(server\.pem)/g, `$1${folder}/own/server.pem`)
          .replace(/key_file: ".*?"/, `key_file: "${folder}/own/server.key"`),
    ],
  ];
  it.each(strangers.slice(0, hasLongTests ? undefined : 1))(
    'the server of a stranger cannot join %s',
    async (_, change) => {
      expect(await reachesDaemon(change, 1_500)).toBe(false);
    },
  );
});
