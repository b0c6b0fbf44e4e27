import { setTimeout } from 'node:timers/promises';
import { connect } from 'nats';
import { describe, expect, it } from 'vitest';
import { CLUSTER_SERVER, startCluster } from '../support/cluster.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { openProject, type Project } from '../support/project.ts';

let project: Project;

/** The exit code, and the checks of servers by the last part of their name. */
async function doctor(...args: readonly string[]) {
  const ran = await project.parley('doctor', '--json', '--config', project.config, ...args);
  const checks = ran.json() as unknown as { name: string; status: string; message: string }[];
  const servers = checks.filter(({ name }) => name.startsWith('server '));
  return { code: ran.code, servers: servers.map(({ status, message }) => [status, message]) };
}

describe.skipIf(CLUSTER_SERVER === null)('parley doctor and a cluster of nats-servers', () => {
  it('doctor fails if a stream or the cluster has no leader, and not if one of three servers is down', async () => {
    const cluster = await startCluster(CLUSTER_SERVER as string);
    const env = { PARLEY_JETSTREAM_REPLICAS: '3' };
    project = untilTestEnds(await openProject({ nats: cluster.url, env }));
    project.defer(() => cluster.stop());
    const daemon = await project.up();
    const look = () => doctor('--nats', cluster.url);
    await expect.poll(look).toEqual({ code: 0, servers: three('ok', /^reachable$/) });

    const [down, up] = [
      ['warn', expect.stringMatching(/cannot connect/)],
      ['ok', 'reachable'],
    ];
    const third = cluster.servers[2];
    await third?.end('SIGKILL');
    await expect.poll(look, { timeout: 40_000 }).toEqual({ code: 0, servers: [up, up, down] });
    await third?.start();
    await expect.poll(look, { timeout: 40_000 }).toEqual({ code: 0, servers: [up, up, up] });

    const holder = await keptOnOne('PARLEY_DEAD', cluster.url);
    await cluster.servers.find(({ name }) => name === holder)?.end('SIGKILL');
    const lost = (what: string) => [
      'fail',
      expect.stringMatching(new RegExp(`JetStream cannot be used: .*${what}`)),
    ];
    const one = { code: 1, servers: expect.arrayContaining([lost('no leader for PARLEY_DEAD')]) };
    await expect.poll(look, { timeout: 40_000 }).toEqual(one);

    await cluster.servers.find(({ name }) => name !== holder)?.end('SIGKILL');
    const none = { code: 1, servers: expect.arrayContaining([lost('the cluster has no leader')]) };
    await expect.poll(look, { timeout: 40_000 }).toEqual(none);
    daemon.signal('SIGKILL');
    await daemon.exited;
  });
});

/** Leaves one replica of a stream. Returns its server. */
async function keptOnOne(stream: string, url: string): Promise<string | undefined> {
  const connection = await connect({ servers: url.split(',') });
  try {
    const manager = await connection.jetstreamManager();
    await manager.streams.update(stream, { num_replicas: 1 });
    // The leader can change while the other replicas are removed.
    const alone = async () => (await manager.streams.info(stream)).cluster;
    await expect.poll(async () => (await alone())?.replicas?.length ?? 0).toBe(0);
    await setTimeout(2_000);
    return (await alone())?.leader;
  } finally {
    await connection.close();
  }
}

const three = (status: string, message: RegExp) =>
  Array.from({ length: 3 }, () => [status, expect.stringMatching(message)]);

describe('parley doctor and one nats-server', () => {
  it.each([
    ['a user without rights to JetStream', 'permissions: { publish: "parley.>", subscribe: ">" }', 'A'],
    ['a user of an account without JetStream', '', 'B'],
  ])('doctor cannot check JetStream as %s, and does not fail for that', async (_, rights, account) => {
    const users = `users: [{ user: op, password: geheim, ${rights} }]`;
    const accounts = { A: 'jetstream: enabled', B: '' };
    const blocks = Object.entries(accounts).map(
      ([name, own]) => `${name} { ${[own, name === account ? users : ''].filter(Boolean).join(', ')} }`,
    );
    const nats = await startNatsServer({ config: `accounts { ${blocks.join('\n')} }` });
    project = untilTestEnds(await openProject());
    project.defer(() => nats.stop());
    const { servers } = await doctor('--nats', nats.url.replace('//', '//op:geheim@'));
    expect(servers).toEqual([['ok', expect.stringMatching(/^reachable; this user may not check JetStream/)]]);
  });

  it('doctor fails if JetStream is not enabled', async () => {
    const nats = await startNatsServer({ plain: true });
    project = untilTestEnds(await openProject());
    project.defer(() => nats.stop());
    const { code, servers } = await doctor('--nats', nats.url);
    expect(servers).toEqual([['fail', expect.stringMatching(/JetStream cannot be used: .*not enabled/)]]);
    expect(code).toBe(1);
  });
});
