import { describe, expect, it } from 'vitest';
import type { ConversationStore } from '../../src/persistence/index.ts';
import { AWKWARD_IDS, batch, entry, row } from './samples.ts';

/** The contract of every log. */
export function describeLog(current: () => ConversationStore, reopen: () => Promise<void>): void {
  describe('a log', () => {
    it('a log starts empty and exists only after its first entry', async () => {
      const { log, entries, tornTail } = await current().open('demo');
      expect(entries).toEqual([]);
      expect(tornTail).toBeNull();
      expect(log.length).toBe(0);
      expect(await current().exists('demo')).toBe(false);
      expect(await current().conversations()).toEqual([]);
      expect(await log.append(0, [entry(0)])).toEqual({ kind: 'appended', length: 1 });
      expect(log.length).toBe(1);
      expect(await current().exists('demo')).toBe(true);
      expect(await current().conversations()).toEqual(['demo']);
    });

    it('reads return what was appended, in order, also after a reopening (PERSISTENCE-PORT-3, L2)', async () => {
      const appended = [entry(0), entry(1, 'zwei ☕ 𝕏 \u2028 \u0000 \ud800 "quoted"\n\\'), entry(2, '')];
      const { log } = await current().open('demo');
      await log.append(0, appended.slice(0, 1));
      await log.append(1, appended.slice(1));
      expect(await log.read(0)).toEqual(appended);
      await log.close();
      const again = await current().open('demo');
      expect(again.entries).toEqual(appended);
      await reopen();
      const { log: third, entries } = await current().open('demo');
      expect(entries).toEqual(appended);
      expect(third.length).toBe(3);
      expect(await third.append(3, [entry(3)])).toEqual({ kind: 'appended', length: 4 });
    });

    it('unknown fields are kept, including those with the names of the format', async () => {
      const odd = [
        entry(0, 'a', { left: 7, sum: 'mine', extra: { left: 1, sum: '00000000' } }),
        entry(1, 'b', { sum: 'xxxxxxxx', left: 0 }),
        entry(2, 'c', { upTo: 3, left: 2 }),
        entry(3, 'd', JSON.parse('{"__proto__":{"x":1},"constructor":1}')),
      ];
      const { log } = await current().open('demo');
      await log.append(0, odd);
      await log.append(4, [entry(4, 'e', { left: 9 })]);
      expect(JSON.stringify(await log.read(0, 4))).toBe(JSON.stringify(odd));
      await log.close();
      const { entries } = await current().open('demo');
      expect(JSON.stringify(entries.slice(0, 4))).toBe(JSON.stringify(odd));
      expect(entries[4]).toEqual(entry(4, 'e', { left: 9 }));
    });

    it('any range can be read, up to the end', async () => {
      const { log } = await current().open('demo');
      await log.append(0, batch(0, 3));
      await log.append(3, batch(3, 4));
      const indexes = async (from: number, to?: number) =>
        (await log.read(from, to)).map((read) => read.index);
      expect(await indexes(2, 5)).toEqual([2, 3, 4]);
      expect(await indexes(6)).toEqual([6]);
      expect(await indexes(7)).toEqual([]);
      expect(await indexes(5, 3)).toEqual([]);
      expect(await indexes(5, 500)).toEqual([5, 6]);
      expect(await indexes(-3, 1)).toEqual([0]);
    });

    it('an append with a stale length is refused and changes nothing (PERSISTENCE-PORT-2, L3)', async () => {
      const { log } = await current().open('demo');
      await log.append(0, batch(0, 2));
      expect(await log.append(1, [entry(1, 'stale')])).toEqual({ kind: 'conflict', length: 2 });
      expect(await log.append(3, [entry(3, 'early')])).toEqual({ kind: 'conflict', length: 2 });
      expect(log.length).toBe(2);
      expect(await log.read(0)).toEqual(batch(0, 2));
    });

    it('one of several appends with the same length succeeds (L3)', async () => {
      const { log } = await current().open('demo');
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, writer) => log.append(0, [entry(0, `writer ${writer}`)])),
      );
      expect(outcomes.filter((outcome) => outcome.kind === 'appended')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome.kind === 'conflict')).toHaveLength(19);
      expect(await log.read(0)).toEqual([entry(0, 'writer 0')]);
    });

    it('appends that do not wait for each other are stored in order', async () => {
      const { log } = await current().open('demo');
      const appends: Promise<unknown>[] = [];
      for (let count = 0; count < 300; count += 1)
        appends.push(log.append(log.length, batch(log.length, 1 + (count % 3))));
      const length = log.length;
      await Promise.all(appends);
      expect(length).toBe(600);
      expect((await log.read(0)).map((read) => read.index)).toEqual(
        Array.from({ length }, (_, index) => index),
      );
      await reopen();
      expect((await current().open('demo')).entries).toEqual(batch(0, 600));
    });

    it('a later change of an appended entry by the caller is not stored', async () => {
      const { log } = await current().open('demo');
      const changing = entry(0, 'before');
      const appending = log.append(0, [changing]);
      Object.assign(changing, { content: 'after' });
      await appending;
      const [read] = await log.read(0);
      expect(read).toEqual({ ...entry(0, 'before') });
      Object.assign(read ?? {}, { content: 'changed by a reader' });
      expect(await log.read(0)).toEqual([entry(0, 'before')]);
    });

    it('a batch with one invalid entry is refused as a whole, and the log stays usable', async () => {
      const { log } = await current().open('demo');
      await expect(log.append(0, [entry(0), entry(2)])).rejects.toMatchObject({ code: 'ENTRY_INDEX_WRONG' });
      await expect(log.append(0, [entry(0), entry(1, 'x', { big: 1n })])).rejects.toMatchObject({
        code: 'ENTRY_NOT_JSON',
      });
      expect(log.length).toBe(0);
      expect(await log.read(0)).toEqual([]);
      expect(await log.append(0, [entry(0)])).toEqual({ kind: 'appended', length: 1 });
    });

    it('an empty batch changes nothing', async () => {
      const { log } = await current().open('demo');
      expect(await log.append(0, [])).toEqual({ kind: 'appended', length: 0 });
      expect(await log.append(4, [])).toEqual({ kind: 'conflict', length: 0 });
      expect(await current().exists('demo')).toBe(false);
    });

    it('a log can be open once at a time, and refuses work after its close', async () => {
      const { log } = await current().open('demo');
      await expect(current().open('demo')).rejects.toMatchObject({ code: 'LOG_ALREADY_OPEN' });
      const last = log.append(0, [entry(0)]);
      await log.close();
      await log.close();
      expect(await last).toEqual({ kind: 'appended', length: 1 });
      await expect(log.append(1, [entry(1)])).rejects.toMatchObject({ code: 'LOG_CLOSED' });
      await expect(log.read(0)).rejects.toMatchObject({ code: 'LOG_CLOSED' });
      expect((await current().open('demo')).entries).toEqual([entry(0)]);
    });

    it('logs are independent of each other, also with awkward and similar names', async () => {
      const ids = [...AWKWARD_IDS, 'Demo', 'demo'];
      const opened = await Promise.all(ids.map((id) => current().open(id)));
      await Promise.all(opened.map(({ log }) => log.append(0, [entry(0, log.conversation)])));
      await reopen();
      expect(await current().conversations()).toEqual([...ids].sort());
      for (const id of ids) expect((await current().open(id)).entries).toEqual([entry(0, id)]);
    });

    it.each(['', 'a/b', '..', '.', 'a.b', 'a'.repeat(129), 'ä', 'a\n', 'a*'])(
      'the conversation id %j is refused',
      async (id) => {
        const refused = { code: 'CONVERSATION_ID_INVALID' };
        const store = current();
        await expect(store.open(id)).rejects.toMatchObject(refused);
        await expect(store.exists(id)).rejects.toMatchObject(refused);
        await expect(store.delete(id)).rejects.toMatchObject(refused);
        await expect(store.markOpen(id)).rejects.toMatchObject(refused);
        await expect(store.clearOpen(id)).rejects.toMatchObject(refused);
        await expect(store.saveRow(row(id))).rejects.toMatchObject(refused);
        await expect(store.saveState(id, {})).rejects.toMatchObject(refused);
      },
    );
  });
}
