import { afterEach, expect, it } from 'vitest';
import { NOTING, projectPerTest } from '../support/project.ts';
import { createConnections } from '../support/server-users.ts';

/** A publisher posts far beyond its limit into one conversation, so that almost each post is refused. */
const FLOOD = 15_000;
/** At most: more posts than these are refused, whatever the rate adds meanwhile. */
const ACCEPTED = 4_000;

const connections = createConnections();

const project = projectPerTest(NOTING);
const { nats, daemon } = project;
afterEach(async () => {
  await connections.close();
});

it('a publisher whose flood is refused does not keep others from posting, and the daemon gets to its end', async () => {
  const flooder = await connections.connect({ url: nats.url });
  let refused = 0;
  flooder.subscribe('parley.dead.flooder.*', {
    callback: (_, message) => {
      refused += message.json<{ refused?: { count: number } }>().refused?.count ?? 1;
    },
  });
  const streams = (await flooder.jetstreamManager()).streams;
  for (let count = 0; count < FLOOD; count++) flooder.publish('parley.in.flooder.one', 'x');
  await flooder.flush();
  const other = await connections.connect({ url: nats.url });
  const post = JSON.stringify({ content: 'Hello', id: 'h' });
  const answer = await other.request('parley.api.post.bob.quiet', post, { timeout: 45_000 });
  expect(answer.json()).toMatchObject({ id: 'h', duplicate: false });
  await expect.poll(() => refused, { timeout: 60_000, interval: 500 }).toBeGreaterThan(FLOOD - ACCEPTED);
  expect((await streams.info('PARLEY_DEAD')).state.messages).toBeLessThan(100);
  expect(daemon.stderr()).not.toContain('reading posts was interrupted');
}, 120_000);
