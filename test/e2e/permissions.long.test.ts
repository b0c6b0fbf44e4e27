import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { type NatsOptions, watchConnection } from '../../src/bus/nats/index.ts';
import { connect, filesOf, type ParleyClient } from '../../src/client/index.ts';
import { openJetStreamStore } from '../../src/persistence/jetstream/index.ts';
import { entryWith, putBlob, textOf } from '../contract/blobs.contract.ts';
import { batch, row } from '../contract/samples.ts';
import { runCli } from '../support/cli.ts';
import { perTest } from '../support/lifetime.ts';
import { entriesOf, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject } from '../support/project.ts';
import {
  createConnections,
  describeUsers,
  LEAD_AND_CRITIC,
  type ServerUsers,
} from '../support/server-users.ts';

const ROLES = {
  daemon: { role: 'daemon' },
  ops: { role: 'operator' },
  alice: { role: 'publisher', conversations: ['demo'] },
  bob: { role: 'publisher', conversations: ['other'] },
  critic: { role: 'agent' },
};

const project = perTest(() =>
  openProject({ agents: LEAD_AND_CRITIC, script: [{ reply: { text: 'noted' } }] }),
);
let nats: TestNatsServer;
const connections = createConnections();
afterEach(async () => {
  await connections.close();
  await nats?.stop();
});

async function clientOf(options: NatsOptions): Promise<ParleyClient> {
  const client = await connect({ ...options, requests: { attempts: 1 } });
  project.defer(() => client.close());
  return client;
}

