import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { User } from '../../src/bus/index.ts';
import { type ParleyClient, connect as parleyClient } from '../../src/client/index.ts';
import { perTest } from '../support/lifetime.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject } from '../support/project.ts';
import { accountKinds, createConnections, LEAD_AND_CRITIC, loginOf } from '../support/server-users.ts';

/**
 * A remote agent publishes live text. An attacker with its credentials publishes into conversations whose turns it
 * was not offered, as another agent, and after its turn. Here critic attacks.
 */

const USERS: readonly User[] = [
  { role: 'daemon', name: 'daemon' },
  { role: 'operator', name: 'ops' },
  { role: 'agent', name: 'critic', slug: 'critic' },
];

interface Offer {
  readonly turnId: string;
  readonly live: string;
  readonly reply: string;
}

let nats: TestNatsServer;
let ops: ParleyClient;
const connections = createConnections();
const who = (name: string) => loginOf(nats.url, name);

const project = perTest(() =>
  openProject({
    agents: LEAD_AND_CRITIC,
    script: [{ reply: { text: 'noted' } }],
  }),
);
afterEach(async () => {
  await ops?.close();
  await connections.close();
});

describe.each(accountKinds(USERS))('live subjects on a server with %s', (_, configured) => {
  it('live text of a remote agent is shown in a conversation only while it is offered a turn there', async () => {
    nats = await startNatsServer({ config: await configured(project.root) });
    project.defer(() => nats.stop());
    await project.up(
      ...['--store', 'jetstream', '--nats', nats.url, '--nats-user', 'daemon'],
      ...['--nats-password', 'daemon-pw', '--nats-inbox-prefix', '_INBOX.daemon'],
    );
    ops = await parleyClient({ ...who('ops'), requests: { attempts: 1 } });
    const critic = await connections.connect(who('critic'));
    const offers: Offer[] = [];
    critic.subscribe('parley.agent.critic.turn', {
      callback: (_error, message) => {
        const offer = message.json<Offer>();
        if (offer.reply === undefined) return;
        offers.push(offer);
        message.respond(JSON.stringify({ accepted: true, instance: 'one' }));
      },
    });
    await critic.flush();
    const heard = await connections.listen(who('ops'), 'parley.live.*.*');
    await ops.post({ conversation: 'secret', publisher: 'ops', content: 'hello', to: ['lead'] });
    await ops.post({ conversation: 'demo', publisher: 'ops', content: 'hello', to: ['critic'] });
    await expect.poll(() => offers.length).toBe(1);
    const [offer] = offers as [Offer];
    const speak = async (subject: string, delta: string, turnId = offer.turnId) => {
      const chunk = { turnId, call: 'k', n: 0, type: 'text', delta, extra: 'field' };
      critic.publish(subject, JSON.stringify(chunk));
      await critic.flush();
      await sleep(100);
    };
    await speak('parley.live.secret.critic', 'FORGED in another conversation');
    await speak('parley.live.demo.lead', 'FORGED as another agent');
    await speak('parley.live.demo.critic', 'FORGED past the daemon');
    await speak(offer.live, 'FORGED in another turn', 'some-turn');
    await speak(offer.live, 'WORDS of its own turn');
    critic.publish(offer.reply, JSON.stringify({ type: 'final', content: 'done' }));
    await sleep(500);
    await speak(offer.live, 'FORGED after its turn');
    await speak('parley.live.demo.critic', 'FORGED after its turn, past the daemon');
    await expect.poll(() => heard.join()).toContain('WORDS');
    expect(heard.filter((text) => text.includes('FORGED'))).toEqual([]);
    expect(heard.filter((text) => text.includes('WORDS')).map((text) => JSON.parse(text))).toEqual([
      { turnId: offer.turnId, call: 'k', n: 0, type: 'text', delta: 'WORDS of its own turn' },
    ]);
  });
});
