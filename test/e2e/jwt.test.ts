import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createSubjects, permissionsOf, type User } from '../../src/bus/index.ts';
import { connect } from '../../src/client/index.ts';
import { runCli } from '../support/cli.ts';
import { followUntil, openSite, type Site, scriptedSettings, turnsEnded } from '../support/daemon.ts';
import { createJwtOperator, createUserKey, type JwtAccount } from '../support/nats-jwt.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

/** Users whose JWTs end while daemons and commands use them. */

const operator = createJwtOperator();
const DAEMON: User = { role: 'daemon', name: 'daemon' };
const OPERATOR: User = { role: 'operator', name: 'olga' };
const EXPIRED = new Date('2026-01-02T03:04:05Z');

let site: Site;
let nats: TestNatsServer;
let acme: JwtAccount;
beforeEach(async () => {
  acme = operator.account('acme');
  nats = await startNatsServer({ config: operator.config() });
  site = await openSite({
    settings: scriptedSettings(),
    agents: { lead: '---\nname: Lead\ndescription: leads\nphases: [chat]\n---\nLEAD' },
    files: { 'script.yaml': { rules: [{ reply: { text: 'noted' } }] } },
  });
});
afterEach(async () => {
  await site.close();
  await nats.stop();
});

/** Issues credentials into the file of their user; answers the key. */
async function issue(user: User, expires?: Date) {
  const key = createUserKey();
  const permissions = permissionsOf(createSubjects(), user);
  await writeFile(fileOf(user), acme.user(user.name, permissions, key, { expires }));
  return key;
}

const fileOf = ({ name }: User) => join(site.root, `${name}.creds`);
const inboxOf = ({ name }: User) => `_INBOX.${name}`;
const flags = (user: User) => [
  ...['--nats', nats.url, '--nats-credentials', fileOf(user)],
  ...['--nats-inbox-prefix', inboxOf(user)],
];

it('says to who starts a daemon or a command with an expired JWT when it expired', async () => {
  await issue(DAEMON, EXPIRED);
  await issue(OPERATOR, EXPIRED);
  await expect(site.up('--store', 'jetstream', ...flags(DAEMON))).rejects.toThrow(
    /NATS_UNAUTHORIZED.*daemon\.creds expired at 2026-01-02T03:04:05/,
  );
  const asked = await runCli(['ls', ...flags(OPERATOR)]);
  expect(asked.code).toBe(1);
  expect(asked.stderr).toMatch(
    /refused the credentials: the user JWT in .*olga\.creds expired at 2026-01-02T03:04/,
  );
  expect(asked.stderr).toContain('have it issued anew, into the same file');
});

it('lets a daemon whose JWT was revoked say so, and go on with the next one in its file', async () => {
  const [daemonKey, operatorKey] = [await issue(DAEMON), await issue(OPERATOR)];
  const daemon = await site.up('--store', 'jetstream', ...flags(DAEMON));
  const olga = { url: nats.url, credentials: fileOf(OPERATOR), inboxPrefix: inboxOf(OPERATOR) };
  const client = await connect(olga);
  site.defer(() => client.close());
  await client.post({ conversation: 'demo', publisher: 'olga', content: 'hello' });
  await followUntil(client, 'demo', turnsEnded(1));
  const shown = new AbortController();
  const tail = runCli(['tail', 'demo', ...flags(OPERATOR)], {
    onOutput: (text) => text.includes('noted') && shown.abort(),
  });
  while (!shown.signal.aborted) await sleep(20);

  await acme.revoke(nats.url, daemonKey, operatorKey);
  const refused = /refuses the credentials of this daemon/g;
  const connections = 2; // that watch: of posts, of the store
  while ((daemon.stderr().match(refused) ?? []).length < connections) await sleep(20);
  const ended = await tail;
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain(`refused the credentials in ${fileOf(OPERATOR)}`);
  await expect(client.request('conversations', {})).rejects.toMatchObject({ code: 'NATS_UNAUTHORIZED' });
  const asked = await site.parley('ls');
  expect(asked.stderr).toContain(`refused the credentials in ${fileOf(DAEMON)}`);
  expect(asked.stderr).toContain('may be revoked');

  await issue(DAEMON);
  await issue(OPERATOR);
  while ((daemon.stderr().match(/the connection to NATS is back/g) ?? []).length < connections)
    await sleep(20);
  const again = await connect(olga);
  site.defer(() => again.close());
  await again.post({ conversation: 'demo', publisher: 'olga', content: 'still there?' });
  await followUntil(again, 'demo', turnsEnded(2));
  expect(daemon.stderr().match(refused)).toHaveLength(connections); // once, however often it was
  expect(await daemon.stop()).toBe(0);
});
