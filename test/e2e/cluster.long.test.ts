import { connect, type StreamInfo } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openFileStore } from '../../src/persistence/jsonl/index.ts';
import { runChaos } from '../chaos/run.ts';
import { createSchedule, type Fault } from '../chaos/schedule.ts';
import { batch } from '../contract/samples.ts';
import { launcher } from '../support/cli.ts';
import { CLUSTER_SERVER, startCluster, type TestCluster } from '../support/cluster.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { openProject, type Project } from '../support/project.ts';

const isFull = process.env.PARLEY_FULL === '1';
const JETSTREAM = ['--store', 'jetstream'];

/** Skipped without a nats-server version on which replicas are safe. */
describe.skipIf(CLUSTER_SERVER === null)('a cluster of three nats-servers', () => {
  let cluster: TestCluster;
  let project: Project;

  beforeAll(async () => {
    cluster = await startCluster(CLUSTER_SERVER as string);
    project = await openProject({ nats: cluster.url });
  });
  afterAll(async () => {
    await project?.close();
    await cluster?.stop();
  });

  async function streams(): Promise<readonly StreamInfo[]> {
    const connection = await connect({ servers: cluster.url.split(',') });
    try {
      return await (await connection.jetstreamManager()).streams.list().next();
    } finally {
      await connection.close();
    }
  }

  const replicas = async () =>
    Object.fromEntries((await streams()).map(({ config }) => [config.name, config.num_replicas]));
  const EACH = ['IN', 'DEAD', 'LOG', 'AUDIT'].map((name) => `PARLEY_${name}`);
  const all = (count: number) =>
    Object.fromEntries([...EACH, 'KV_PARLEY_STATE', 'OBJ_PARLEY_OUTPUT'].map((name) => [name, count]));

  it('streams in a cluster have one replica by default', async () => {
    const daemon = await project.up(...JETSTREAM);
    expect((await project.parley('say', 'team', 'Hello', '--wait')).code).toBe(0);
    expect(await daemon.stop()).toBe(0);
    expect(await replicas()).toMatchObject(all(1));
  });

  it('streams have as many replicas as jetstream.replicas, also existing ones and those that an operator changed', async () => {
    const before = await streams();
    const first = await project.parley('show', 'team', '--json').catch(() => null);
    for (const changed of [null, 'PARLEY_LOG']) {
      if (changed !== null) {
        const connection = await connect({ servers: cluster.url.split(',') });
        const manager = await connection.jetstreamManager();
        await manager.streams.update(changed, { num_replicas: 1 });
        await connection.close();
      }
      const project3 = untilTestEnds(await projectWith('3'));
      const daemon = await project3.up(...JETSTREAM);
      const found = await replicas();
      expect(Object.values(found).every((count) => count === 3)).toBe(true);
      expect(found).toMatchObject(all(3));
      const shown = await project3.parley('show', 'team', '--json');
      expect(shown.json().filter(({ type }) => type === 'turn-started')).toHaveLength(1); // not answered again
      expect(await daemon.stop()).toBe(0);
    }
    const created = (infos: readonly StreamInfo[]) =>
      infos.map(({ config, created }) => [config.name, created]);
    expect(created(await streams()).sort()).toEqual(created(before).sort()); // posts are recognized by it
    expect(first?.code).not.toBe(0); // no daemon ran
  });

  it('more replicas than the cluster has servers are refused with the remedy', async () => {
    const project5 = untilTestEnds(await projectWith('5'));
    await expect(project5.up(...JETSTREAM)).rejects.toThrow(
      /the cluster cannot keep 5 replicas of stream PARLEY_IN.*jetstream\.replicas/s,
    );
  });

  it('the streams that `parley migrate` creates have as many replicas as jetstream.replicas', async () => {
    const project3 = untilTestEnds(await openProject({ settings: { jetstream: { replicas: 3 } } }));
    const store = await openFileStore(project3.data);
    const { log } = await store.open('moved');
    await log.append(0, batch(0, 3));
    await log.close();
    await store.close();
    const to = ['--to', 'jetstream', '--nats', cluster.url, '--prefix', 'moved'];
    const moved = await project3.parley(
      'migrate',
      '--from',
      `file:${project3.data}`,
      ...to,
      '--config',
      project3.config,
    );
    expect(moved, moved.stderr).toMatchObject({ code: 0 });
    const made = ['MOVED_LOG', 'MOVED_AUDIT', 'KV_MOVED_STATE', 'OBJ_MOVED_OUTPUT'];
    const found = await replicas();
    expect(made.map((name) => found[name])).toEqual([3, 3, 3, 3]);
  });

  async function projectWith(count: string): Promise<Project> {
    return openProject({ nats: cluster.url, env: { PARLEY_JETSTREAM_REPLICAS: count } });
  }
});

describe('replicas without a cluster', () => {
  const refused =
    /is not in a cluster: it cannot keep 3 replicas.*jetstream\.replicas|cannot keep 3 replicas of its streams safely.*2\.10\.27/s;

  it('replicas without a cluster are refused before anything is created, with the remedy', async () => {
    const project = untilTestEnds(await openProject({ env: { PARLEY_JETSTREAM_REPLICAS: '3' } }));
    await expect(project.up()).rejects.toThrow(refused);
  });

  it('replicas without a cluster are refused by `parley migrate`, too', async () => {
    const nats = untilTestEnds(await startNatsServer());
    const project = untilTestEnds(await openProject({ settings: { jetstream: { replicas: 3 } } }));
    await (await openFileStore(project.data)).close();
    const from = ['--from', `file:${project.data}`, '--to', 'jetstream', '--nats', nats.url];
    const moved = await project.parley('migrate', ...from, '--config', project.config);
    expect([moved.code, moved.stderr]).toEqual([1, expect.stringMatching(refused)]);
    const connection = await connect({ servers: nats.url });
    expect(await (await connection.jetstreamManager()).streams.list().next()).toEqual([]);
    await connection.close();
  });
});

describe.skipIf(CLUSTER_SERVER === null)('a cluster whose leader is killed repeatedly', () => {
  it('no post and no entry is lost while leaders and daemons are killed', { timeout: 240_000 }, async () => {
    const count = isFull ? 8 : 4;
    const options = {
      seed: 21,
      seconds: 2 + 4 * count,
      crashPoints: [],
      daemons: 2,
      servers: 3,
      conversations: 8,
    };
    const kills: Fault[] = [];
    for (let n = 0; n < count; n++) {
      const atMs = 2_000 + n * 4_000;
      kills.push({ kind: 'server-kill', atMs, lastsMs: 900, server: n % 3, leader: true });
      if (n === count - 1) break;
      kills.push({ kind: 'daemon-kill', atMs: atMs + 1_500, lastsMs: 300, daemon: n % 2, onceReady: true });
    }
    const report = await runChaos({
      schedule: { ...createSchedule(options), seconds: 120, faults: kills }, // all of them, however slow the machine is
      env: { ...process.env, NATS_BIN: CLUSTER_SERVER as string },
      say: () => undefined,
      launcher,
      store: 'jetstream',
      failureTimeoutMs: 3_000,
      keep: null,
      signal: new AbortController().signal,
    });
    expect(report.violations).toEqual([]);
    expect(report.faults).toEqual({ 'server-kill': count, 'daemon-kill': count - 1 });
    expect(report.counts.posts).toBeGreaterThan(isFull ? 100 : 40);
  });
});
