import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createSubjects, permissionsOf } from '../../src/bus/index.ts';
import { type NatsConnection, type NatsOptions, openNats } from '../../src/bus/nats/index.ts';
import { errorWith } from '../support/error-with.ts';
import { createJwtOperator, createUserKey, type JwtAccount } from '../support/nats-jwt.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

const ANYTHING = { publish: ['>'], subscribe: ['>'], answers: false };

let directory: string;
let server: TestNatsServer;
let acme: JwtAccount;
const operator = createJwtOperator();
const open: NatsConnection[] = [];
/** Servers beside the common one. Stopped here, also if a test times out. */
const servers: TestNatsServer[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-credentials-'));
  acme = operator.account('acme');
  server = await startNatsServer({ config: operator.config() });
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  for (const one of servers.splice(0)) await one.stop();
});
afterAll(async () => {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});

async function file(name: string, content: string): Promise<string> {
  await writeFile(join(directory, name), content);
  return join(directory, name);
}

async function ownServer(config: string): Promise<TestNatsServer> {
  const own = await startNatsServer({ config });
  servers.push(own);
  return own;
}

async function connected(options: Omit<NatsOptions, 'url'>, url = server.url) {
  const connection = await openNats({ url, ...options });
  open.push(connection);
  const reported: string[] = [];
  void (async () => {
    for await (const { type, data } of connection.status()) reported.push(`${type} ${data}`);
  })();
  const heard = (what: RegExp) => reported.filter((line) => what.test(line)).length;
  /** Waits until this was reported this many times. */
  const hears = async (what: RegExp, times = 1) => {
    while (heard(what) < times) await sleep(20);
  };
  return { connection, heard, hears };
}

/** The error of a connection that fails. */
async function refusal(options: Omit<NatsOptions, 'url'>, url = server.url) {
  const error: unknown = await connected(options, url).catch((caught: unknown) => caught);
  return error as { code: string; message: string; hint: string };
}

describe('a credentials file', () => {
  it('a credentials file is accepted as nsc writes it, and without its last line break', async () => {
    const text = acme.user('al', ANYTHING);
    for (const written of [text, text.trim(), `${text}\n****************\n`])
      await (await connected({ credentials: await file('al.creds', written) })).connection.flush();
  });

  it('a credentials file without a JWT and seed is named, and none of its content is repeated', async () => {
    const [head = '', rest = ''] = acme.user('al', ANYTHING).split('-----BEGIN USER');
    for (const content of ['', 'geheim', head, `${head}-----BEGIN USER${rest.replace('SU', 'SUgeheim')}`]) {
      const credentials = await file('wrong.creds', content);
      const { code, message, hint } = await refusal({ credentials });
      expect(code).toBe('NATS_CREDENTIALS_INVALID');
      expect(message).toBe(`the credentials file ${credentials} does not contain a user's JWT and seed`);
      expect(message + hint).not.toContain('geheim');
    }
    const nkey = await file('wrong.nk', 'geheim');
    expect(await refusal({ nkey })).toMatchObject({
      code: 'NATS_CREDENTIALS_INVALID',
      message: `the nkey seed file ${nkey} does not contain the seed of an nkey`,
    });
    for (const options of [{ credentials: '/nowhere/al.creds' }, { nkey: '/nowhere/al.creds' }])
      expect(await refusal(options)).toMatchObject(
        errorWith('NATS_CREDENTIALS_UNREADABLE', '/nowhere/al.creds'),
      );
  });

  it('a credentials file whose user has expired is refused with the time', async () => {
    const expires = new Date('2026-01-02T03:04:05Z');
    const credentials = await file('old.creds', acme.user('al', ANYTHING, createUserKey(), { expires }));
    expect(await refusal({ credentials })).toMatchObject({
      code: 'NATS_UNAUTHORIZED',
      message: expect.stringMatching(
        /refused the credentials: the user JWT in .*old\.creds expired at 2026-01-02T03:04:05/,
      ),
      hint: 'have it issued again, into the same file',
    });
  });

  it('a credentials file of a revoked user or an unknown account is refused by name', async () => {
    const key = createUserKey();
    const revoked = await file('revoked.creds', acme.user('al', ANYTHING, key));
    await (await connected({ credentials: revoked })).connection.close();
    await acme.revoke(server.url, key);
    const stranger = createJwtOperator().account('acme').user('al', ANYTHING);
    for (const credentials of [revoked, await file('stranger.creds', stranger)])
      for (const waitForServer of [false, true]) {
        const { code, message, hint } = await refusal({ credentials, waitForServer });
        expect(code).toBe('NATS_UNAUTHORIZED');
        expect(message).toContain(`refused the credentials in ${credentials}`);
        expect(hint).toContain('may be revoked, or its account expired or unknown');
      }
  });

  it('a credentials file that exceeds the line limit of a server is reported as such', async () => {
    const narrow = await ownServer(operator.config().replace(/max_control_line.*/, ''));
    const permissions = permissionsOf(createSubjects(), { role: 'daemon', name: 'daemon' });
    const credentials = await file('daemon.creds', acme.user('daemon', permissions));
    const { hint } = await refusal({ credentials }, narrow.url);
    expect(hint).toContain('max_control_line of the server to 16KB');
    await (await connected({ credentials })).connection.flush();
  });
});

describe('a connection whose user is no longer accepted', () => {
  it.each(['expires', 'is revoked'])(
    'a connection whose user %s reconnects until the file contains a valid one',
    async (how) => {
      const key = createUserKey();
      const expires = how === 'expires' ? new Date(Date.now() + 4_000) : undefined;
      const credentials = await file('renewed.creds', acme.user('al', ANYTHING, key, { expires }));
      const { connection, heard, hears } = await connected({ credentials });
      if (!expires) await acme.revoke(server.url, key);
      await hears(/AUTHORIZATION_VIOLATION/, 3); // The NATS client itself gives up at the second refusal.
      const before = heard(/^reconnect /); // In the second in which a JWT expires, it may be accepted once more.
      await file('renewed.creds', acme.user('al', ANYTHING));
      await hears(/^reconnect /, before + 1);
      await connection.flush();
    },
  );

  it('a connection continues with its credentials while the file is missing', async () => {
    const own = await ownServer(operator.config());
    const credentials = await file('away.creds', acme.user('al', ANYTHING));
    const { connection, hears } = await connected({ credentials }, own.url);
    await rm(credentials);
    await own.restart();
    await hears(/^reconnect /);
    await connection.flush();
  });
});
