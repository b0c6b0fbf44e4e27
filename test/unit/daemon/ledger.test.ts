import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Ledger } from '../../../src/daemon/conversations/worker/ledger.ts';
import { createMemoryDisk, type MemoryDisk } from '../../../src/persistence/memory/index.ts';
import { namesOn } from '../../support/memory-disk.ts';
import { createDaemon, postCommand, type TestDaemon } from './daemon.ts';

describe('the ledger of a conversation', () => {
  let disk: MemoryDisk;
  let daemon: TestDaemon;
  beforeEach(() => {
    disk = createMemoryDisk();
    daemon = createDaemon({ disk });
  });
  afterEach(() => daemon.end());

  async function openLedger() {
    const steps: string[] = [];
    const reach = (step: string) => void steps.push(`${step}, marked: ${disk.documents.has('open.demo')}`);
    const { store, team, definitions } = daemon.runtime;
    const ledger = new Ledger('demo', { store, team, reach, definitions }, false, await store.open('demo'));
    const decide = (id: string) => ledger.conversation.apply(postCommand(id, 'hello'), 0).entries;
    return { ledger, steps, decide };
  }

  it('shows durable entries, and no entries that are only decided (LEDGER-1)', async () => {
    const { ledger, decide } = await openLedger();
    const entries = decide('m1');
    expect([ledger.entries(0, 10), ledger.state.length, ledger.hasOutstandingWork]).toEqual([[], 0, false]);
    expect(await ledger.append(0, entries)).toBe(true);
    expect([ledger.entries(0, 10), ledger.state.length, ledger.hasOutstandingWork]).toEqual([
      entries,
      2,
      true,
    ]);
    expect(ledger.entries(1, 10)).toEqual(entries.slice(1));
    expect(ledger.entries(0, 1)).toEqual(entries.slice(0, 1));
  });

  it('saves projections of durable entries, without those that are only decided (LEDGER-1)', async () => {
    const { ledger, decide } = await openLedger();
    const entries = decide('m1');
    await ledger.append(0, entries);
    ledger.conversation.apply(postCommand('m2', 'later'), 60_000);
    await ledger.saveProjections();
    const [row] = await daemon.runtime.store.rows();
    expect(row).toMatchObject({ length: 2, activeAt: entries[1]?.createdAt });
  });

  it('undoes entries that could not be appended (LEDGER-1)', async () => {
    const { ledger, decide } = await openLedger();
    daemon.faults.push(new Error('no space left'));
    await expect(ledger.append(0, decide('m1'))).rejects.toThrow('no space left');
    ledger.truncate(0);
    expect([ledger.conversation.hasPost('alice', 'm1'), ledger.state.length]).toEqual([false, 0]);
    const again = decide('m1');
    expect(again.map(({ index }) => index)).toEqual([0, 1]);
    expect(await ledger.append(0, again)).toBe(true);
  });

  it('reports an append of another process, and shows none of its own decided entries', async () => {
    const { ledger, decide } = await openLedger();
    daemon.faults.push({ kind: 'conflict', length: 7 });
    expect(await ledger.append(0, decide('m1'))).toBe(false);
    expect(ledger.entries(0, 10)).toEqual([]);
  });

  it('leaves its entries to the daemon that appended after them before the answer arrived', async () => {
    const { ledger, decide } = await openLedger();
    daemon.faults.push({ kind: 'appended', length: 2 }); // and the log is not as long as that says
    expect(await ledger.append(0, decide('m1'))).toBe(false);
    expect([ledger.state.length, ledger.hasOutstandingWork]).toEqual([0, false]);
  });

  it('marks the conversation once, before its first entry with outstanding work (LEDGER-2)', async () => {
    const { ledger, steps, decide } = await openLedger();
    await ledger.append(0, decide('m1'));
    await ledger.append(2, decide('m2'));
    expect(steps).toEqual([
      'marked, marked: true',
      'before-append, marked: true',
      'after-append, marked: true',
      'before-append, marked: true',
      'after-append, marked: true',
    ]);
  });

  it('marks the conversation before the first entry of an opening without outstanding work, for its row (LEDGER-2)', async () => {
    const { ledger, steps } = await openLedger();
    const by = { kind: 'person', id: 'alice', name: 'Alice' } as const;
    const rename = (title: string) => ledger.conversation.apply({ type: 'label', title, by }, 0).entries;
    await ledger.append(0, rename('one'));
    await ledger.append(1, rename('two'));
    expect([ledger.hasOutstandingWork, steps.filter((step) => step.startsWith('marked'))]).toEqual([
      false,
      ['marked, marked: true'],
    ]);
  });

  it('clears the mark only without outstanding work (LEDGER-2)', async () => {
    const { ledger, decide } = await openLedger();
    await ledger.append(0, decide('m1'));
    await ledger.clearMark();
    expect([ledger.isMarked, namesOn(disk, 'open.')]).toEqual([true, ['demo']]);
    disk.documents.set('open.other', true);
    const { store, team, reach, definitions } = daemon.runtime;
    const other = new Ledger('other', { store, team, reach, definitions }, true, await store.open('other'));
    await other.clearMark();
    expect([other.isMarked, namesOn(disk, 'open.')]).toEqual([false, ['demo']]);
  });
});