describe.each(['password', 'nkey', 'jwt'] as const)('a server configured for users with a %s', (kind) => {
  let users: ServerUsers;

  beforeEach(async () => {
    users = await describeUsers(project.root, kind, {
      acme: ROLES,
      rival: { 'rival-daemon': ROLES.daemon, 'rival-alice': ROLES.alice },
    });
    nats = await startNatsServer({ config: users.config });
  });

  const who = (name: string) => users.options(name, nats.url);
  const flags = (name: string) => users.flags(name, nats.url);
  const client = (name: string) => clientOf(who(name));

  it('each user may do what it needs, and the daemon serves it under its own name', async () => {
    const daemon = await project.up('--store', 'jetstream', ...flags('daemon'));
    const [alice, ops, critic] = [await client('alice'), await client('ops'), await client('critic')];
    await critic.agent('critic', async (turn) => {
      turn.write('too ');
      const results = await turn.callTools([{ name: 'recall', arguments: { query: 'you' } }]);
      const own = { publisher: 'critic' };
      const [asked] = turn.messages.flatMap(({ files = [] }) => files);
      const read = await text(Readable.from(critic.download(turn.conversation, asked?.sha256 ?? '', own)));
      const files = [await critic.upload(Buffer.from(`${read}, read`), own)];
      return { content: results.length === 1 ? 'too long' : 'no result', files };
    });
    const heard = await connections.listen(who('alice'), 'parley.log.demo');
    await alice.post({ conversation: 'demo', publisher: 'alice', content: 'hello' });
    const file = await alice.upload(Buffer.from('a file'), { publisher: 'alice' });
    const parts = [{ type: 'text', text: 'and you?' } as const, file];
    await alice.post({ conversation: 'demo', publisher: 'alice', content: '', parts, to: ['critic'] });
    await ops.post({ conversation: 'secret', publisher: 'alice', content: 'hello' });
    await followUntil(ops, 'demo', turnsEnded(2));
    const answer = ofType(await entriesOf(ops, 'demo'), 'message').at(-1);
    expect(answer?.content).toBe('too long');
    const [made] = filesOf(answer ?? {});
    expect(await text(Readable.from(ops.download('demo', made?.sha256 ?? '')))).toBe('a file, read');
    await expect(
      text(Readable.from(critic.download('secret', file.sha256, { publisher: 'critic' }))),
    ).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(heard.join()).toContain('too long');
    expect((await ops.request('agents', {})).agents.length).toBe(2);
    await ops.request('delete', { conversation: 'demo' });
    const raw = await connections.connect(who('alice'));
    const taken = await raw.request('parley.in.alice.demo', 'raw', { timeout: 5_000 });
    expect(taken.json()).toMatchObject({ stream: 'PARLEY_IN' });
    const refused = await connections.listen(who('alice'), 'parley.dead.alice.*');
    await raw.request('parley.in.alice.demo', '{"content":""}', { timeout: 5_000 });
    while (refused.length === 0) await setImmediate();

    for (const request of [
      () => alice.post({ conversation: 'demo', publisher: 'bob', content: 'as bob' }),
      () => alice.post({ conversation: 'secret', publisher: 'alice', content: 'not in the list' }),
      () => alice.request('entries', { conversation: 'demo' }),
      () => alice.request('conversation', { conversation: 'demo' }),
      () => alice.request('conversations', {}),
      () => alice.request('phase', { conversation: 'demo', phase: 'plan' }),
      () => alice.request('delete', { conversation: 'demo' }),
      () => critic.request('entries', { conversation: 'demo' }),
      () => critic.upload(Buffer.from('as alice'), { publisher: 'alice' }),
      () => critic.upload(Buffer.from('as an operator')),
    ])
      await expect(request()).rejects.toMatchObject({ code: 'NATS_FORBIDDEN' });
    expect(daemon.stderr()).not.toMatch(/ermissions|geheim|-pw|SU[A-Z2-7]{50}/);
    expect((await runCli(['ls', '--data', project.data])).stdout).toContain('secret'); // as the daemon left its address
    expect(await daemon.stop()).toBe(0);
  });

  it('no user may do what another may, and tenants never see one another', async () => {
    const may: Record<string, [publish: string[], subscribe: string[]]> = {
      alice: [
        ['parley.in.alice.demo', 'parley.api.post.alice.demo', 'parley.api.answer.alice'],
        ['parley.log.demo', 'parley.live.demo.*', 'parley.dead.alice.*', '_INBOX.alice.x'],
      ],
      bob: [['parley.in.bob.other'], ['parley.log.other']],
      ops: [
        ['parley.api.entries', 'parley.api.post.alice'],
        ['parley.log.*', 'parley.live.*.*', '_INBOX.ops.x'],
      ],
      critic: [
        ['parley.agent.critic.reply.o', 'parley.api.blob.critic.demo', 'parley.api.upload.critic'],
        ['parley.agent.critic.turn', 'parley.agent.critic.control.*'],
      ],
      daemon: [
        ['parley.log.demo', '$JS.API.STREAM.INFO.PARLEY_LOG', 'parley.settled'],
        ['parley.api.entries', 'parley.log.demo', 'parley.live.demo.*', '$SRV.PING'],
      ],
    };
    const mayNot: typeof may = {
      alice: [
        [
          ...[
            'parley.in.alice.any',
            'parley.in.alice+.demo',
            'parley.in.alice~.demo',
            'parley.in.alice!.demo',
            'parley.in.alice#.demo',
          ],
          ...['parley.api.post.alice', 'parley.api.post.alice.other'],
          ...['parley.in.bob.demo', 'parley.api.post.bob', 'parley.api.answer.bob', 'parley.api.post'],
          ...['parley.api.entries', 'parley.api.delete', 'parley.log.demo', 'parley.live.demo.lead'],
          ...['$JS.API.INFO', '$JS.API.STREAM.INFO.PARLEY_LOG', '$JS.API.STREAM.MSG.GET.PARLEY_IN'],
          ...['$JS.API.CONSUMER.CREATE.PARLEY_LOG', '_INBOX.bob.x', 'parley.agent.critic.turn'],
          ...['parley.control.d.stop', '$KV.PARLEY_STATE.migration', 'parley.dead.alice.demo', 'elsewhere'],
          ...['parley.settled', '$JS.API.STREAM.UPDATE.PARLEY_SETTLED'],
        ],
        [
          ...['>', 'parley.>', 'parley.log.*', 'parley.log.other', 'parley.live.other.*', 'parley.live.>'],
          ...['parley.in.>', 'parley.dead.bob.*', 'parley.dead.>', '_INBOX.>', '_INBOX.bob.>', '_INBOX.x'],
          ...['parley.api.post.alice', 'parley.audit.demo', 'parley.agent.critic.turn', '$SRV.PING'],
        ],
      ],
      bob: [['parley.in.alice.x'], ['parley.log.demo']],
      ops: [
        [
          'parley.log.demo',
          'parley.in.alice.demo',
          '$JS.API.STREAM.PURGE.PARLEY_LOG',
          'parley.agent.critic.turn',
        ],
        ['_INBOX.alice.>', 'parley.api.entries', 'parley.in.>'],
      ],
      critic: [
        [
          'parley.agent.lead.reply.o',
          'parley.live.demo.lead',
          'parley.live.demo.critic',
          'parley.in.critic.x',
          ...['parley.api.post.critic', 'parley.api.post.critic.demo', 'parley.api.results.critic.demo'],
          ...[
            'parley.api.blob.alice.demo',
            'parley.api.upload.alice',
            'parley.api.upload',
            'parley.api.blob',
          ],
        ],
        ['parley.agent.lead.turn', 'parley.agent.critic.reply.*', 'parley.log.demo'],
      ],
      daemon: [
        [
          '$JS.API.STREAM.DELETE.PARLEY_LOG',
          '$JS.API.STREAM.CREATE.OTHER',
          '$JS.API.STREAM.SNAPSHOT.PARLEY_LOG',
          'other',
        ],
        ['>', '_INBOX.alice.>', 'parley.in.>'],
      ],
    };
    for (const [name, [publish, subscribe]] of Object.entries(may)) {
      expect(await connections.refused(who(name), publish, subscribe), name).toEqual([]);
    }
    for (const [name, [publish, subscribe]] of Object.entries(mayNot)) {
      expect(await connections.refused(who(name), publish, subscribe), name).toEqual([
        ...publish,
        ...subscribe,
      ]);
    }

    const mine = await openStore('daemon');
    const { log } = await mine.open('demo');
    await log.append(0, batch(0, 3));
    await log.close();
    await mine.saveRow(row('demo'));
    await mine.toolRecords.saveOutput('demo', 'large', 'x'.repeat(300_000));
    expect((await mine.toolRecords.readOutput('demo', 'large'))?.length).toBe(300_000);
    const theirs = await openStore('rival-daemon');
    expect(await theirs.conversations()).toEqual([]);
    expect(await theirs.rows()).toEqual([]);
    expect(await theirs.toolRecords.readOutput('demo', 'large')).toBeNull();
    const { facts, part } = await putBlob(mine, 'a file');
    expect(await textOf(mine, facts.sha256)).toBe('a file');
    expect(await theirs.blobs.facts(facts.sha256)).toBeNull();
    const heard = await connections.listen(who('rival-alice'), 'parley.log.demo');
    const { log: again } = await mine.open('demo');
    await again.append(3, [entryWith(3, part)]);
    await again.close();
    await mine.delete('demo');
    expect(await mine.conversations()).toEqual([]);
    expect(await mine.blobs.facts(facts.sha256)).toBeNull();
    expect(await mine.blobs.sweep('2000-01-01T00:00:00.000Z')).toBe(0);
    await (await connections.connect(who('rival-alice'))).flush();
    expect(heard).toEqual([]);
    await mine.close();
    await theirs.close();
  });

  async function openStore(name: string) {
    const made = await connections.connect(who(name));
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const watch = watchConnection(made, silent, () => undefined);
    return openJetStreamStore({ connection: made, watch, names: createSubjects() });
  }
});

