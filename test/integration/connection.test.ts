import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type NatsOptions, openNats } from '../../src/bus/nats/index.ts';
import { makeCertificates, type TestCertificates } from '../support/certificates.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

let directory: string;
let certificates: TestCertificates;
const servers: TestNatsServer[] = [];
const seed = nkeys.createUser();

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-connection-'));
  certificates = await makeCertificates(directory);
  const nkey = { path: join(directory, 'user.nk'), seed: new TextDecoder().decode(seed.getSeed()) };
  await writeFile(nkey.path, `${nkey.seed}\n`);
  await writeFile(join(directory, 'password'), 'pass word\n');
});
afterAll(async () => {
  for (const server of servers) await server.stop();
  await rm(directory, { recursive: true, force: true });
});

async function aServer(config: string): Promise<string> {
  const server = await startNatsServer({ plain: true, config });
  servers.push(server);
  return server.url;
}

/** Connects. Returns `connected`, or the error with code, message and hint. */
async function attempt(options: NatsOptions): Promise<string> {
  try {
    await (await openNats(options)).close();
    return 'connected';
  } catch (error) {
    const { code, message, hint } = error as { code: string; message: string; hint?: string };
    return `${code}: ${message} (${hint})`;
  }
}

const files = (...names: string[]) =>
  names
    .map(
      (name) =>
        `${name}_file: ${JSON.stringify(certificates.path(name === 'ca' ? 'ca.pem' : `server.${name === 'key' ? 'key' : 'pem'}`))}`,
    )
    .join(', ');

describe('a connection with TLS', () => {
  let url: string;
  beforeAll(async () => {
    url = await aServer(`tls { ${files('cert', 'key')} }`);
  });

  it('a TLS connection is made to a server that the authority certifies, and to no other', async () => {
    const ca = certificates.path('ca.pem');
    expect(await attempt({ url, tls: { ca } })).toBe('connected');
    expect(await attempt({ url: url.replace('nats:', 'tls:'), tls: { ca } })).toBe('connected');
    for (const tls of [{ ca: certificates.path('other.pem') }, undefined]) {
      const told = await attempt({ url, tls });
      expect(told).toMatch(/^NATS_TLS_FAILED: no secure connection to NATS at nats:\/\/127.*certificate/);
      expect(told).toContain('check that --nats-tls-ca is the authority');
    }
  });

  it('a TLS connection is refused if the certificate has another host name', async () => {
    const named = url.replace('127.0.0.1', 'localhost');
    expect(await attempt({ url: named, tls: { ca: certificates.path('ca.pem') } })).toContain(
      'NATS_TLS_FAILED',
    );
  });

  it('a TLS connection names a file that cannot be read', async () => {
    expect(await attempt({ url, tls: { ca: '/nowhere/ca.pem' } })).toMatch(
      /^NATS_CREDENTIALS_UNREADABLE: cannot read the file of certificate authorities \/nowhere\/ca.pem/,
    );
  });

  it('a TLS connection presents its own certificate to a server that requires one', async () => {
    const strict = await aServer(`tls { ${files('cert', 'key', 'ca')}, verify: true }`);
    const ca = certificates.path('ca.pem');
    const own = { ca, cert: certificates.path('client.pem'), key: certificates.path('client.key') };
    expect(await attempt({ url: strict, tls: own })).toBe('connected');
    expect(await attempt({ url: strict, tls: { ca } })).toMatch(
      /NATS_TLS_FAILED|requires a client certificate/,
    );
  });

  it('a TLS connection sends nothing to a server without TLS', async () => {
    const bare = await aServer('');
    for (const options of [
      { url: bare, tls: { ca: certificates.path('ca.pem') } },
      { url: bare.replace('nats:', 'tls:') },
    ]) {
      expect(await attempt({ ...options, user: 'u', password: 'geheim' })).toMatch(
        /^NATS_TLS_FAILED: .*the server offers no TLS/,
      );
    }
  });
});

describe('the credentials of a connection', () => {
  it('a password or a token can be read from a file', async () => {
    const passwordFile = join(directory, 'password');
    const byUser = await aServer('authorization { user: al, password: "pass word" }');
    expect(await attempt({ url: byUser, user: 'al', passwordFile })).toBe('connected');
    expect(await attempt({ url: byUser.replace('//', '//al:pass%20word@') })).toBe('connected');
    const refused = await attempt({ url: byUser, user: 'al', password: 'geheim' });
    expect(refused).toMatch(/^NATS_UNAUTHORIZED/);
    expect(refused).not.toContain('geheim');
    expect(await attempt({ url: byUser, user: 'al', passwordFile: '/nowhere' })).toMatch(
      /^NATS_CREDENTIALS_UNREADABLE: cannot read the password file \/nowhere/,
    );
    const byToken = await aServer('authorization { token: "pass word" }');
    expect(await attempt({ url: byToken, tokenFile: passwordFile })).toBe('connected');
  });

  it('an nkey authenticates without sending its seed', async () => {
    const url = await aServer(`authorization { users: [ { nkey: ${seed.getPublicKey()} } ] }`);
    expect(await attempt({ url, nkey: join(directory, 'user.nk') })).toBe('connected');
    expect(await attempt({ url, nkey: join(directory, 'password') })).toMatch(/^NATS_/);
  });
});

it('a connection receives answers if the server allows its inbox', async () => {
  const url = await aServer(
    'authorization { users: [ { user: al, password: p, permissions: { subscribe: ["q", "_INBOX_al.>"] } } ] }',
  );
  const connection = await openNats({ url, user: 'al', password: 'p', inboxPrefix: '_INBOX_al' });
  connection.subscribe('q', { callback: (_, message) => void message.respond('yes') });
  expect((await connection.request('q', '', { timeout: 5_000 })).string()).toBe('yes');
  await connection.close();
});
