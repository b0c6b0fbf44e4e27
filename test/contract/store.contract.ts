import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConversationStore } from '../../src/persistence/index.ts';
import { describeBlobs } from './blobs.contract.ts';
import { describeDefinitions } from './definitions.contract.ts';
import { describeLog } from './log.contract.ts';
import { AWKWARD_IDS, entry, row } from './samples.ts';
import { describeToolRecords } from './tool-records.contract.ts';

/** A location where stores are opened one after the other, as by successive daemons. */
export interface StoreHarness {
  /** How many stores may be open there at once. `one`: a second is refused. */
  readonly owners: 'one' | 'many';
  open(): Promise<ConversationStore>;
  dispose(): Promise<void>;
}

/** The contract of every `ConversationStore` (PERSISTENCE-PORT-1 to PERSISTENCE-PORT-4). */
export function describeStoreContract(name: string, createHarness: () => Promise<StoreHarness>): void {
  describe(`the ${name} store keeps the contract`, () => {
    let harness: StoreHarness;
    let store: ConversationStore;

    beforeEach(async () => {
      harness = await createHarness();
      store = await harness.open();
    });
    afterEach(async () => {
      await store.close();
      await harness.dispose();
    });
    async function reopen(): Promise<void> {
      await store.close();
      store = await harness.open();
    }

    describeLog(() => store, reopen);
    describeToolRecords(() => store, reopen);
    describeDefinitions(() => store, reopen);
    describeBlobs(() => store, reopen);
    it('what is kept of a person survives a restart, and a deletion removes the conversation from it', async () => {
      const [person, other] = ['a'.repeat(64), 'b'.repeat(64)];
      expect(await store.people.get(person)).toBeNull();
      await store.people.change(person, () => ({ since: '', lengths: { demo: 2, two: 1 } }));
      await reopen();
      expect(await store.people.get(person)).toEqual({ since: '', lengths: { demo: 2, two: 1 } });
      await store.delete('demo');
      await reopen();
      expect(await store.people.get(person)).toEqual({ since: '', lengths: { two: 1 } });
      expect(await store.people.get(other)).toBeNull();
    });
    describeRest(
      () => store,
      reopen,
      () => harness,
    );
  });
}

