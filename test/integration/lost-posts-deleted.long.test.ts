import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import { perTest } from '../support/lifetime.ts';
import { openProject } from '../support/project.ts';
import { postOnStream } from '../support/stream-post.ts';
import { until } from '../unit/bus/support.ts';

const SLOW = { timeout: 90_000 };

describe.each(['file', 'jetstream'] as const)(
  'deletions in a store of kind %s after the ingress stream lost its newest posts',
  (store) => {
    let client: ParleyClient;
    const project = perTest(() => openProject({ nats: {} }));
    const { nats } = project;
    beforeEach(async () => {
      client = await connect({ url: nats.url });
    });

    const directory = () => join(project.root, 'a');
    const up = () => project.up('--data', directory(), '--store', store);
    const say = (conversation: string) => postOnStream(nats.url, conversation, 'hello');
    const remove = (conversation: string) => client.request('delete', { conversation });
    const listed = async () => (await client.request('conversations', {})).conversations.map(({ id }) => id);
    const folder = () => join(nats.directory, 'store', 'jetstream', '$G', 'streams', 'PARLEY_IN');
    const kept = () => join(nats.directory, 'kept');
    async function keep(): Promise<void> {
      await nats.kill9();
      await cp(folder(), kept(), { recursive: true });
      await nats.restart();
    }
    async function lose(): Promise<void> {
      await nats.kill9();
      await rm(folder(), { recursive: true });
      await cp(kept(), folder(), { recursive: true });
      await nats.restart();
    }

    it(
      'deletions do not refuse new posts after a restart, and what survived stays deleted',
      SLOW,
      async () => {
        let daemon = await up();
        await say('one');
        await say('old');
        await remove('old');
        await daemon.stop();
        await keep();
        daemon = await up();
        for (const conversation of ['x', 'y', 'x', 'y', 'x']) await say(conversation);
        await remove('x');
        await daemon.kill9();
        await lose();
        daemon = await up();
        await say('x');
        await remove('y'); // its log has posts that the stream has lost
        await say('y');
        expect(await listed()).toEqual(['one', 'x', 'y']);
        expect(await daemon.stop()).toBe(0);
      },
    );

    it('deletions do not refuse new posts of a conversation that is in memory', SLOW, async () => {
      let daemon = await up();
      await say('one');
      await daemon.stop();
      await keep();
      daemon = await up();
      for (const conversation of ['y', 'x', 'x', 'x']) await say(conversation);
      await remove('x');
      await say('x');
      await lose();
      await until('reading is interrupted', async () =>
        daemon.stderr().includes('reading posts was interrupted'),
      );
      await say('z');
      await say('x');
      expect(await listed()).toEqual(['one', 'x', 'y', 'z']);
      expect(await daemon.stop()).toBe(0);
    });
  },
);
