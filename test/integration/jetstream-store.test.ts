import { ErrorCode, headers, NatsError, StorageType } from 'nats';
import { describe, expect, it } from 'vitest';
import { watchConnection } from '../../src/bus/nats/index.ts';
import type { Entry } from '../../src/conversation/index.ts';
import type { ConversationStore } from '../../src/persistence/index.ts';
import {
  openJetStreamStore,
  openStreamSource,
  openStreamTarget,
} from '../../src/persistence/jetstream/index.ts';
import type { StoreEvent } from '../../src/persistence/jetstream/stream-store.ts';
import { batch, entry } from '../contract/samples.ts';
import { record } from '../contract/tool-records.contract.ts';
import { errorWith } from '../support/error-with.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { aClient, aServedStore, aServer, aStore, names } from './jetstream-support.ts';

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

describe('foreign messages in a log', () => {
  it('a message that is no append is skipped, reported once, and does not disturb the log', async () => {
    const server = await aServer();
    const events: StoreEvent[] = [];
    const client = await aClient(server.url);
    const store = await aStore(server.url, { log: (event) => events.push(event) });
    const { log } = await store.open('demo');
    const noise = async () => void (await client.jetstream().publish(names.log('demo'), '{"entries":[]}'));
    await noise();
    await log.append(0, batch(0, 2));
    await noise();
    expect(await store.exists('demo')).toBe(true);
    await noise();
    expect(await log.append(2, batch(2, 1))).toEqual({ kind: 'appended', length: 3 });
    expect(await log.read(0)).toEqual(batch(0, 3));
    await client.jetstream().publish(names.log('only-noise'), 'hello');
    expect(await store.exists('only-noise')).toBe(false);
    expect(events.filter((event) => 'conversation' in event && event.conversation === 'demo')).toHaveLength(
      1,
    );
    await log.close();
    expect((await store.open('demo')).entries).toEqual(batch(0, 3));
  });

  it('a message that imitates an append is reported, and nothing is appended after it (PERSISTENCE-PORT-4)', async () => {
    const { server, store } = await aServedStore();
    const client = await aClient(server.url);
    const { log } = await store.open('demo');
    await log.append(0, batch(0, 2));
    const posing = headers();
    posing.set('Parley-Append', 'x');
    posing.set('Parley-Length', '9');
    await client
      .jetstream()
      .publish(names.log('demo'), JSON.stringify({ entries: batch(7, 2) }), { headers: posing });
    await expect(log.append(2, batch(2, 1))).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    await log.close();
    await expect(store.open('demo')).rejects.toMatchObject({ code: 'LOG_CORRUPT' });
  });
});

