import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { median, sampleEntry } from './samples.ts';

/**
 * Opening a conversation of many entries, against reading its file and parsing each line. Both run in turns in one
 * process. Prints the median ratio; lower is better.
 *
 *     npx tsx bench/reopen.ts [directory] [entries] [rounds]
 */

const [base = tmpdir(), entryCount = '5000', rounds = '31'] = process.argv.slice(2);
const count = Number(entryCount);

async function timed(work: () => Promise<number>): Promise<number> {
  const started = performance.now();
  const entries = await work();
  const elapsed = performance.now() - started;
  if (entries !== count) throw new Error(`${entries} entries were read, ${count} were written`);
  return elapsed;
}

const directory = await mkdtemp(join(base, 'parley-bench-'));
try {
  const store = await openFileStore(directory);
  const path = join(directory, 'conversations', 'long', 'log.jsonl');
  const { log } = await store.open('long');
  for (let index = 0; index < count; index += 1) void log.append(index, [sampleEntry(index)]);
  await log.close();

  async function plain(): Promise<number> {
    const lines = (await readFile(path, 'utf8')).split('\n');
    lines.pop();
    return lines.map((line) => JSON.parse(line)).length;
  }
  async function parley(): Promise<number> {
    const opened = await store.open('long');
    await opened.log.close();
    return opened.entries.length;
  }

  const ratios: number[] = [];
  const times = { plain: [] as number[], store: [] as number[] };
  for (let round = 0; round < Number(rounds) + 3; round += 1) {
    const first = round % 2 === 0 ? plain : parley;
    const firstTime = await timed(first);
    const secondTime = await timed(first === plain ? parley : plain);
    // The first rounds warm up.
    if (round < 3) continue;
    const pair =
      first === plain ? { plain: firstTime, store: secondTime } : { plain: secondTime, store: firstTime };
    times.plain.push(pair.plain);
    times.store.push(pair.store);
    ratios.push(pair.store / pair.plain);
  }
  await store.close();
  console.log(
    JSON.stringify({
      bench: 'reopen',
      entries: count,
      ratio: Number(median(ratios).toFixed(3)),
      wanted: '<= 1.5',
      plainMs: Number(median(times.plain).toFixed(2)),
      storeMs: Number(median(times.store).toFixed(2)),
    }),
  );
} finally {
  await rm(directory, { recursive: true, force: true });
}