it.each([
  ['PARLEY_DEAD', 'file', /"[^"]*STREAM[^"]*PARLEY_DEAD",? ?/g],
  ['PARLEY_SETTLED', 'file', /"[^"]*settled[^"]*",? ?/gi],
  ['PARLEY_SETTLED', 'jetstream', /"[^"]*settled[^"]*",? ?/gi],
])(
  'a start without rights on %s, with the %s store, names the command that grants them',
  async (stream, store, rights) => {
    const users = await describeUsers(project.root, 'password', { acme: ROLES });
    nats = await startNatsServer({ config: users.config.replaceAll(rights, '') });
    await expect(project.up('--store', store, ...users.flags('daemon', nats.url))).rejects.toThrow(
      new RegExp(`NATS_FORBIDDEN.*${stream}.*nats-config`),
    );
  },
);

it('a daemon that may not follow the appends of its peers names the subject and the command', async () => {
  const users = await describeUsers(project.root, 'password', { acme: ROLES });
  const before = users.config.replace(/(?<=subscribe.*)"parley\.log\.\*",? ?(?=.*"parley\.live)/, '');
  expect(before).not.toBe(users.config);
  nats = await startNatsServer({ config: before });
  const flags = users.flags('daemon', nats.url);
  const daemon = await project.up('--store', 'jetstream', ...flags, '--http', '127.0.0.1:0');
  const made = await clientOf(users.options('ops', nats.url));
  await made.post({ conversation: 'demo', publisher: 'alice', content: 'hello' });
  const reading = new AbortController();
  await fetch(`${daemon.ready.http}/api/conversations/demo/events`, { signal: reading.signal });
  await expect.poll(() => daemon.stderr()).toMatch(/parley\.log\.demo.*parley nats-config/);
  reading.abort();
});
