import { expect, it } from 'vitest';
import { watchConnection } from '../../src/bus/nats/index.ts';
import { openBroker } from '../../src/persistence/jetstream/broker.ts';
import { readRange } from '../../src/persistence/jetstream/reader.ts';
import { batch } from '../contract/samples.ts';
import { aClient, aServer, aStore, names } from './jetstream-support.ts';

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

it('a read of the newest message of each subject ends at the last message at its start, while others append', async () => {
  const server = await aServer();
  const store = await aStore(server.url);
  for (let n = 0; n < 100; n++) await (await store.open(`c${n}`)).log.append(0, batch(0, 1));
  const client = await aClient(server.url);
  const broker = await openBroker({
    connection: client,
    watch: watchConnection(client, SILENT, () => undefined),
  });
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
  const server = await aServer();
  const store = await aStore(server.url);
  const { log } = await store.open('team');
  for (let n = 0; n < 3; n++) await log.append(n, batch(n, 1));
  const client = await aClient(server.url);
  const real = await openBroker({
    connection: client,
    watch: watchConnection(client, SILENT, () => undefined),
  });
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
  const server = await aServer();
  const store = await aStore(server.url);
  for (const id of ['one', 'two']) await (await store.open(id)).log.append(0, batch(0, 1));
  const client = await aClient(server.url);
  const real = await openBroker({
    connection: client,
    watch: watchConnection(client, SILENT, () => undefined),
  });
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
