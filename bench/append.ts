import { closeSync, fdatasync, openSync, write } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Entry } from '../src/conversation/index.ts';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { median, sampleEntry } from './samples.ts';

/**
 * Durable appends of many concurrent callers of one conversation, against a bare loop that does the least that
 * durability asks for: JSON.stringify, one write and one fdatasync per group. Both run in turns in one process, so
 * that the disk's moods hit both. Prints the median ratio; higher is better.
 *
 *     npx tsx bench/append.ts [directory] [callers] [appends per caller] [rounds]
 */

type Append = (entry: Entry) => Promise<unknown>;

const [base = tmpdir(), callers = '256', perCaller = '10', rounds = '101'] = process.argv.slice(2);

/** Appends per second of `callers` loops that each wait for their own append. */
async function measure(append: (next: () => Entry) => Promise<unknown>): Promise<number> {
  let index = 0;
  const next = () => sampleEntry(index++);
  const started = performance.now();
  await Promise.all(
    Array.from({ length: Number(callers) }, async () => {
      for (let count = 0; count < Number(perCaller); count += 1) await append(next);
    }),
  );
  return (Number(callers) * Number(perCaller) * 1000) / (performance.now() - started);
}

/** The bare loop: no checksum, no lengths, no faults, no reading back. */
function bareLoop(path: string): { append: Append; close: () => void } {
  const file = openSync(path, 'w');
  let waiting: { line: string; resolve: () => void }[] = [];
  let running = false;
  function commit(): void {
    const group = waiting;
    waiting = [];
    if (group.length === 0) {
      running = false;
      return;
    }
    const bytes = Buffer.from(group.map((append) => append.line).join(''));
    write(file, bytes, 0, bytes.length, null, (writeError) => {
      if (writeError) throw writeError;
      fdatasync(file, (syncError) => {
        if (syncError) throw syncError;
        for (const append of group) append.resolve();
        setImmediate(commit);
      });
    });
  }
  return {
    append: (entry) =>
      new Promise<void>((resolve) => {
        waiting.push({ line: `${JSON.stringify(entry)}\n`, resolve });
        if (running) return;
        running = true;
        setImmediate(commit);
      }),
    close: () => closeSync(file),
  };
}

const directory = await mkdtemp(join(base, 'parley-bench-'));
try {
  const store = await openFileStore(join(directory, 'data'));
  const ratios: number[] = [];
  const rates = { bare: [] as number[], store: [] as number[] };
  for (let round = 0; round <= Number(rounds); round += 1) {
    const bare = async () => {
      const loop = bareLoop(join(directory, `bare-${round}`));
      const rate = await measure((next) => loop.append(next()));
      loop.close();
      return rate;
    };
    const parley = async () => {
      const { log } = await store.open(`round-${round}`);
      const rate = await measure((next) => log.append(log.length, [next()]));
      await log.close();
      return rate;
    };
    const order = round % 2 === 0 ? [bare, parley] : [parley, bare];
    const seen = new Map<unknown, number>();
    for (const run of order) seen.set(run, await run());
    // The first round warms up.
    if (round === 0) continue;
    const pair = { bare: seen.get(bare) ?? 0, store: seen.get(parley) ?? 0 };
    rates.bare.push(pair.bare);
    rates.store.push(pair.store);
    ratios.push(pair.store / pair.bare);
  }
  await store.close();
  console.log(
    JSON.stringify({
      bench: 'append',
      callers: Number(callers),
      ratio: Number(median(ratios).toFixed(3)),
      wanted: '>= 0.8',
      barePerSecond: Math.round(median(rates.bare)),
      storePerSecond: Math.round(median(rates.store)),
    }),
  );
} finally {
  await rm(directory, { recursive: true, force: true });
}
