import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'nats';
import { describe, expect, it } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { openProject } from '../support/project.ts';

describe('old conversations and dead letters', () => {
  const project = perTest(() => openProject({ nats: {} }));
  const { nats } = project;
  const listed = async () => (await project.parley('ls', '--json')).json().map(({ id }) => id);

  it('old conversations are listed by rm --older-than --dry-run, and without a terminal deleted only with --yes', async () => {
    await project.up();
    for (const id of ['one', 'two']) await project.parley('say', id, 'hello', '--wait');
    expect((await project.parley('rm', '--older-than', '90d', '--yes', '--json')).json()).toEqual([]);
    await sleep(1_200);
    const dry = await project.parley('rm', '--older-than', '1s', '--dry-run', '--json');
    expect(dry.json().map(({ id }) => id)).toEqual(['one', 'two']);
    const unsure = await project.parley('rm', '--older-than', '1s');
    expect(unsure.code).toBe(2);
    expect(unsure.stderr).toContain('--yes');
    expect(await listed()).toEqual(['one', 'two']);
    const removed = await project.parley('rm', '--older-than', '1s', '--yes', '--json');
    expect(removed.json()).toMatchObject([
      { conversation: 'one', deleted: true },
      { conversation: 'two', deleted: true },
    ]);
    expect(await listed()).toEqual([]);
    expect((await project.parley('rm', 'one', '--older-than', '1s')).code).toBe(2);
    expect((await project.parley('rm', '--older-than', 'soon')).code).toBe(2);
  });

  it.each(['file', 'jetstream'])(
    'old conversations and dead letters are deleted at a start with retention and the store %s',
    async (store) => {
      const first = await project.up('--store', store);
      await project.parley('say', 'old', 'hello', '--wait');
      const connection = await connect({ servers: nats.url });
      await connection.jetstream().publish('parley.in.alice.other', '{"content":""}');
      const letters = async () => (await project.parley('dead', 'ls', '--json')).json();
      await expect.poll(letters).toHaveLength(1);
      await sleep(1_200);
      expect(await first.stop()).toBe(0);

      const retention = { conversations: '1s', deadLetters: '1s' };
      const other = await openProject({
        nats: nats.url,
        settings: {
          models: { default: { provider: 'scripted' } },
          retention,
          sharing: { failureTimeoutMs: 1_000 },
        },
      });
      project.defer(() => other.close());
      const second = await other.up('--store', store, '--data', project.data);
      await expect.poll(listed).toEqual([]);
      await expect.poll(letters).toEqual([]);
      expect(second.stderr()).toContain('retention: deleted');
      const manager = await connection.jetstreamManager();
      await expect.poll(async () => (await manager.streams.info('PARLEY_DEAD')).state.messages).toBe(0);
      await connection.close();
      await second.stop();
    },
  );
});
