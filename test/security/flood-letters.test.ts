import { expect, it } from 'vitest';
import { createSubjects, type RefusedRuns } from '../../src/bus/index.ts';
import { ensureStreams, openNats } from '../../src/bus/nats/index.ts';
import { refusedAfter } from '../../src/bus/nats/ingress/refused-posts.ts';
import { startNatsServer } from '../support/nats-server.ts';

/** Two publishers flood in turn, so that each of their posts is a run of its own. */
const LETTERS = 60;
const RUNS = 2_000;
const POSTS = 10_000;

it('after a crash, 120,000 runs in the letters of a flood do not make each later post of its publisher costly', async () => {
  const nats = await startNatsServer();
  const connection = await openNats({ url: nats.url });
  const manager = await connection.jetstreamManager();
  const subjects = createSubjects();
  await ensureStreams(manager, subjects, {});
  const stream = connection.jetstream();
  await stream.publish('parley.in.mallory.demo', 'x');
  const { created } = await manager.streams.info('PARLEY_IN');
  const before = Date.now();
  for (let letter = LETTERS - 1; letter >= 0; letter--) {
    const runs = Array.from({ length: RUNS }, (_, place) => {
      const sequence = 2 * (letter * RUNS + place) + 1;
      return [sequence, sequence] as const;
    });
    const refused: RefusedRuns = { stream: created, count: RUNS, bytes: 1, from: 1, to: 2, runs };
    await stream.publish('parley.dead.mallory._several', JSON.stringify({ original: '', refused }));
  }
  const wasRefused = await refusedAfter({ connection, manager, subjects }, { stream: created, sequence: 0 });
  const last = 2 * LETTERS * RUNS - 1;
  const named = [1, 3, 4_001, last].map((sequence) => wasRefused('mallory', sequence, before));
  expect(named).toEqual([true, true, true, true]);
  const others = [2, 4_000, last + 1].map((sequence) => wasRefused('mallory', sequence, before));
  expect([...others, wasRefused('bob', 1, before), wasRefused('mallory', 1, before + 600_000)]).toEqual(
    Array(5).fill(false),
  );
  const began = performance.now();
  for (let place = 0; place < POSTS; place++) wasRefused('mallory', last + place + 2, before);
  expect(performance.now() - began).toBeLessThan(2_000);
  await connection.close();
  await nats.stop();
}, 120_000);

it('a post with a dead letter is not decided on again when it is read again, except by a replay', async () => {
  const nats = await startNatsServer();
  const connection = await openNats({ url: nats.url });
  const manager = await connection.jetstreamManager();
  const subjects = createSubjects();
  await ensureStreams(manager, subjects, {});
  const stream = connection.jetstream();
  const before = Date.now();
  const { seq: sequence } = await stream.publish('parley.in.bob.demo', 'x');
  const { created } = await manager.streams.info('PARLEY_IN');
  const ingress = { stream: created, sequence };
  await stream.publish('parley.dead.bob.demo', JSON.stringify({ original: 'x', ingress }));
  const start = { stream: created, sequence: 0 };
  const isRefused = async (publisher: string, isReplay: boolean) =>
    (await refusedAfter({ connection, manager, subjects }, start, isReplay))(publisher, sequence, before);
  const answers = [
    await isRefused('bob', false),
    await isRefused('carol', false),
    await isRefused('bob', true),
  ];
  expect(answers).toEqual([true, false, false]);
  await connection.close();
  await nats.stop();
});
