import { describe, expect, it } from 'vitest';
import type { ConversationStore } from '../../src/persistence/index.ts';
import { batch, entry } from '../contract/samples.ts';
import { aProxy, aServer, aStore } from './jetstream-support.ts';

/** The second append arrives, and its answer does not, if the connection is cut now. */
async function slowAnswer() {
  const server = await aServer();
  const proxy = await aProxy(server);
  const { log } = await (await aStore(proxy.url)).open('demo');
  const other = await aStore(server.url);
  await log.append(0, batch(0, 1));
  proxy.slow(200);
  const appending = log.append(1, batch(1, 1));
  return { log, appending, opened: await seen(other, 2), proxy };
}

describe('an append whose acknowledgement is lost', () => {
  it('an append is stored once if the server is killed during it, again and again', async () => {
    const server = await aServer();
    const { log } = await (await aStore(server.url)).open('demo');
    for (let round = 0; round < 5; round += 1) {
      const from = log.length;
      const appends = [log.append(from, batch(from, 3)), log.append(from + 3, batch(from + 3, 1))];
      if (round % 2 === 1) await new Promise((resolve) => setImmediate(resolve));
      await server.kill9();
      await server.restart();
      for (const outcome of await Promise.all(appends)) expect(outcome.kind).toBe('appended');
      expect(await log.read(0)).toEqual(batch(0, from + 4));
    }
  });

  it('an append is stored once if the server was frozen and stored it late', async () => {
    const server = await aServer();
    const { log } = await (await aStore(server.url)).open('demo');
    await log.append(0, batch(0, 1));
    server.freeze();
    const appending = log.append(1, batch(1, 2));
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // twice its timeout: it was published again
    server.thaw();
    expect(await appending).toEqual({ kind: 'appended', length: 3 });
    expect(await log.read(0)).toEqual(batch(0, 3));
  });

  it('an append whose answer was lost is found by its id, with what others appended after it', async () => {
    const { log, appending, opened, proxy } = await slowAnswer();
    const queued = log.append(2, batch(2, 1, 'queued behind it'));
    proxy.cut();
    expect(await opened.log.append(2, batch(2, 2, 'by another'))).toMatchObject({ kind: 'appended' });
    proxy.heal();
    const outcomes = await Promise.all([appending, queued]);
    expect(outcomes[0]).toEqual({ kind: 'appended', length: 2 });
    expect(outcomes[1]).toEqual({ kind: 'conflict', length: 4 });
    expect(await log.read(0)).toEqual([...batch(0, 2), ...batch(2, 2, 'by another')]);
  });

  it("a lost answer makes the writer's state stale, so that nothing is appended after the entries of others", async () => {
    const { log, appending, opened, proxy } = await slowAnswer();
    proxy.cut();
    expect(await opened.log.append(2, batch(2, 2, 'by another'))).toMatchObject({ kind: 'appended' });
    proxy.heal();
    expect(await appending).toEqual({ kind: 'appended', length: 2 });
    expect(await log.append(2, batch(2, 1, 'too late'))).toEqual({ kind: 'conflict', length: 4 });
    expect(await log.read(0)).toEqual([...batch(0, 2), ...batch(2, 2, 'by another')]);
  });

  it('an append that may not wait any longer fails with an unknown outcome, and the log is read again', async () => {
    const server = await aServer();
    const giveUp = new AbortController();
    const store = await aStore(server.url, { signal: giveUp.signal });
    const { log } = await store.open('demo');
    await log.append(0, batch(0, 1));
    await server.kill9();
    const appending = log.append(1, batch(1, 1));
    const queued = log.append(2, batch(2, 1));
    giveUp.abort();
    for (const append of [appending, queued])
      await expect(append).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    await expect(log.append(1, batch(1, 1))).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    await expect(log.read(0)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    await log.close();
    await server.restart();
    const again = await (await aStore(server.url)).open('demo');
    expect(again.entries).toEqual(batch(0, again.entries.length));
  });
});

/** The log as another store reads it, once it has this many entries. */
async function seen(store: ConversationStore, length: number) {
  for (;;) {
    const opened = await store.open('demo');
    if (opened.entries.length >= length) return opened;
    await opened.log.close();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe('two writers of one conversation', () => {
  it('two writers never interleave in a thousand rounds, and a stale one is refused', async () => {
    const server = await aServer();
    const writers = await Promise.all(
      ['a', 'b'].map(async (name) => ({ name, log: (await (await aStore(server.url)).open('demo')).log })),
    );
    const wins = new Map<string, number>();
    for (let round = 0; round < 1_000; round += 1) {
      const before = Math.max(...writers.map(({ log }) => log.length));
      const outcomes = await Promise.all(
        writers.map(({ name, log }) => log.append(before, batch(before, 2, `${name} ${round}`))),
      );
      const stored = outcomes.flatMap(({ kind }, place) => (kind === 'appended' ? [place] : []));
      expect(stored).toHaveLength(1);
      const won = before + 2;
      expect(outcomes.map(({ length }) => length)).toEqual([won, won]); // the other one learns how long it is
      expect(outcomes.filter(({ kind }) => kind === 'conflict')).toHaveLength(1);
      for (const place of stored) {
        const name = writers[place]?.name ?? '';
        wins.set(name, (wins.get(name) ?? 0) + 1);
      }
    }
    const { entries } = await (await aStore(server.url)).open('demo');
    expect(entries.map((each) => each.index)).toEqual(entries.map((_, index) => index));
    for (let at = 0; at < entries.length; at += 2)
      expect(entries[at]).toMatchObject({ content: (entries[at + 1] as { content?: string }).content });
    expect([...wins.values()].reduce((sum, count) => sum + count, 0)).toBe(1_000);
    expect(entries).toHaveLength(2_000);
  });

  it('a writer of a deleted log detects the deletion and can write no more', async () => {
    const server = await aServer();
    const { log } = await (await aStore(server.url)).open('demo');
    await log.append(0, batch(0, 3));
    const other = await aStore(server.url);
    await other.delete('demo');
    await (await other.open('demo')).log.append(0, [entry(0, 'new')]);
    expect(await log.append(3, batch(3, 1))).toEqual({ kind: 'conflict', length: 1 });
    await expect(log.append(1, batch(1, 1))).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    await expect(log.read(0)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
  });

  it('two writers can each read what the other one appended after one conflict', async () => {
    const server = await aServer();
    const { log } = await (await aStore(server.url)).open('demo');
    const other = await (await aStore(server.url)).open('demo');
    await other.log.append(0, batch(0, 200));
    await other.log.append(200, batch(200, 1));
    expect(await log.append(0, batch(0, 1))).toEqual({ kind: 'conflict', length: 201 });
    expect(log.length).toBe(201);
    expect(await log.read(199, 201)).toEqual(batch(199, 2));
    expect(await log.append(201, batch(201, 1))).toEqual({ kind: 'appended', length: 202 });
  });
});
