import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ConversationStore } from '../../../src/persistence/index.ts';
import { Store } from '../../../src/persistence/store.ts';
import { blobOf, entryWith, putBlob, textOf } from '../../contract/blobs.contract.ts';
import { entry } from '../../contract/samples.ts';
import { SharedMemory } from '../../support/stepped-storage.ts';

/** BLOBS-2 to BLOBS-5: two daemons on shared logs, in every order of their steps that has at most two changes between them. */

const LATER = '9999-01-01T00:00:00.000Z';
const FREE = async () => undefined;
const blob = blobOf('shared');

type Work = (store: ConversationStore) => Promise<unknown>;
interface Case {
  readonly before: Work;
  readonly one: Work;
  readonly other: Work;
}

const opened =
  (
    conversation: string,
    work: (log: Awaited<ReturnType<ConversationStore['open']>>['log']) => Promise<unknown>,
  ): Work =>
  async (store) => {
    const { log } = await store.open(conversation);
    await work(log).finally(() => log.close());
  };
const begin = (conversation: string, id = 'begin'): Work =>
  opened(conversation, (log) => log.append(0, [{ ...entryWith(0, blob.part), id }]));
const beginPlain: Work = opened('demo', (log) => log.append(0, [entry(0)]));
const extend: Work = opened('demo', (log) => log.append(log.length, [entryWith(log.length, blob.part)]));
const remove: Work = (store) => store.delete('demo');
const put: Work = (store) => putBlob(store, 'shared');
const sweep: Work = (store) => store.blobs.sweep('2000-01-01T00:00:00.000Z');
const both =
  (...all: Work[]): Work =>
  async (store) => {
    for (const work of all) await work(store);
  };

const CASES: Readonly<Record<string, Case>> = {
  'a deletion and the first append of another conversation': {
    before: both(put, begin('demo')),
    one: remove,
    other: begin('other'),
  },
  'a deletion and an append to another conversation, after an upload': {
    before: both(put, begin('demo')),
    one: remove,
    other: both(put, begin('other')),
  },
  'a deletion and an append to the same log': { before: both(put, beginPlain), one: remove, other: extend },
  'a deletion and an append that names a file of the same log': {
    before: both(put, begin('demo')),
    one: remove,
    other: extend,
  },
  'a deletion and a new log under the same name': {
    before: both(put, begin('demo')),
    one: remove,
    other: both(put, begin('demo', 'again')),
  },
  'two deletions of the same log': { before: both(put, begin('demo')), one: remove, other: remove },
  'a deletion and a sweep': { before: both(put, begin('demo')), one: remove, other: sweep },
  'an upload and a deletion': { before: both(put, begin('demo')), one: remove, other: put },
  'a first append and a sweep': { before: put, one: begin('demo'), other: sweep },
  'two uploads': { before: FREE, one: put, other: put },
};

/** Runs `one` for `first` steps, then `other` for `second` steps, then `one` to its end, then `other`. Returns the steps of each. */
async function run(of: Case, first: number, second: number) {
  const memory = new SharedMemory();
  await of.before(new Store(memory.storage(FREE)));
  const steps = [0, 0] as [number, number];
  const waiting: (null | (() => void))[] = [null, null];
  const ended = [false, false];
  const step = (process: 0 | 1) => () =>
    new Promise<void>((resolve) => {
      waiting[process] = resolve;
    });
  const errors: unknown[] = [];
  const start = (process: 0 | 1, work: Work) =>
    work(new Store(memory.storage(step(process))))
      .catch((error: unknown) => errors.push(error))
      .finally(() => {
        ended[process] = true;
      });
  const running = [start(0, of.one), start(1, of.other)];
  const advance = async (process: 0 | 1, most: number) => {
    for (let done = 0; done < most; ) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (ended[process]) return;
      const go = waiting[process];
      if (!go) continue;
      waiting[process] = null;
      steps[process] += 1;
      done += 1;
      go();
    }
    while (!ended[process] && waiting[process] === null)
      await new Promise<void>((resolve) => setImmediate(resolve));
  };
  await advance(0, first);
  await advance(1, second);
  await advance(0, Number.POSITIVE_INFINITY);
  await advance(1, Number.POSITIVE_INFINITY);
  await Promise.all(running);
  return { memory, steps, errors };
}

async function check(memory: SharedMemory): Promise<void> {
  const store = new Store(memory.storage(FREE));
  await store.blobs.sweep('2000-01-01T00:00:00.000Z');
  const isNamed = [...memory.logs.values()]
    .flat()
    .some(({ entries }) => entries.some((one) => one.type === 'message' && one.parts));
  if (isNamed) expect(await textOf(store, blob.facts.sha256)).toBe('shared');
  await store.blobs.sweep(LATER);
  if (isNamed) expect(await textOf(store, blob.facts.sha256)).toBe('shared');
  expect(memory.contents.size).toBe(isNamed ? 1 : 0);
  const left = [...memory.documents.keys()].filter((key) => /^(blob|deleting)\./.test(key));
  expect(left).toEqual(isNamed ? [`blob.${blob.facts.sha256}`] : []);
  for (const conversation of ['demo', 'other']) await store.delete(conversation);
  expect([...memory.documents.keys()]).toEqual([]);
  expect(memory.contents.size).toBe(0);
}

describe('two daemons and one blob', () => {
  for (const [title, of] of Object.entries(CASES)) {
    it(`${title}: an entry never names a blob that is gone, and nothing remains`, {
      timeout: 60_000,
    }, async () => {
      const { steps } = await run(of, 0, 0);
      const alone = await run({ ...of, one: of.other, other: of.one }, Number.POSITIVE_INFINITY, 0);
      const [most, others] = [steps[0] + 4, alone.steps[0] + 4];
      expect(Math.min(most, others)).toBeGreaterThan(5);
      for (let first = 0; first <= most; first++) {
        for (let second = 0; second <= others; second++) {
          const { memory, errors } = await run(of, first, second);
          for (const error of errors)
            expect(['MISSING_BLOB', 'LOG_CLOSED']).toContain((error as { code?: string }).code);
          await check(memory);
        }
      }
    });
  }
});

describe('a claim whose append a crash prevented', () => {
  afterEach(() => void vi.useRealTimers());

  it('a sweep releases it after an hour, also while another log has the name', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-01-01T00:00:00Z') });
    const memory = new SharedMemory();
    const store = new Store(memory.storage(FREE));
    await put(store);
    const killed = new Store(memory.storage(FREE));
    const { log } = await killed.open('demo');
    const claimed = log.append(0, [{ ...entryWith(7, blob.part), id: 'never-appended' }]);
    await expect(claimed).rejects.toMatchObject({ code: 'ENTRY_INDEX_WRONG' });
    await begin('demo')(store);
    await store.delete('demo');
    const sweepAt = async (time: string) => {
      vi.setSystemTime(new Date(time));
      return store.blobs.sweep('2000-01-01T00:00:00.000Z');
    };
    expect(await sweepAt('2026-01-01T00:59:59Z')).toBe(0);
    expect(await textOf(store, blob.facts.sha256)).toBe('shared');
    expect(await sweepAt('2026-01-01T01:00:01Z')).toBe(1);
    expect(memory.contents.size).toBe(0);
  });
});
