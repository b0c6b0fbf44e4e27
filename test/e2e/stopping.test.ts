import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectToNats } from 'nats';
import { describe, expect } from 'vitest';
import { startFakeProvider } from '../support/fake-provider.ts';
import { perTest } from '../support/lifetime.ts';
import { followUntil, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, providerSettings } from '../support/project.ts';

/** DAEMON-DAEMON-3: a stop ends under all conditions. Unfinished work is done at the next start. */
describe('stopping a daemon', { timeout: 60_000 }, () => {
  const project = perTest(() =>
    openProject({ nats: {}, settings: { shutdown: { graceMs: 300 } }, model: () => ({ text: 'fine' }) }),
  );
  const { nats } = project;

  itLong(
    'a stop ends while a post cannot be made durable, and the post is appended at the next start',
    async () => {
      const log = join(project.data, 'conversations', 'stuck', 'log.jsonl');
      await mkdir(log, { recursive: true }); // nothing can be appended to a directory
      const first = await project.up();
      const program = await connectToNats({ servers: nats.url });
      project.defer(() => program.close());
      await program.jetstream().publish('parley.in.alice.stuck', 'hello?');
      await program.jetstream().publish('parley.in.alice.free', 'hello?');
      const client = await project.connect();
      await followUntil(client, 'free', turnsEnded(1)); // one bad log delays no other conversation
      await expect.poll(() => first.stderr()).toContain('could not be made durable');
      expect(await first.stop()).toBe(0);
      expect(first.stderr()).toContain('unsettled posts are read again at the next start');
      expect(first.stderr()).not.toContain('a post could not be processed');

      await rm(log, { recursive: true });
      await project.up();
      const entries = await followUntil(client, 'stuck', turnsEnded(1));
      expect(entries[0]).toMatchObject({ content: 'hello?' });
      const free = await followUntil(client, 'free', turnsEnded(1));
      expect(free.filter(({ type }) => type === 'turn-started').length).toBe(1);
    },
  );

  itLong(
    'a stop ends while a model hangs and the server is frozen, and the next start continues the work',
    async () => {
      let hanging = true;
      const silent = await startFakeProvider(() => (hanging ? { hang: 'after-headers' } : { text: 'fine' }));
      project.defer(() => silent.close());
      const settings = providerSettings(silent.url, { shutdown: { graceMs: 300 } });
      await writeFile(join(project.config, 'parley.yaml'), JSON.stringify(settings));
      const daemon = await project.up();
      const client = await project.connect();
      await client.post({ conversation: 'demo', publisher: 'alice', content: 'hello?' });
      await silent.waitForRequests(1);
      nats.freeze();
      expect(await daemon.stop()).toBe(0);
      expect(daemon.stderr()).not.toMatch(/was not released/);

      nats.thaw();
      hanging = false;
      await project.up();
      const entries = await followUntil(await project.connect(), 'demo', turnsEnded(1));
      expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
    },
  );

  itLong('a stop ends while the server is down', async () => {
    const daemon = await project.up();
    await nats.kill9();
    await expect.poll(() => daemon.stderr()).toMatch(/connection|disconnect/i);
    expect(await daemon.stop()).toBe(0);
  });
});