function describeRest(
  current: () => ConversationStore,
  reopen: () => Promise<void>,
  harness: () => StoreHarness,
): void {
  async function fill(id: string): Promise<void> {
    const { log } = await current().open(id);
    await log.append(0, [entry(0)]);
    await log.close();
  }

  describe('deletions', () => {
    it('a deletion removes log, row and mark, and can be repeated', async () => {
      await fill('gone');
      await fill('stays');
      await current().initialiseMarks();
      for (const id of ['gone', 'stays']) {
        await current().saveRow(row(id));
        await current().saveState(id, { title: null });
        await current().markOpen(id);
      }
      await current().delete('gone');
      await current().delete('gone');
      await current().delete('never-there');
      for (const round of ['now', 'after a reopening']) {
        expect(await current().exists('gone'), round).toBe(false);
        expect(await current().conversations(), round).toEqual(['stays']);
        expect(await current().openMarks(), round).toEqual(['stays']);
        expect(await current().rows(), round).toEqual([row('stays')]);
        await reopen();
      }
    });

    it('a deletion keeps its position, which never moves back', async () => {
      await fill('demo');
      expect(await current().deletedUpTo('demo')).toBeNull();
      await current().delete('demo', { stream: 'first', sequence: 7 });
      await current().delete('demo', { stream: 'first', sequence: 5 });
      await current().delete('demo');
      await current().delete('__proto__', { stream: 'first', sequence: 3 });
      for (const round of ['now', 'after a reopening']) {
        expect(await current().deletedUpTo('demo'), round).toEqual({ stream: 'first', sequence: 7 });
        expect(await current().deletedUpTo('__proto__'), round).toEqual({ stream: 'first', sequence: 3 });
        expect(await current().deletedUpTo('other'), round).toBeNull();
        await reopen();
      }
    });

    it('a deletion in a new stream of the same name replaces the position of an earlier one', async () => {
      await current().delete('demo', { stream: 'first', sequence: 7 });
      await current().delete('demo', { stream: 'second', sequence: 2 });
      await reopen();
      expect(await current().deletedUpTo('demo')).toEqual({ stream: 'second', sequence: 2 });
    });

    it('deletions are cut to the end of a stream that lost posts, never below, and not for another stream', async () => {
      for (const [id, sequence] of [
        ['lost', 9],
        ['__proto__', 7],
        ['last', 5],
        ['survived', 3],
      ] as const)
        await current().delete(id, { stream: 'first', sequence });
      await current().cutDeletions(async () => ({ stream: 'second', sequence: 1 }));
      expect(await current().deletedUpTo('lost')).toEqual({ stream: 'first', sequence: 9 });
      await current().cutDeletions(async () => ({ stream: 'first', sequence: 5 }));
      for (const round of ['now', 'after a reopening']) {
        for (const id of ['lost', '__proto__', 'last'])
          expect(await current().deletedUpTo(id), round).toEqual({ stream: 'first', sequence: 5 });
        expect(await current().deletedUpTo('survived'), round).toEqual({ stream: 'first', sequence: 3 });
        await reopen();
      }
      await current().delete('lost', { stream: 'first', sequence: 6 });
      expect(await current().deletedUpTo('lost')).toEqual({ stream: 'first', sequence: 6 });
    });

    it('a deletion that is made or moved after the end of the stream was requested is not cut', async () => {
      await current().delete('moved', { stream: 'first', sequence: 7 });
      await current().cutDeletions(async () => {
        await current().delete('moved', { stream: 'first', sequence: 8 });
        await current().delete('new', { stream: 'first', sequence: 9 });
        return { stream: 'first', sequence: 5 };
      });
      for (const round of ['now', 'after a reopening']) {
        expect(await current().deletedUpTo('moved'), round).toEqual({ stream: 'first', sequence: 8 });
        expect(await current().deletedUpTo('new'), round).toEqual({ stream: 'first', sequence: 9 });
        await reopen();
      }
    });

    it('deletions are listed, also after a reopening', async () => {
      for (const id of ['demo', 'other']) await current().delete(id, { stream: 'first', sequence: 7 });
      const known = ['demo', 'other'].map((conversation) => ({ conversation, stream: 'first', sequence: 7 }));
      for (const _ of ['now', 'after a reopening']) {
        expect(await current().deletions()).toEqual(known);
        await reopen();
      }
    });

    it('a deleted conversation can begin again under the same name', async () => {
      await fill('demo');
      await current().delete('demo');
      const { log, entries } = await current().open('demo');
      expect(entries).toEqual([]);
      await log.append(0, [entry(0, 'new')]);
      expect(await log.read(0)).toEqual([entry(0, 'new')]);
    });

    it('a deletion is refused while the log is open', async () => {
      const { log } = await current().open('demo');
      await log.append(0, [entry(0)]);
      await expect(current().delete('demo')).rejects.toMatchObject({ code: 'LOG_ALREADY_OPEN' });
      expect(await log.read(0)).toEqual([entry(0)]);
    });

    it('concurrent deletions share one run, and an opening waits for it', async () => {
      await fill('demo');
      const [, , opened] = await Promise.all([
        current().delete('demo'),
        current().delete('demo'),
        current().open('demo'),
      ]);
      expect(opened.entries).toEqual([]);
    });
  });

  describe('marks', () => {
    it('marks are null until they are initialised, so that no log is missed', async () => {
      expect(await current().openMarks()).toBeNull();
      await current().markOpen('demo');
      expect(await current().openMarks()).toBeNull();
      await reopen();
      expect(await current().openMarks()).toBeNull();
      await current().initialiseMarks();
      expect(await current().openMarks()).toEqual(['demo']);
    });

    it('marks survive a reopening, and marking or clearing twice is allowed', async () => {
      await current().initialiseMarks();
      expect(await current().openMarks()).toEqual([]);
      for (const id of [...AWKWARD_IDS, ...AWKWARD_IDS]) await current().markOpen(id);
      await reopen();
      expect(await current().openMarks()).toEqual([...AWKWARD_IDS].sort());
      await current().clearOpen('constructor');
      await current().clearOpen('constructor');
      await current().initialiseMarks();
      await reopen();
      expect(await current().openMarks()).toEqual(AWKWARD_IDS.filter((id) => id !== 'constructor').sort());
    });

    it('a mark that is set during its removal is kept', async () => {
      await current().initialiseMarks();
      await current().markOpen('demo');
      await current().saveRow(row('demo'));
      await Promise.all([current().clearOpen('demo'), current().markOpen('demo')]);
      expect(await current().openMarks()).toEqual(['demo']);
      await reopen();
      expect(await current().openMarks()).toEqual(['demo']);
    });
  });

  describe('projections', () => {
    it('rows are listed by id, each in its newest version', async () => {
      for (const id of ['zeta', '__proto__', 'constructor', 'Alpha', 'alpha']) await fill(id);
      for (const id of ['zeta', '__proto__', 'constructor', 'Alpha', 'alpha'])
        await current().saveRow(row(id));
      await current().saveRow(row('zeta', 9));
      const expected = [row('Alpha'), row('__proto__'), row('alpha'), row('constructor'), row('zeta', 9)];
      expect(await current().rows()).toEqual(expected);
      await reopen();
      expect(await current().rows()).toEqual(expected);
    });

    it('the ingress position is kept', async () => {
      expect(await current().ingressPosition()).toBeNull();
      await current().saveIngressPosition({ stream: 'first', sequence: 4 });
      await current().saveIngressPosition({ stream: 'first', sequence: 5 });
      expect(await current().ingressPosition()).toEqual({ stream: 'first', sequence: 5 });
      await reopen();
      expect(await current().ingressPosition()).toEqual({ stream: 'first', sequence: 5 });
    });

    it('a state document can be saved for any conversation', async () => {
      await current().saveState('no-log-yet', { phase: 'chat' });
      await fill('demo');
      await Promise.all([1, 2, 3].map((length) => current().saveState('demo', { length })));
      expect(await current().conversations()).toEqual(['demo']);
    });
  });

  describe('the store', () => {
    it('a store keeps its id when it is opened again', async () => {
      const { id } = current();
      await fill('demo');
      await reopen();
      expect(id).toMatch(/\S/);
      expect(current().id).toBe(id);
    });

    it('a store remembers that it is a backup until a daemon starts on it', async () => {
      expect(await current().backupMark.get()).toBeNull();
      const facts = { from: 'file:/var/lib/parley', madeAt: '2026-11-26T02:15:00.000Z' };
      await current().backupMark.put(facts);
      await reopen();
      expect(await current().backupMark.get()).toEqual(facts);
      await current().backupMark.remove();
      await reopen();
      expect(await current().backupMark.get()).toBeNull();
    });

    it('a store has one owner at a time, or lets one of several appends succeed (L3)', async () => {
      if (harness().owners === 'many') {
        await oneOfManyWins();
        return;
      }
      await expect(harness().open()).rejects.toMatchObject({ code: 'DATA_DIRECTORY_IN_USE' });
      await current().close();
      const next = await harness().open();
      await next.close();
    });

    async function oneOfManyWins(): Promise<void> {
      const other = await harness().open();
      const logs = [(await current().open('demo')).log, (await other.open('demo')).log];
      const outcomes = await Promise.all(
        logs.map((log, writer) => log.append(0, [entry(0, `by ${writer}`)])),
      );
      expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(['appended', 'conflict']);
      expect(outcomes.map((outcome) => outcome.length)).toEqual([1, 1]);
      const winner = outcomes.findIndex((outcome) => outcome.kind === 'appended');
      for (const log of logs) expect(await log.read(0)).toEqual([entry(0, `by ${winner}`)]);
      await other.close();
    }

    it('close finishes appends of open logs, and can be repeated', async () => {
      const { log } = await current().open('demo');
      const appending = log.append(0, [entry(0)]);
      await Promise.all([current().close(), current().close()]);
      expect(await appending).toEqual({ kind: 'appended', length: 1 });
      await expect(log.append(1, [entry(1)])).rejects.toMatchObject({ code: 'LOG_CLOSED' });
      await expect(current().open('demo')).rejects.toMatchObject({ code: 'STORE_CLOSED' });
      await expect(current().rows()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
      await reopen();
      expect((await current().open('demo')).entries).toEqual([entry(0)]);
    });
  });
}
