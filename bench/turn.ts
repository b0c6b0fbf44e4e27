import { closeSync, fdatasync, openSync, write } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Entry } from '../src/conversation/index.ts';
import type { ConversationWorker } from '../src/daemon/conversations/worker/worker.ts';
import type { ConversationStore } from '../src/persistence/index.ts';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { createMemoryStore } from '../src/persistence/memory/index.ts';
import { ENTRIES_OF_A_TURN } from './support/history.ts';
import { interleave, median, ratioOf, report, rounded, timed } from './support/report.ts';
import { openWorkplace } from './support/turns.ts';

/**
 * What one turn costs besides the model: from the post to the durable end of its turn, with a model that answers at
 * once, in a conversation of many entries and in short ones. Three figures:
 *
 * - `turn`: with the file store, as the daemon runs. Against it the floor: JSON.stringify, write and fdatasync of
 *   the same entries, twice a turn, as no store can do with less.
 * - `turn-memory`: with the store in memory, so without the disk: the computing alone, where a cost that grows with
 *   the history cannot hide behind the disk.
 * - `turn-first`: the first turn after a conversation was opened, which has its whole history to word.
 *
 *     npx tsx bench/turn.ts [directory] [entries] [rounds]
 */

const [base = tmpdir(), entryCount = '5000', roundCount = '200'] = process.argv.slice(2);
const many = Number(entryCount);
const few = 10;
const rounds = Number(roundCount);
const warmUp = 20;

/** Many short conversations, since one that is used again is no longer short; each has had a turn before. */
async function contestants(store: ConversationStore) {
  const place = openWorkplace(store);
  const short: ConversationWorker[] = [];
  for (let round = 0; round < rounds + warmUp; round += 1) {
    const worker = await place.open(`short-${round}`, few - ENTRIES_OF_A_TURN);
    await place.turn(worker);
    short.push(worker);
  }
  const long = await place.open('long', many - ENTRIES_OF_A_TURN);
  await place.turn(long);
  return {
    batches: () => place.turn(long),
    few: (round: number) => timed(() => place.turn(short[round]!)),
    many: () => timed(() => place.turn(long)),
    close: () => Promise.all([...short, long].map((worker) => worker.close())),
  };
}

/** Stringify, write, wait for the disk; nothing else. */
function floor(path: string, batches: readonly (readonly Entry[])[]) {
  const file = openSync(path, 'w');
  const append = (entries: readonly Entry[]) =>
    new Promise<void>((resolve, reject) => {
      const bytes = Buffer.from(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
      write(file, bytes, 0, bytes.length, null, (writeError) => {
        if (writeError) return reject(writeError);
        fdatasync(file, (syncError) => (syncError ? reject(syncError) : resolve()));
      });
    });
  return {
    floor: () =>
      timed(async () => {
        for (const entries of batches) await append(entries);
      }),
    close: () => closeSync(file),
  };
}

async function durableTurns(directory: string): Promise<void> {
  const store = await openFileStore(join(directory, 'turn'));
  const turns = await contestants(store);
  const bare = floor(join(directory, 'floor'), await turns.batches());
  const measured = await interleave({ few: turns.few, many: turns.many, floor: bare.floor }, rounds, warmUp);
  bare.close();
  await turns.close();
  await store.close();
  report('turn', {
    entries: `${many} : ${few}`,
    ratio: ratioOf(measured.many, measured.few),
    wanted: '<= 1.15',
    manyMs: rounded(median(measured.many)),
    fewMs: rounded(median(measured.few)),
    floorMs: rounded(median(measured.floor)),
    fewToFloor: ratioOf(measured.few, measured.floor),
    manyToFloor: ratioOf(measured.many, measured.floor),
  });
}

async function turnsInMemory(): Promise<void> {
  const store = createMemoryStore();
  const turns = await contestants(store);
  const measured = await interleave({ few: turns.few, many: turns.many }, rounds, warmUp);
  await turns.close();
  await store.close();
  report('turn-memory', {
    entries: `${many} : ${few}`,
    ratio: ratioOf(measured.many, measured.few),
    manyMs: rounded(median(measured.many)),
    fewMs: rounded(median(measured.few)),
  });
}

async function firstTurns(directory: string): Promise<void> {
  const store = await openFileStore(join(directory, 'first'));
  const place = openWorkplace(store);
  const first = async (conversation: string, length: number) => {
    const worker = await place.open(conversation, length);
    const elapsed = await timed(() => place.turn(worker));
    await worker.close();
    return elapsed;
  };
  const measured = await interleave(
    {
      few: (round) => first(`short-${round}`, few),
      many: (round) => first(`long-${round}`, many),
    },
    Math.min(rounds, 15),
    2,
  );
  await store.close();
  report('turn-first', {
    entries: `${many} : ${few}`,
    manyMs: rounded(median(measured.many)),
    fewMs: rounded(median(measured.few)),
  });
}

const directory = await mkdtemp(join(base, 'parley-bench-'));
try {
  await durableTurns(directory);
  await turnsInMemory();
  await firstTurns(directory);
} finally {
  await rm(directory, { recursive: true, force: true });
}