describe('a log with content larger than one message', () => {
  it('an append that exceeds one message is refused, and the log continues', async () => {
    const server = await aServer({ config: 'max_payload: 65536' });
    const { log } = await (await aStore(server.url)).open('demo');
    await expect(log.append(0, batch(0, 2, 'x'.repeat(40_000)))).rejects.toMatchObject(
      errorWith('APPEND_TOO_LARGE', '', 'max_payload'),
    );
    expect(log.length).toBe(0);
    const appends = Array.from({ length: 10 }, (_, index) =>
      log.append(index, [entry(index, `${index}`.repeat(20_000))]),
    );
    for (const outcome of await Promise.all(appends)) expect(outcome.kind).toBe('appended');
    expect((await log.read(0)).map((each) => each.index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('a tool record that exceeds one message is stored in parts and read back whole', async () => {
    const server = await aServer({ config: 'max_payload: 65536' });
    const store = await aStore(server.url);
    const large = record(0, { type: 'ToolCallCompleted', result: 'y'.repeat(100_000) });
    await store.toolRecords.append('demo', [large, record(1)]);
    const { records } = await store.toolRecords.read('demo');
    expect([...records].sort((a, b) => a.call.position - b.call.position)).toEqual([large, record(1)]);
    await store.delete('demo');
    expect((await store.toolRecords.read('demo')).records).toEqual([]);
  });
});

describe('a deletion in a JetStream store', () => {
  it('a deletion keeps the later position if two stores record theirs at the same time', async () => {
    const { url } = await aServer();
    const [one, two] = [await aStore(url), await aStore(url)];
    const lost: string[] = [];
    for (let round = 0; round < 60; round++) {
      const id = `c${round}`;
      const at = (sequence: number) => ({ stream: 'first', sequence });
      await Promise.all([one.delete(id, at(9)), two.delete(id, at(5)), one.deletedUpTo(id)]);
      if ((await two.deletedUpTo(id))?.sequence !== 9) lost.push(id);
    }
    expect(lost).toEqual([]);
  });

  it('a deletion leaves a log alone that began after the append that it names', async () => {
    const { url } = await aServer();
    const [one, two] = [await aStore(url), await aStore(url)];
    const old = await one.open('demo');
    await old.log.append(0, batch(0, 2));
    const meant = old.log.newestSequence;
    await old.log.close();
    await two.delete('demo');
    const later = await two.open('demo');
    await later.log.append(0, [entry(0, 'a new beginning')]);
    await one.delete('demo', null, meant);
    expect(await later.log.read(0)).toEqual([entry(0, 'a new beginning')]);
  });

  it('a deletion removes what was appended to the old log during the deletion', async () => {
    const { url } = await aServer();
    const [one, two] = [await aStore(url), await aStore(url)];
    const first = await one.open('demo');
    await first.log.append(0, batch(0, 2));
    const meant = first.log.newestSequence;
    await first.log.append(2, batch(2, 1));
    await first.log.close();
    await two.delete('demo', null, meant);
    expect(await two.exists('demo')).toBe(false);
  });

  it('a deletion that a crash interrupted is completed at the next opening, without the log that began since', async () => {
    const { url } = await aServer();
    const store = await aStore(url);
    const old = await store.open('demo');
    await old.log.append(0, batch(0, 2));
    await old.log.close();
    const bucket = await (await aClient(url)).jetstream().views.kv(names.stateBucket);
    await bucket.put('deleting.demo', JSON.stringify({ log: old.log.newestSequence }));
    await bucket.put('deleting.begun', JSON.stringify({ log: 0 }));
    const begun = await store.open('begun');
    await begun.log.append(0, [entry(0, 'a new beginning')]);
    const next = await aStore(url);
    expect(await next.conversations()).toEqual(['begun']);
    expect(await bucket.get('deleting.demo')).toBeNull();
  });

  it.each(['log-removed', 'deletion-noted'] as const)(
    'a deletion that ended at %s is finished before another daemon opens the conversation, and what begins then stays whole',
    async (point) => {
      const { url } = await aServer();
      let isArmed = false;
      const killed = await aStore(url, {
        reach: (at) => {
          if (isArmed && at === point) throw new Error('killed');
        },
      });
      const other = await aStore(url);
      await leave(killed, 'demo', batch(0, 2));
      await killed.toolRecords.append('demo', [record(0), record(1)]);
      isArmed = true;
      await expect(killed.delete('demo')).rejects.toThrow('killed');
      await begin(other);
      await other.blobs.sweep('2000-01-01T00:00:00.000Z');
      expect(await contentOf(other)).toEqual({
        texts: ['new 0', 'new 1'],
        output: 'large',
        records: [record(0)],
      });
    },
  );

  it('a daemon that is slow to delete keeps the records and outputs of what another one begins meanwhile (STREAM-STORE-2)', async () => {
    const { url } = await aServer();
    const client = await aClient(url);
    const other = await aStore(url);
    let between: (() => Promise<void>) | null = () => begin(other);
    const managerOf = client.jetstreamManager.bind(client);
    client.jetstreamManager = async (options) => {
      const manager = await managerOf(options);
      const purge = manager.streams.purge.bind(manager.streams);
      manager.streams.purge = async (stream, opts) => {
        const purged = await purge(stream, opts);
        const run = stream === names.logStream ? between : null;
        if (run) between = null;
        await run?.();
        return purged;
      };
      return manager;
    };
    const watch = watchConnection(client, SILENT, () => undefined);
    const slow = untilTestEnds(await openJetStreamStore({ connection: client, watch, names }));
    await leave(slow, 'demo', batch(0, 2));
    await slow.delete('demo');
    expect(between).toBeNull();
    expect(await contentOf(other)).toEqual({
      texts: ['new 0', 'new 1'],
      output: 'large',
      records: [record(0)],
    });
  });

  it('a backup lacks the log that an unfinished deletion removes, and has one that began later', async () => {
    const { url } = await aServer();
    const store = await aStore(url);
    const first = await leave(store, 'demo', batch(0, 2));
    await leave(store, 'gone', batch(0, 1));
    await store.delete('demo');
    const gone = await leave(store, 'gone', batch(1, 1));
    await leave(store, 'demo', [entry(0, 'a new beginning')]);
    const client = await aClient(url);
    const bucket = await client.jetstream().views.kv(names.stateBucket);
    await bucket.put('deleting.demo', JSON.stringify({ log: first, lives: [] }));
    await bucket.put('deleting.gone', JSON.stringify({ log: gone - 1, lives: [] }));
    const watch = watchConnection(client, SILENT, () => undefined);
    const { archive } = await openStreamSource({ connection: client, watch, names });
    expect(await archive.conversations()).toEqual(['demo']);
  });
});

/** Returns the sequence of its newest append. */
async function leave(store: ConversationStore, id: string, entries: readonly Entry[]): Promise<number> {
  const { log } = await store.open(id);
  await log.append(log.length, entries);
  await log.close();
  return log.newestSequence ?? 0;
}

/** Continues `demo`, or begins it. */
async function begin(store: ConversationStore): Promise<void> {
  const { log, entries } = await store.open('demo');
  await log.append(entries.length, [entry(entries.length, 'new 0'), entry(entries.length + 1, 'new 1')]);
  await store.toolRecords.append('demo', [record(0)]);
  await store.toolRecords.saveOutput('demo', 'o1', 'large');
  await log.close();
}

async function contentOf(store: ConversationStore) {
  const { log, entries } = await store.open('demo');
  await log.close();
  return {
    texts: entries.map((one) => (one.type === 'message' ? one.content : one.type)),
    output: await store.toolRecords.readOutput('demo', 'o1'),
    records: (await store.toolRecords.read('demo')).records,
  };
}

describe('a JetStream store', () => {
  it('a store repeats a read if the connection is lost during it', async () => {
    const server = await aServer();
    const store = await aStore(server.url, { timeoutMs: 60_000 });
    const { log } = await store.open('demo');
    await log.append(0, batch(0, 2));
    server.freeze(); // nothing is answered any more
    const readings = Promise.all([
      store.shared?.newest('demo'),
      store.shared?.all(),
      store.exists('demo'),
      store.exists('other'),
    ]);
    await server.kill9();
    await server.restart();
    expect(await readings).toMatchObject([{ length: 2 }, new Map([['demo', { length: 2 }]]), true, false]);
  });

  it('a store reports a read whose connection does not return', async () => {
    const { server, store } = await aServedStore();
    server.freeze();
    const reading = store.exists('demo');
    await Promise.all([
      expect(reading).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: /no connection/ }),
      server.kill9(),
    ]);
  });

  it('a store completes at its opening a deletion that was interrupted', async () => {
    const { server, store } = await aServedStore();
    const { log } = await store.open('demo');
    await log.append(0, batch(0, 1));
    await store.toolRecords.append('demo', [record(0)]);
    await store.toolRecords.saveOutput('demo', 'o1', 'large');
    const begun = JSON.stringify({ log: log.newestSequence });
    const bucket = await (await aClient(server.url)).jetstream().views.kv(names.stateBucket);
    await bucket.put('deleting.demo', begun);
    const next = await aStore(server.url);
    expect(await next.exists('demo')).toBe(false);
    expect((await next.toolRecords.read('demo')).records).toEqual([]);
    expect(await next.toolRecords.readOutput('demo', 'o1')).toBeNull();
    expect(await bucket.get('deleting.demo')).toBeNull();
  });

  it('a store reports which setting of an old stream does not fit', async () => {
    const server = await aServer();
    const { streams } = await (await aClient(server.url)).jetstreamManager();
    await streams.add({ name: names.logStream, subjects: [names.log('*')], storage: StorageType.Memory });
    await expect(aStore(server.url)).rejects.toMatchObject(errorWith('STREAM_CONFIG_CONFLICT', 'storage'));
  });

  it('a store leaves a log stream alone whose prefix differs only in case', async () => {
    const server = await aServer();
    const { streams } = await (await aClient(server.url)).jetstreamManager();
    await streams.add({ name: names.logStream, subjects: ['PARLEY.log.*'] });
    await expect(aStore(server.url)).rejects.toMatchObject({
      message: expect.stringContaining('prefix PARLEY'),
    });
    expect((await streams.info(names.logStream)).config.subjects).toEqual(['PARLEY.log.*']);
  });

  it('a store reports a server without JetStream', async () => {
    const server = await aServer({ plain: true });
    await expect(aStore(server.url)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  it('a store removes a limit in bytes, at which older servers drop the oldest entries', async () => {
    const server = await aServer();
    const { streams } = await (await aClient(server.url)).jetstreamManager();
    await aStore(server.url);
    await streams.update(names.logStream, { max_bytes: 1_000_000 });
    await aStore(server.url);
    expect((await streams.info(names.logStream)).config.max_bytes).toBe(-1);
  });

  it('a store reports that the storage is full, and appends again when it is not', async () => {
    const { server, store } = await aServedStore();
    const { streams } = await (await aClient(server.url)).jetstreamManager();
    const { log } = await store.open('demo');
    await log.append(0, batch(0, 1));
    await streams.update(names.logStream, { max_bytes: 2_000 });
    await expect(log.append(1, [entry(1, 'x'.repeat(5_000))])).rejects.toMatchObject({ code: 'STORE_FULL' });
    expect(log.length).toBe(1);
    await streams.update(names.logStream, { max_bytes: -1 });
    expect(await log.append(1, batch(1, 1))).toEqual({ kind: 'appended', length: 2 });
  });

  it('a store reads a long log in pages, whole and in part', async () => {
    const { store } = await aServedStore();
    const { log } = await store.open('demo');
    for (let from = 0; from < 500; from += 1) await log.append(from, batch(from, 1));
    expect(await log.read(0)).toEqual(batch(0, 500));
    expect(await log.read(250, 253)).toEqual(batch(250, 3));
    await log.close();
    expect((await store.open('demo')).entries).toEqual(batch(0, 500));
  });

  itLong('a store reports an outage of the server, and continues when it returns', async () => {
    const { server, store } = await aServedStore();
    await store.toolRecords.append('demo', [record(0)]);
    await server.kill9();
    const away = { code: 'STORE_UNAVAILABLE' };
    await expect(store.exists('demo')).rejects.toMatchObject(away);
    await expect(store.open('demo')).rejects.toMatchObject(away);
    await expect(store.rows()).rejects.toMatchObject(away);
    await expect(store.markOpen('demo')).rejects.toMatchObject(away);
    await expect(store.toolRecords.append('demo', [record(1)])).rejects.toMatchObject(away);
    await expect(store.toolRecords.readOutput('demo', 'o1')).rejects.toMatchObject(away);
    await server.restart();
    for (;;) {
      if ((await store.exists('demo').catch(() => null)) !== null) break;
    }
    expect((await store.toolRecords.read('demo')).records).toEqual([record(0)]);
  });
});

describe('daemons that start at the same time on a new server', () => {
  it('each of them opens the store that one of them creates (NATS-STREAMS-3)', async () => {
    for (let round = 0; round < 3; round++) {
      const server = await aServer();
      const stores = await Promise.all(Array.from({ length: 8 }, () => aStore(server.url)));
      expect(new Set(await Promise.all(stores.map((store) => store.exists('demo'))))).toEqual(
        new Set([false]),
      );
    }
  });

  it('a server that loses the first question whether it has JetStream is asked once more', async () => {
    const server = await aServer();
    const client = await aClient(server.url);
    const asked: unknown[] = [];
    const lossy = new Proxy(client, {
      get(target, name) {
        if (name !== 'jetstreamManager') return Reflect.get(target, name, target);
        return (options: object = {}) => {
          asked.push(options);
          const timeout = new NatsError('TIMEOUT', ErrorCode.Timeout);
          return asked.length === 1 ? Promise.reject(timeout) : target.jetstreamManager(options);
        };
      },
    });
    const watch = watchConnection(client, SILENT, () => undefined);
    const store = untilTestEnds(await openJetStreamStore({ connection: lossy, watch, names }));
    expect(await store.exists('demo')).toBe(false);
    expect(asked.slice(0, 2)).toEqual([{ timeout: 1_200 }, { checkAPI: true }]);
  });
});

describe('two migrations into one target', () => {
  it('only one of two migrations that found the target empty begins, and the same source continues later', async () => {
    const server = await aServer();
    const targets = await Promise.all(
      ['a', 'b'].map(async (name) => {
        const connection = await aClient(server.url);
        const watch = watchConnection(connection, SILENT, () => undefined);
        return { name, target: await openStreamTarget({ connection, watch, names }) };
      }),
    );
    const begun = await Promise.allSettled(targets.map(({ name, target }) => target.begin(`file:${name}`)));
    expect(begun.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const refused = begun.find((outcome) => outcome.status === 'rejected');
    expect(refused?.reason).toMatchObject({ code: 'MIGRATION_UNFINISHED' });
    const first = targets[begun.findIndex(({ status }) => status === 'fulfilled')] ?? expect.unreachable();
    expect(await first.target.archive.migration()).toBe(`file:${first.name}`);
    await first.target.begin(`file:${first.name}`);
    for (const { target } of targets) await target.store.close();
  });
});
