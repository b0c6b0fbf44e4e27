import { expect, it } from 'vitest';
import { watchConnection } from '../../src/bus/nats/index.ts';
import type { FilePart } from '../../src/conversation/index.ts';
import { openBroker } from '../../src/persistence/jetstream/broker.ts';
import { openJetStreamStore } from '../../src/persistence/jetstream/index.ts';
import { readRange } from '../../src/persistence/jetstream/reader.ts';
import { entryWith, putBlob, textOf } from '../contract/blobs.contract.ts';
import { batch, row } from '../contract/samples.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { aClient, aServedStore, aServer, aStore, names } from './jetstream-support.ts';

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };
const brokerOf = (connection: Awaited<ReturnType<typeof aClient>>) =>
  openBroker({ connection, watch: watchConnection(connection, SILENT, () => undefined) });

it('a read of the newest message of each subject ends at the last message at its start, while others append', async () => {
  const { server, store } = await aServedStore();
  for (let n = 0; n < 100; n++) await (await store.open(`c${n}`)).log.append(0, batch(0, 1));
  const client = await aClient(server.url);
  const broker = await brokerOf(client);
  const seen: string[] = [];
  const range = { stream: names.logStream, filter: names.log('*'), headersOnly: true };
  await readRange(broker, range, ({ subject }) => {
    seen.push(subject);
    if (seen.length > 1_000) throw new Error('the read follows the appends without end');
    client.publish(subject, 'more'); // as fast as this reader reads
    client.publish(subject, 'and more');
    return true;
  });
  expect(new Set(seen).size).toBe(100);
  expect(seen.length).toBeLessThan(300); // added between the start of the reader and its end
});

it('a read up to a message of the leader waits for a replica that lags, and not for a message that was removed', async () => {
  const { server, store } = await aServedStore();
  const { log } = await store.open('team');
  for (let n = 0; n < 3; n++) await log.append(n, batch(n, 1));
  const client = await aClient(server.url);
  const real = await brokerOf(client);
  const lagging = Object.create(real.manager.consumers);
  lagging.add = async (stream: string, config: object) => ({
    ...(await real.manager.consumers.add(stream, config)),
    num_pending: 0, // the answer of a server that has none of it yet
  });
  const manager = Object.create(real.manager, { consumers: { value: lagging } });
  const broker = { ...real, manager, timeoutMs: 1_000 };
  const read = async (to: number) => {
    const seen: number[] = [];
    await readRange(
      broker,
      { stream: names.logStream, filter: names.log('team'), from: 1, to },
      (message) => {
        seen.push(message.sequence);
        return true;
      },
    );
    return seen;
  };
  expect(await read(3)).toEqual([1, 2, 3]);
  expect(await read(4)).toEqual([]);
});

it('a read ends if the messages that it waits for are removed', async () => {
  const { server, store } = await aServedStore();
  for (const id of ['one', 'two']) await (await store.open(id)).log.append(0, batch(0, 1));
  const client = await aClient(server.url);
  const real = await brokerOf(client);
  const consumers = Object.create(real.manager.consumers);
  consumers.add = async (stream: string, config: object) => {
    const made = await real.manager.consumers.add(stream, config);
    await real.manager.streams.purge(stream, { filter: names.log('*') }); // both are deleted
    return made;
  };
  const manager = Object.create(real.manager, { consumers: { value: consumers } });
  const seen: string[] = [];
  const range = { stream: names.logStream, filter: names.log('*'), headersOnly: true };
  await readRange({ ...real, manager, timeoutMs: 1_000 }, range, ({ subject }) => seen.push(subject) > 0);
  expect(seen).toEqual([]);
});

it('a sweep keeps a file whose record changes while the sweep reads the records, and a list has a row that does', async () => {
  const server = await aServer();
  const one = await aStore(server.url);
  const client = await aClient(server.url);
  let between: (() => Promise<unknown>) | null = null;
  const managerOf = client.jetstreamManager.bind(client);
  client.jetstreamManager = async (options) => {
    const manager = await managerOf(options);
    const info = manager.streams.info.bind(manager.streams);
    manager.streams.info = async (stream, options) => {
      const found = await info(stream, options);
      const isEnd = stream.startsWith('KV_') && options === undefined; // the end of a read is fixed
      const run = isEnd ? between : null;
      if (run) between = null;
      await run?.();
      return found;
    };
    return manager;
  };
  const watch = watchConnection(client, SILENT, () => undefined);
  const two = untilTestEnds(await openJetStreamStore({ connection: client, watch, names }));
  const begin = async (id: string, part: FilePart) => {
    const { log } = await one.open(id);
    await log.append(0, [entryWith(0, part)]);
    await log.close();
  };
  const logo = await putBlob(one, 'the logo');
  await begin('first', logo.part);
  for (const id of ['second', 'third']) await begin(id, (await putBlob(one, `of ${id}`)).part);

  between = () => begin('again', logo.part);
  expect(await two.blobs.sweep('9999-01-01T00:00:00.000Z')).toBe(0);
  expect(between).toBeNull();
  expect(await textOf(one, logo.facts.sha256)).toBe('the logo');

  for (const id of ['first', 'second', 'third']) await one.saveRow(row(id));
  between = () => one.saveRow(row('first', 7));
  expect((await two.rows()).map(({ id, length }) => [id, length])).toEqual([
    ['first', 7],
    ['second', row('second').length],
    ['third', row('third').length],
  ]);
});
