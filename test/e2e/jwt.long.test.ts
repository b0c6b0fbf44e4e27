import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { accountsOf, createSubjects, permissionsOf, type User } from '../../src/bus/index.ts';
import { connect } from '../../src/client/index.ts';
import { runCli } from '../support/cli.ts';
import { followUntil, turnsEnded } from '../support/log.ts';
import { createJwtOperator, createUserKey, type JwtAccount } from '../support/nats-jwt.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject, type Project, scriptedSettings } from '../support/project.ts';
import { LEAD_AND_CRITIC } from '../support/server-users.ts';

/** Users whose JWTs expire or are revoked while daemons and commands use them. */

const operator = createJwtOperator();
const DAEMON: User = { role: 'daemon', name: 'daemon' };
const OPERATOR: User = { role: 'operator', name: 'olga' };
const AGENT: User = { role: 'agent', name: 'critic', slug: 'critic' };
const EXPIRED = new Date('2026-01-02T03:04:05Z');

let project: Project;
let nats: TestNatsServer;
/** By user name. */
let accounts: Map<string, JwtAccount>;
beforeEach(async () => {
  const described = accountsOf('acme', createSubjects(), [DAEMON, OPERATOR, AGENT]);
  const made = operator.accounts(described);
  accounts = new Map();
  for (const { name, users } of described)
    for (const user of users) accounts.set(user.name, made.get(name) as JwtAccount);
  nats = await startNatsServer({ config: operator.config() });
  project = await openProject({
    settings: scriptedSettings({ retry: { attempts: 100, baseMs: 100, maxMs: 100 } }),
    agents: LEAD_AND_CRITIC,
    files: { 'script.yaml': { rules: [{ reply: { text: 'noted' } }] } },
  });
});
afterEach(async () => {
  await project.close();
  await nats.stop();
});

/** Writes new credentials into the file of their user. Returns the key. */
async function issue(user: User, expires?: Date) {
  const key = createUserKey();
  const permissions = permissionsOf(createSubjects(), user);
  await writeFile(
    fileOf(user),
    accounts.get(user.name)?.user(user.name, permissions, key, { expires }) ?? '',
  );
  return key;
}

const fileOf = ({ name }: User) => join(project.root, `${name}.creds`);
const inboxOf = ({ name }: User) => `_INBOX.${name}`;
const flags = (user: User) => [
  ...['--nats', nats.url, '--nats-credentials', fileOf(user)],
  ...['--nats-inbox-prefix', inboxOf(user)],
];

it('a daemon or command with an expired JWT reports when it expired', async () => {
  await issue(DAEMON, EXPIRED);
  await issue(OPERATOR, EXPIRED);
  await expect(project.up('--store', 'jetstream', ...flags(DAEMON))).rejects.toThrow(
    /NATS_UNAUTHORIZED.*daemon\.creds expired at 2026-01-02T03:04:05/,
  );
  const asked = await runCli(['ls', ...flags(OPERATOR)]);
  expect(asked.code).toBe(1);
  expect(asked.stderr).toMatch(
    /refused the credentials: the user JWT in .*olga\.creds expired at 2026-01-02T03:04/,
  );
  expect(asked.stderr).toContain('have it issued again, into the same file');
});

/** A program that stays connected as this user. */
async function client(user: User) {
  const made = await connect({ url: nats.url, credentials: fileOf(user), inboxPrefix: inboxOf(user) });
  project.defer(() => made.close());
  return made;
}

it('a daemon, an agent and a client whose JWTs were revoked continue with new ones in their files', async () => {
  const users = [DAEMON, OPERATOR, AGENT];
  const keys = await Promise.all(users.map((user) => issue(user)));
  const daemon = await project.up('--store', 'jetstream', ...flags(DAEMON));
  const [olga, critic] = [await client(OPERATOR), await client(AGENT)];
  await critic.agent('critic', async () => 'too long');
  const post = (content: string, to: string[]) =>
    olga.post({ conversation: 'demo', publisher: 'olga', content, to });
  await post('hello', ['lead', 'critic']);
  await followUntil(olga, 'demo', turnsEnded(2));
  const shown = new AbortController();
  const tail = runCli(['tail', 'demo', ...flags(OPERATOR)], {
    onOutput: (text) => text.includes('noted') && shown.abort(),
  });
  while (!shown.signal.aborted) await sleep(20);

  await Promise.all(
    users.map(({ name }, place) => accounts.get(name)?.revoke(nats.url, ...keys.slice(place, place + 1))),
  );
  const saidBy = (what: RegExp) => (daemon.stderr().match(what) ?? []).length;
  const refused = /refuses the credentials of this daemon/g;
  const watched = 2; // connections: of posts, of the store
  while (saidBy(refused) < watched) await sleep(20);
  const ended = await tail;
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain(`refused the credentials in ${fileOf(OPERATOR)}`);
  await expect(olga.request('conversations', {})).rejects.toMatchObject({ code: 'NATS_UNAUTHORIZED' });
  const asked = await project.parley('ls');
  expect(asked.stderr).toContain(`refused the credentials in ${fileOf(DAEMON)}`);
  expect(asked.stderr).toContain('may be revoked');

  for (const user of users) await issue(user);
  while (saidBy(/the connection to NATS is restored/g) < watched) await sleep(20);
  while ((await olga.request('conversations', {}).catch(() => null)) === null) await sleep(20);
  await post('still there?', ['lead', 'critic']);
  const entries = await followUntil(olga, 'demo', turnsEnded(4));
  expect(entries.filter((entry) => JSON.stringify(entry).includes('too long'))).toHaveLength(2);
  expect(saidBy(refused)).toBe(watched); // once each, however often it was
  expect(await daemon.stop()).toBe(0);
});
