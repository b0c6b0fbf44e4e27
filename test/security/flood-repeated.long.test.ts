import { expect, it } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { NOTING } from '../support/project.ts';
import { startGuarded } from '../support/server-users.ts';

/** A publisher floods, and has a reason for which the daemon would have to read each of its posts. */
const FLOOD = 100_000;
/** Of the shipped limits, as in `flood-unread.long.test.ts`. */
const MOST_ACCEPTED = 6_000;
const USERS = {
  daemon: { role: 'daemon' },
  alice: { role: 'publisher', conversations: 'all' },
  bob: { role: 'publisher', conversations: ['demo'] },
};

const project = perTest(() => startGuarded(NOTING, USERS));

const { connectAs } = project;

/** Resolves when almost all posts of the flood were refused with shared letters. */
async function flood(body: (place: number) => string) {
  const alice = await connectAs('alice');
  let refused = 0;
  alice.subscribe('parley.dead.alice._several', {
    callback: (_, message) => {
      refused += message.json<{ refused: { count: number } }>().refused.count;
    },
  });
  for (let place = 0; place < FLOOD; place++) {
    alice.publish(`parley.in.alice.flood-${place % 20}`, body(place));
    if (place % 2_000 === 0) await alice.flush();
  }
  await expect.poll(() => refused, { timeout: 60_000, interval: 100 }).toBeGreaterThan(FLOOD - MOST_ACCEPTED);
}

async function bobIsAnswered() {
  const bob = await connectAs('bob');
  const answer = await bob.request('parley.api.post.bob.demo', '{"id":"b","content":"x"}', {
    timeout: 10_000,
  });
  expect(answer.json()).toMatchObject({ id: 'b', duplicate: false });
}

it('a publisher that sends one post 100,000 times is refused beyond its rate, and another is answered', async () => {
  const flooding = flood(() => '{"id":"same","content":"x"}');
  await bobIsAnswered();
  await flooding;
}, 120_000);

it('a publisher that waits for answers during its flood gets all of them, and is not read for that', async () => {
  const alice = await connectAs('alice');
  let isOver = false;
  const codes = new Set<string>();
  const askOn = async (lane: number) => {
    for (let place = 0; !isOver || !codes.has('RATE_LIMITED'); place++) {
      const body = JSON.stringify({ id: `a${lane}-${place}`, content: 'x' });
      const answer = await alice.request('parley.api.post.alice.asked', body, { timeout: 30_000 });
      codes.add(answer.json<{ code?: string }>().code ?? 'answered');
    }
  };
  const asking = Promise.all([1, 2, 3, 4].map(askOn));
  const flooding = flood((place) => JSON.stringify({ id: `i${place}`, content: 'x' })).finally(() => {
    isOver = true;
  });
  await bobIsAnswered();
  await flooding;
  await asking;
  expect(codes).toContain('RATE_LIMITED');
}, 120_000);
