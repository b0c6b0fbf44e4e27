import { setTimeout as sleep } from 'node:timers/promises';
import type { NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { User } from '../../src/bus/index.ts';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import { ask } from '../support/log.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject, type Project, scriptedSettings } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';
import { accountKinds, createConnections, LEAD_AND_CRITIC, loginOf } from '../support/server-users.ts';

/**
 * A request names the subject of its answer, and the daemon answers with its own rights. A publisher or agent aims
 * these answers at subjects that it may not use itself. Here alice attacks.
 */

const USERS: readonly User[] = [
  { role: 'daemon', name: 'daemon' },
  { role: 'operator', name: 'ops' },
  { role: 'publisher', name: 'alice', conversations: ['demo'] },
  { role: 'publisher', name: 'bob', conversations: ['demo'] },
  { role: 'agent', name: 'critic', slug: 'critic' },
];

let project: Project;
let nats: TestNatsServer;
const connections = createConnections();
const clients: ParleyClient[] = [];
const who = (name: string) => loginOf(nats.url, name);

async function start(config: string): Promise<void> {
  nats = await startNatsServer({ config });
  const { user, password, inboxPrefix } = who('daemon');
  await project.up(
    ...['--store', 'jetstream', '--nats', nats.url, '--nats-user', user],
    ...['--nats-password', password, '--nats-inbox-prefix', inboxPrefix],
  );
}

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
const FOREIGN = ['parley.log.demo', 'parley.live.demo.lead', 'parley.dead.bob.demo'];

describe.each(accountKinds(USERS))('reply subjects on a server with %s', (kind, configured) => {
  let alice: NatsConnection;
  beforeAll(async () => {
    project = await openProject({
      settings: scriptedSettings(),
      agents: LEAD_AND_CRITIC,
      files: { 'script.yaml': { rules: [{ reply: { text: 'noted' } }] } },
    });
    await start(await configured(project.root));
    const ops = await client('ops');
    await ask(ops, 'demo', 'hello', { publisher: 'bob' });
    const raw = await connections.connect(who('bob'));
    await raw.request('parley.in.bob.demo', '{"content":""}', { timeout: 5_000 }); // a dead letter
    await vi.waitFor(async () => expect((await kept()).PARLEY_DEAD).toBe(1), 10_000);
    alice = await connections.connect(who('alice'));
  });
  afterAll(async () => {
    for (const one of clients.splice(0)) await one.close();
    await connections.close();
    await project.close();
    await nats?.stop();
  });

  /** Requests of the daemon whose answers are to go to `reply`. */
  async function request(reply: string): Promise<void> {
    for (const verb of ['post.alice.demo', 'answer.alice'])
      for (const body of ['{}', 'x', '', '{"conversation":"demo","content":""}'])
        alice.publish(`parley.api.${verb}`, body, { reply });
    await alice.flush();
    await sleep(300);
  }

  it('a publisher cannot purge a stream with the answer to a request', async () => {
    const before = await kept();
    for (const stream of Object.keys(before)) await request(purge(stream));
    expect(await kept()).toEqual(before);
  });

  it.each(hasLongTests ? FOREIGN : FOREIGN.slice(0, 1))(
    'a publisher cannot forge a message on %s with the answer to a request',
    async (subject) => {
      const heard = await connections.listen(who(subject.includes('bob') ? 'bob' : 'ops'), subject);
      await request(subject);
      expect(heard).toEqual([]);
    },
  );

  it('a publisher cannot post as another with the answer to a request', async () => {
    const before = await kept();
    await request('parley.in.bob.demo');
    expect(await kept()).toEqual(before);
  });

  it('a publisher is answered in an inbox of its own, also in a second level below it', async () => {
    const message = { publisher: 'alice', conversation: 'demo', content: 'hello' };
    await expect((await client('alice')).post(message)).resolves.toMatchObject({ conversation: 'demo' });
    const heard = await connections.listen(who('alice'), '_INBOX.alice.a.b');
    await request('_INBOX.alice.a.b');
    expect(heard).toHaveLength(8);
  });

  it('an agent cannot purge a stream with the answer to a heartbeat, a call or its final message', async () => {
    const critic = await connections.connect(who('critic'));
    const offers: string[] = [];
    critic.subscribe('parley.agent.critic.turn', {
      callback: (_error, message) => {
        const { reply, turnId, epoch } = message.json<{ reply?: string; turnId?: string; epoch?: number }>();
        if (reply === undefined) return;
        offers.push(reply);
        message.respond(JSON.stringify({ accepted: true, instance: 'one' }));
        const call = { type: 'tool_call', turnId, epoch, call: 'c1', name: 'recall', arguments: {} };
        const final = { type: 'final', turnId, epoch, content: 'done' };
        for (const body of [{ type: 'heartbeat', turnId, epoch }, { type: 'odd' }, call, final])
          critic.publish(reply, JSON.stringify(body), { reply: purge('PARLEY_LOG') });
      },
    });
    await critic.flush();
    const before = (await kept()).PARLEY_LOG ?? 0;
    const ops = await client('ops');
    await ops.post({ conversation: 'demo', publisher: 'bob', content: 'hello', to: ['critic'] });
    await expect.poll(() => offers.length, { timeout: 20_000 }).toBeGreaterThan(0);
    await sleep(1_000);
    expect((await kept()).PARLEY_LOG).toBeGreaterThan(before);
  });

  it('only separate accounts keep the acknowledgements of the server from foreign subjects', async () => {
    const targets = [...FOREIGN, 'parley.in.bob.demo'];
    const heard = await Promise.all([
      ...FOREIGN.map((subject) => connections.listen(who(subject.includes('bob') ? 'bob' : 'ops'), subject)),
      connections.listen(who('bob'), '_INBOX.bob.answer'),
    ]);
    const before = await kept();
    for (const reply of [...targets, '_INBOX.bob.answer', purge('PARLEY_LOG')])
      alice.publish('parley.in.alice.demo', '', { reply });
    await alice.flush();
    await sleep(500);
    const forged = heard.flat().filter((text) => text.includes('"stream"'));
    if (kind === 'one account')
      expect(forged).not.toEqual([]); // The protection that `parley nats-config` writes.
    else {
      expect(forged).toEqual([]);
      expect((await kept()).PARLEY_LOG).toBe(before.PARLEY_LOG);
    }
  });
});
