import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { entriesOf, openSite, type Site } from '../support/daemon.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

describe('a deleted conversation', () => {
  let nats: TestNatsServer;
  let site: Site;
  beforeEach(async () => {
    nats = await startNatsServer();
    site = await openSite({ nats: nats.url });
  });
  afterEach(async () => {
    await site.close();
    await nats.stop();
  });

  it('a conversation stays deleted if the daemon is killed at once and its position in the stream is lost (POSTS-4)', async () => {
    const first = await site.up();
    await site.parley('say', 'secret', 'forget this', '--wait');
    await site.parley('say', 'kept', 'keep this', '--wait');
    expect((await site.parley('rm', 'secret')).code).toBe(0);
    await first.kill9();
    await rm(join(site.data, 'ingress.json'), { force: true });

    const second = await site.up();
    await site.parley('say', 'kept', 'the stream is read again up to here', '--wait');
    const listed = (await site.parley('ls', '--json')).json().map(({ id }) => id);
    expect(listed).toEqual(['kept']);

    await site.parley('say', 'secret', 'a new beginning', '--wait');
    const entries = await entriesOf(await site.client(), 'secret');
    expect(entries[0]).toMatchObject({ index: 0, content: 'a new beginning' });
    expect(await second.stop()).toBe(0);
  });
});
