import { setTimeout as sleep } from 'node:timers/promises';
import type { NatsConnection } from 'nats';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSubjects, permissionsOf, type User } from '../../src/bus/index.ts';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import { followUntil, openSite, type Site, scriptedSettings, turnsEnded } from '../support/daemon.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { createConnections } from '../support/server-users.ts';

/**
 * A request names the subject of its answer, and the daemon answers with its own rights. An attacker with the rights of
 * a publisher or of an agent aims these answers at subjects that it may not use itself.
 */

const USERS: readonly User[] = [
  { role: 'daemon', name: 'daemon' },
  { role: 'operator', name: 'ops' },
  { role: 'publisher', name: 'mal', conversations: ['demo'] },
  { role: 'publisher', name: 'bob', conversations: ['demo'] },
  { role: 'agent', name: 'critic', slug: 'critic' },
];

/** All users in one account, as an operator may have written it: the server compares subjects and no more. */
function oneAccount(): string {
  const users = USERS.map((user) => {
    const { publish, subscribe } = permissionsOf(createSubjects(), user);
    const allowed = `publish: { allow: ${JSON.stringify(publish)} }, subscribe: { allow: ${JSON.stringify(subscribe)} }`;
    const answers = user.role === 'agent' ? ', allow_responses: { max: 1, expires: "1m" }' : '';
    return `{ user: ${user.name}, password: ${user.name}-pw, permissions: { ${allowed}${answers} } }`;
  });
  return `accounts { acme { jetstream: enabled, users: [${users.join(', ')}] } }`;
}

let site: Site;
let nats: TestNatsServer;
const connections = createConnections();
const clients: ParleyClient[] = [];
const who = (name: string) => ({
  url: nats.url,
  user: name,
  password: `${name}-pw`,
  inboxPrefix: `_INBOX.${name}`,
});

beforeEach(async () => {
  nats = await startNatsServer({ config: oneAccount() });
  site = await openSite({
    settings: scriptedSettings(),
    agents: {
      lead: '---\nname: Lead\ndescription: leads\nphases: [chat]\n---\nLEAD',
      critic: '---\nname: Critic\ndescription: criticises\nruntime: bus\n---\nCRITIC',
    },
    files: { 'script.yaml': { rules: [{ reply: { text: 'noted' } }] } },
  });
  const { user, password, inboxPrefix } = who('daemon');
  await site.up(
    ...['--store', 'jetstream', '--nats', nats.url, '--nats-user', user],
    ...['--nats-password', password, '--nats-inbox-prefix', inboxPrefix],
  );
});
afterEach(async () => {
  for (const one of clients.splice(0)) await one.close();
  await connections.close();
  await site.close();
  await nats.stop();
});

async function client(name: string): Promise<ParleyClient> {
  const made = await connect({ ...who(name), requests: { attempts: 1 } });
  clients.push(made);
  return made;
}

/** How many messages each stream has. */
async function kept(): Promise<Record<string, number>> {
  const { streams } = await (await connections.connect(who('daemon'))).jetstreamManager();
  const names = ['PARLEY_LOG', 'PARLEY_IN', 'PARLEY_DEAD'];
  const states = await Promise.all(
    names.map(async (name) => [name, (await streams.info(name)).state.messages]),
  );
  return Object.fromEntries(states);
}

const purge = (stream: string) => `$JS.API.STREAM.PURGE.${stream}`;

describe('a publisher that names a foreign subject for the answer', () => {
  let mal: NatsConnection;
  beforeEach(async () => {
    const ops = await client('ops');
    await ops.post({ conversation: 'demo', publisher: 'bob', content: 'hello' });
    await followUntil(ops, 'demo', turnsEnded(1));
    const raw = await connections.connect(who('bob'));
    await raw.request('parley.in.bob.demo', '{"content":""}', { timeout: 5_000 }); // a dead letter
    await expect.poll(async () => (await kept()).PARLEY_DEAD).toBe(1);
    mal = await connections.connect(who('mal'));
  });

  async function attack(reply: string): Promise<void> {
    for (const verb of ['post', 'answer'])
      for (const body of ['{}', 'x', '', '{"conversation":"aside","content":"hi"}'])
        mal.publish(`parley.api.${verb}.mal`, body, { reply });
    await mal.flush();
    await sleep(300);
  }

  it('purges no stream of the daemon', async () => {
    const before = await kept();
    for (const stream of Object.keys(before)) await attack(purge(stream));
    expect(await kept()).toEqual(before);
  });

  it.each(['parley.log.demo', 'parley.live.demo.lead', 'parley.dead.bob.demo'])(
    'sends nothing to a listener on %s',
    async (subject) => {
      const heard = await connections.listen(who(subject.includes('bob') ? 'bob' : 'ops'), subject);
      await attack(subject);
      expect(heard).toEqual([]);
    },
  );

  it('posts nothing as another publisher', async () => {
    const before = await kept();
    await attack('parley.in.bob.demo');
    expect(await kept()).toEqual(before);
  });

  it('is answered in its own inbox, whatever the client calls it', async () => {
    const request = { publisher: 'mal', conversation: 'demo', content: 'hello' };
    await expect((await client('mal')).post(request)).resolves.toMatchObject({ conversation: 'demo' });
    await expect(
      mal.request('parley.api.post.mal', JSON.stringify(request), {
        timeout: 5_000,
        noMux: true,
        reply: '_INBOX.mal.a.b',
      }),
    ).resolves.toBeDefined();
  });
});

describe('an agent that names a foreign subject for the answer', () => {
  it('purges no stream of the daemon with a heartbeat or a call', async () => {
    const critic = await connections.connect(who('critic'));
    const ops = await client('ops');
    const replies: string[] = [];
    critic.subscribe('parley.agent.critic.turn', {
      callback: (_, message) => {
        const offer = message.json<{ reply?: string; turnId?: string; epoch?: number }>();
        if (offer.reply === undefined) return;
        replies.push(offer.reply);
        message.respond(JSON.stringify({ accepted: true, instance: 'one' }));
        const { turnId, epoch } = offer;
        const call = { type: 'tool_call', turnId, epoch, call: 'c1', name: 'recall', arguments: {} };
        for (const body of [{ type: 'heartbeat', turnId, epoch }, { type: 'odd' }, call])
          critic.publish(offer.reply, JSON.stringify(body), { reply: purge('PARLEY_LOG') });
        const final = { type: 'final', turnId, epoch, content: 'done' };
        critic.publish(offer.reply, JSON.stringify(final), { reply: purge('PARLEY_LOG') });
      },
    });
    await critic.flush();
    await ops.post({ conversation: 'demo', publisher: 'bob', content: 'hello', to: ['critic'] });
    await expect.poll(() => replies.length, { timeout: 20_000 }).toBeGreaterThan(0);
    await sleep(1_000);
    expect((await kept()).PARLEY_LOG).toBeGreaterThan(1);
  });
});
