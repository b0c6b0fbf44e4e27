import { expect, it } from 'vitest';
import { createSubjects, type RefusedRuns } from '../../src/bus/index.ts';
import { ensureStreams, openNats } from '../../src/bus/nats/index.ts';
import { refusedAfter } from '../../src/bus/nats/ingress/dead-letters.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { collecting, collector, startBroker, until } from '../unit/bus/support.ts';

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
  const letterOf = await refusedAfter({ connection, manager, subjects }, { stream: created, sequence: 0 });
  const last = 2 * LETTERS * RUNS - 1;
  const named = [1, 3, 4_001, last].map((sequence) => letterOf('mallory', sequence, before));
  expect(named).toEqual(Array(4).fill('shared'));
  const others = [2, 4_000, last + 1].map((sequence) => letterOf('mallory', sequence, before));
  expect([...others, letterOf('bob', 1, before), letterOf('mallory', 1, before + 600_000)]).toEqual(
    Array(5).fill(null),
  );
  const began = performance.now();
  for (let place = 0; place < POSTS; place++) letterOf('mallory', last + place + 2, before);
  expect(performance.now() - began).toBeLessThan(2_000);
  await connection.close();
  await nats.stop();
}, 120_000);

it('a post with a dead letter is not delivered when it is read again, except by a replay, which reports the letter', async () => {
  const broker = await startBroker();
  const daemon = await broker.bus();
  const stream = broker.plain.jetstream();
  for (const subject of ['bob.demo', 'carol.demo', 'no$name.demo'])
    await stream.publish(`parley.in.${subject}`, 'x');
  const first = collector((delivery) =>
    delivery.publisher === 'carol'
      ? Promise.reject(new Error('not settled'))
      : daemon.publishDead(delivery, { code: 'X', message: 'x' }, '').then(() => undefined),
  );
  await daemon.startIngress(first.options());
  await until('all were delivered', () => first.deliveries.length === 3);
  await daemon.stopIngress();
  await broker.plain.jetstreamManager().then(({ streams }) => streams.delete('PARLEY_SETTLED'));

  const again = await collecting(daemon);
  await until('all are settled', () => again.positions.at(-1)?.sequence === 3);
  expect(again.deliveries.map(({ publisher }) => publisher)).toEqual(['carol']);
  await daemon.stopIngress();

  const replayed = collector();
  await daemon.startIngress({ ...replayed.options(), isReplay: true });
  await until('all were delivered again', () => replayed.deliveries.length === 3);
  expect(replayed.deliveries.map(({ publisher, hasLetter }) => [publisher, hasLetter])).toEqual([
    ['bob', true],
    ['carol', undefined],
    ['no$name', true],
  ]);
  await broker.stop();
});
