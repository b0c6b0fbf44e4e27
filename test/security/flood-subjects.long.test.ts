import type { JetStreamManager } from 'nats';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { ensureStreams, type NatsConnection, openNats } from '../../src/bus/nats/index.ts';
import { skipAhead } from '../../src/bus/nats/ingress/flood.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

/** More subjects than a server names in one answer. */
const CONVERSATIONS = 100_003;
const subjects = createSubjects();

let nats: TestNatsServer;
let connection: NatsConnection;
let manager: JetStreamManager;

beforeEach(async () => {
  nats = await startNatsServer();
  connection = await openNats({ url: nats.url });
  manager = await connection.jetstreamManager();
  await ensureStreams(manager, subjects, {});
  for (let place = 0; place < CONVERSATIONS; place++) {
    connection.publish(`parley.in.mallory.c${place}`, 'x');
    if (place % 5_000 === 0) await connection.flush();
  }
  await expect.poll(storedLast, { timeout: 60_000 }).toBe(CONVERSATIONS);
}, 90_000);
afterEach(async () => {
  await connection.close();
  await nats.stop();
});

async function storedLast(): Promise<number> {
  return (await manager.streams.info('PARLEY_IN')).state.last_seq;
}

/** `act` happens after the first answer that lists subjects. */
function betweenPages(act: () => Promise<unknown>): void {
  const streams = manager.streams as unknown as {
    _request(subject: string, options?: { readonly subjects_filter?: string }): Promise<unknown>;
  };
  const request = streams._request.bind(streams);
  let isDone = false;
  streams._request = async (subject, options) => {
    const answer = await request(subject, options);
    if (!isDone && options?.subjects_filter) {
      isDone = true;
      await act();
    }
    return answer;
  };
}

async function skippedPosts(of: number): Promise<boolean> {
  const { created } = await manager.streams.info('PARLEY_IN');
  const after = { stream: created, sequence: 10, time: 0 };
  const skip = await skipAhead({ connection, manager, subjects }, after, () => true);
  return skip !== null && skip.last >= of && !skip.others.some(({ sequence }) => sequence === of);
}

it('a post that comes while the subjects of a flood are listed is not taken for one of the flood', async () => {
  betweenPages(() => connection.jetstream().publish('parley.in.bob.demo', 'Hello'));
  expect(await skippedPosts(CONVERSATIONS + 1)).toBe(false);
}, 60_000);

it('a post is not taken for one of a flood when settled posts are purged while subjects are listed', async () => {
  const names = ['zoe.demo', ...Array.from({ length: 20 }, (_, place) => `zz.c${place}`)];
  for (const name of names) await connection.jetstream().publish(`parley.in.${name}`, 'Hello');
  betweenPages(() => manager.streams.purge('PARLEY_IN', { seq: 10 }));
  expect(await skippedPosts(CONVERSATIONS + 1)).toBe(false);
}, 60_000);
