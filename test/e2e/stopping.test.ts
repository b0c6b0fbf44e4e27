import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectToNats } from 'nats';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { followUntil, openSite, providerSettings, type Site, turnsEnded } from '../support/daemon.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

/** DAEMON-DAEMON-3: a stop ends under all conditions. Unfinished work is done at the next start. */
describe('stopping a daemon', { timeout: 60_000 }, () => {
  let nats: TestNatsServer;
  let provider: FakeProvider;
  let site: Site;

  beforeEach(async () => {
    nats = await startNatsServer();
    provider = await startFakeProvider(() => ({ text: 'fine' }));
    site = await openSite({
      nats: nats.url,
      settings: providerSettings(provider.url, { shutdown: { graceMs: 300 } }),
    });
  });
  afterEach(async () => {
    await site.close();
    await provider.close();
    await nats.stop();
  });

  it('a stop ends while a post cannot be made durable, and the post is appended at the next start', async () => {
    const log = join(site.data, 'conversations', 'stuck', 'log.jsonl');
    await mkdir(log, { recursive: true }); // nothing can be appended to a directory
    const first = await site.up();
    const program = await connectToNats({ servers: nats.url });
    site.defer(() => program.close());
    await program.jetstream().publish('parley.in.alice.stuck', 'hello?');
    await program.jetstream().publish('parley.in.alice.free', 'hello?');
    const client = await site.client();
    await followUntil(client, 'free', turnsEnded(1)); // one bad log delays no other conversation
    await expect.poll(() => first.stderr(), { timeout: 10_000 }).toContain('could not be made durable');
    expect(await first.stop()).toBe(0);
    expect(first.stderr()).toContain('unsettled posts are read again at the next start');
    expect(first.stderr()).not.toContain('a post could not be processed');

    await rm(log, { recursive: true });
    await site.up();
    const entries = await followUntil(client, 'stuck', turnsEnded(1));
    expect(entries[0]).toMatchObject({ content: 'hello?' });
    const free = await followUntil(client, 'free', turnsEnded(1));
    expect(free.filter(({ type }) => type === 'turn-started').length).toBe(1);
  });

  it('a stop ends while a model hangs and the server is frozen, and the next start continues the work', async () => {
    let hanging = true;
    const silent = await startFakeProvider(() => (hanging ? { hang: 'after-headers' } : { text: 'fine' }));
    site.defer(() => silent.close());
    const settings = providerSettings(silent.url, { shutdown: { graceMs: 300 } });
    await writeFile(join(site.config, 'parley.yaml'), JSON.stringify(settings));
    const daemon = await site.up();
    const client = await site.client();
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'hello?' });
    await silent.waitForRequests(1);
    nats.freeze();
    expect(await daemon.stop()).toBe(0);
    expect(daemon.stderr()).not.toMatch(/was not released/);

    nats.thaw();
    hanging = false;
    await site.up();
    const entries = await followUntil(await site.client(), 'demo', turnsEnded(1));
    expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
  });

  it('a stop ends while the server is down', async () => {
    const daemon = await site.up();
    await nats.kill9();
    await expect.poll(() => daemon.stderr(), { timeout: 10_000 }).toMatch(/connection|disconnect/i);
    expect(await daemon.stop()).toBe(0);
  });
});
