import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { shared } from '../support/lifetime.ts';
import { entriesOf } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject } from '../support/project.ts';

const DISK = join(import.meta.dirname, '..', 'support', 'full-disk.mjs');

/** POSTS-2 on a real daemon with a simulated full disk, as a real one needs root. */
describe('a full disk', { timeout: 120_000 }, () => {
  const flag = join(tmpdir(), `parley-full-${randomUUID()}`);

  const project = shared(() =>
    openProject({
      nats: {},
      env: { NODE_OPTIONS: `--import ${DISK}`, FULL_DISK: flag },
      script: [{ reply: { text: 'fine' } }],
    }),
  );
  const { nats } = project;
  afterAll(async () => {
    await rm(flag, { force: true });
  });

  itLong(
    'posts that were accepted wait while the disk is full, over a restart too, and are kept in order',
    async () => {
      let daemon = await project.up('--http', '127.0.0.1:0');
      const connection = await openNats({ url: nats.url });
      const ids: string[] = [];
      const post = async (count: number) => {
        for (let n = 0; n < count; n++) {
          const id = `m-${ids.push('')}`;
          ids[ids.length - 1] = id;
          const body = new TextEncoder().encode(JSON.stringify({ id, content: id, includeInContext: false }));
          await connection.jetstream().publish('parley.in.alice.demo', body);
        }
      };
      await post(5);
      let client = await project.connect();
      const kept = async () => (await entriesOf(client, 'demo')).map(({ id }) => id);
      await expect.poll(kept).toEqual(ids);

      await writeFile(flag, '');
      await post(20);
      await expect.poll(() => daemon.stderr()).toContain('ENOSPC');
      expect(await kept()).toEqual(ids.slice(0, 5));
      await daemon.kill9();
      daemon = await project.up('--http', '127.0.0.1:0');
      client = await project.connect();
      await post(5);
      expect(await kept()).toEqual(ids.slice(0, 5));

      const ready = async () => (await fetch(`${daemon.ready.http}/readyz`)).status;
      expect(await ready()).toBe(503);
      const hidden = { publisher: 'alice', includeInContext: false };
      const verbs = [
        () => client.post({ conversation: 'demo', content: 'x', id: 'behind', ...hidden }),
        () => client.post({ conversation: 'other', content: 'x', id: 'elsewhere', ...hidden }),
        () => client.request('status', {}),
        () => client.request('conversations', {}),
      ];
      for (const verb of [...verbs, ...verbs]) {
        const before = performance.now();
        const answer = await verb().catch((error: unknown) => String(error));
        expect(performance.now() - before).toBeLessThan(2_500);
        if (typeof answer === 'string') expect(answer).toContain('ENOSPC');
      }

      await rm(flag);
      await expect.poll(kept).toEqual(ids);
      expect((await client.request('dead', {})).letters).toEqual([]);
      await expect.poll(ready).toBe(200);
      await connection.close();
      expect(await daemon.stop()).toBe(0);
    },
  );
});
