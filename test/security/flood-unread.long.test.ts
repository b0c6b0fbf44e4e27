import type { NatsConnection } from 'nats';
import { afterEach, expect, it } from 'vitest';
import { NOTING, projectPerTest } from '../support/project.ts';
import { createConnections } from '../support/server-users.ts';

/** A publisher sends posts as fast as the server takes them, without waiting for acknowledgements. */
const FLOOD = 300_000;
/** Of the shipped limits: 1,200 posts at once, 1,200 a minute after that, and 20 refusals a minute with a letter each. */
const MOST_ACCEPTED = 6_000;
const MOST_LETTERS = 400;

interface Letter {
  readonly ingress?: { readonly sequence: number };
  readonly refused?: { readonly count: number; readonly runs: readonly (readonly [number, number])[] };
}

const connections = createConnections();

const project = projectPerTest(NOTING);
const { nats, daemon } = project;
afterEach(async () => {
  await connections.close();
});

async function flood(count: number, body: (place: number) => string = (place) => `post ${place}`) {
  const every = Math.ceil(1_000_000 / (body(0).length + 500));
  const mallory = await connections.connect({ url: nats.url });
  for (let place = 0; place < count; place++) {
    mallory.publish(`parley.in.mallory.flood-${place % 20}`, body(place));
    if (place % every === 0) await mallory.flush();
  }
  await mallory.flush();
}

/** Follows the letters of the flood. */
async function countRefused() {
  const witness = await connections.connect({ url: nats.url });
  const counts = { refused: 0, letters: 0 };
  witness.subscribe('parley.dead.mallory.*', {
    callback: (_, message) => {
      counts.refused += message.json<Letter>().refused?.count ?? 1;
      counts.letters += 1;
    },
  });
  await witness.flush();
  return { counts, streams: (await witness.jetstreamManager()).streams };
}

async function expectAnswersDuring(flooding: Promise<unknown>, bob: NatsConnection): Promise<void> {
  let isOver = false;
  const over = flooding.finally(() => {
    isOver = true;
  });
  for (let place = 0; !isOver || place < 3; place++) {
    const post = JSON.stringify({ content: 'Hello', id: `h${place}` });
    const answer = await bob.request('parley.api.post.bob.quiet', post, { timeout: 10_000 });
    expect(answer.json()).toMatchObject({ id: `h${place}`, duplicate: false });
  }
  await over;
}

it('a publisher that sends 300,000 posts at once does not keep another from being answered, or fill a stream', async () => {
  const { counts, streams } = await countRefused();
  const bob = await connections.connect({ url: nats.url });
  bob.publish('parley.in.bob.quiet', '{"unknown":1}');
  await expect.poll(async () => (await streams.info('PARLEY_DEAD')).state.messages).toBe(1);
  await expectAnswersDuring(flood(FLOOD), bob);
  await expect
    .poll(() => counts.refused, { timeout: 30_000, interval: 200 })
    .toBeGreaterThan(FLOOD - MOST_ACCEPTED);
  expect(counts.letters).toBeLessThan(MOST_LETTERS);
  expect((await streams.getMessage('PARLEY_DEAD', { seq: 1 })).subject).toBe('parley.dead.bob.quiet');
  const held = async () => (await streams.info('PARLEY_IN')).state.messages;
  await expect.poll(held, { timeout: 30_000, interval: 200 }).toBeLessThan(10_000);
}, 120_000);

it('posts of another publisher in the midst of a flood are all taken, in their order', async () => {
  const bob = await connections.connect({ url: nats.url });
  const flooding = flood(FLOOD / 2);
  const ids = Array.from({ length: 40 }, (_, place) => `b${place}`);
  for (const id of ids) {
    await bob
      .jetstream()
      .publish('parley.in.bob.quiet', JSON.stringify({ content: 'Hello', id }), { timeout: 20_000 });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await flooding;
  const client = await project.connect();
  const taken = async () => {
    const { entries } = await client
      .request('entries', { conversation: 'quiet' })
      .catch(() => ({ entries: [] }));
    return entries.flatMap((entry) => (entry.type === 'message' && entry.role === 'user' ? [entry.id] : []));
  };
  await expect.poll(taken, { timeout: 30_000, interval: 200 }).toEqual(ids);
}, 120_000);

it('a flood of long posts is refused with few letters, and the stream takes the posts of another publisher meanwhile', async () => {
  const { counts } = await countRefused();
  const bob = await connections.connect({ url: nats.url });
  const long = 'x'.repeat(900_000);
  await expectAnswersDuring(
    flood(300, () => long),
    bob,
  );
  await expect.poll(() => counts.refused, { timeout: 60_000, interval: 200 }).toBeGreaterThan(300 - 60);
  expect(counts.letters).toBeLessThan(100);
  expect(daemon.stderr()).not.toContain('is full');
}, 120_000);

it('a daemon that is killed in the midst of a flood loses no post, and refuses none of them twice', async () => {
  const { counts, streams } = await countRefused();
  const flooding = flood(100_000);
  await expect.poll(() => counts.refused, { timeout: 60_000, interval: 20 }).toBeGreaterThan(1_000);
  daemon.signal('SIGKILL');
  await daemon.exited;
  await flooding;
  await project.up();
  const held = async () => (await streams.info('PARLEY_IN')).state.messages;
  await expect.poll(held, { timeout: 60_000, interval: 200 }).toBeLessThan(10_000);
  const refusedRuns = async () => {
    const { state } = await streams.info('PARLEY_DEAD');
    const refused: (readonly [number, number])[] = [];
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const { refused: many, ingress } = (await streams.getMessage('PARLEY_DEAD', { seq })).json<Letter>();
      refused.push(
        ...(many?.runs ?? []),
        ...(ingress ? [[ingress.sequence, ingress.sequence] as const] : []),
      );
    }
    return refused.sort(([one], [other]) => one - other);
  };
  const client = await project.connect();
  const undecided = async () => {
    const refused = await refusedRuns();
    const inLogs = new Set<number>();
    for (let place = 0; place < 20; place++) {
      const { entries } = await client.request('entries', { conversation: `flood-${place}` });
      for (const entry of entries)
        if (entry.type === 'message' && entry.ingressSequence) inLogs.add(entry.ingressSequence);
    }
    const isNamed = (sequence: number) =>
      refused.some(([first, last]) => first <= sequence && sequence <= last);
    return Array.from({ length: 100_000 }, (_, place) => place + 1).filter(
      (sequence) => !inLogs.has(sequence) && !isNamed(sequence),
    );
  };
  await expect.poll(undecided, { timeout: 60_000, interval: 500 }).toEqual([]);
  const refused = await refusedRuns();
  const overlaps = refused.filter(([first], place) => place > 0 && first <= (refused[place - 1]?.[1] ?? 0));
  expect(overlaps).toEqual([]);
}, 180_000);
