import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Entry } from '../src/conversation/index.ts';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { ENTRIES_OF_A_TURN } from './support/history.ts';
import { report, rounded } from './support/report.ts';
import { openWorkplace } from './support/turns.ts';

/**
 * Bytes written per turn, in conversations of growing length. The log's are what its file grew by. The projections
 * (the row in the list, the state document) are written when a conversation leaves memory, not per turn: they are
 * counted apart. On Linux the kernel also says what the process wrote altogether, which shows that nothing else is
 * rewritten outside of the log; it includes some bytes with which threads wake one another.
 *
 *     npx tsx bench/bytes.ts [directory] [turns]
 */

const [base = tmpdir(), turnCount = '50'] = process.argv.slice(2);
const turns = Number(turnCount);
const LENGTHS = [10, 100, 1_000, 10_000];

interface Bytes {
  readonly log: number;
  /** The same entries as JSON, without newlines. */
  readonly entries: number;
  readonly process: number | null;
  readonly projections: number;
}

async function writtenByProcess(): Promise<number | null> {
  const text = await readFile('/proc/self/io', 'utf8').catch(() => '');
  const found = /^wchar: (\d+)$/m.exec(text);
  return found ? Number(found[1]) : null;
}

/** What the files under `folder` hold, logs left out. */
async function projectionBytes(folder: string): Promise<number> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.json'));
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((total, size) => total + size, 0);
}

async function measure(directory: string, length: number): Promise<Bytes> {
  const store = await openFileStore(directory);
  const place = openWorkplace(store);
  const worker = await place.open('demo', length - ENTRIES_OF_A_TURN);
  await place.turn(worker); // the first append after opening also marks the conversation as open
  const log = join(directory, 'conversations', 'demo', 'log.jsonl');
  const before = { log: (await stat(log)).size, process: await writtenByProcess() };
  const written: Entry[] = [];
  for (let turn = 0; turn < turns; turn += 1) written.push(...(await place.turn(worker)).flat());
  const after = { log: (await stat(log)).size, process: await writtenByProcess() };
  await worker.close();
  await store.close();
  const json = written.reduce((total, entry) => total + Buffer.byteLength(JSON.stringify(entry)), 0);
  return {
    log: (after.log - before.log) / turns,
    entries: json / turns,
    process:
      after.process === null || before.process === null ? null : (after.process - before.process) / turns,
    projections: await projectionBytes(join(directory, 'conversations')),
  };
}

const directory = await mkdtemp(join(base, 'parley-bench-'));
try {
  const all: Bytes[] = [];
  for (const length of LENGTHS) {
    const bytes = await measure(join(directory, String(length)), length);
    all.push(bytes);
    report('bytes', {
      entries: length,
      ratio: rounded(bytes.log / bytes.entries),
      wanted: '<= 1.3',
      logPerTurn: Math.round(bytes.log),
      jsonPerTurn: Math.round(bytes.entries),
      ...(bytes.process === null ? {} : { processPerTurn: Math.round(bytes.process) }),
      projectionsPerClose: bytes.projections,
    });
  }
  const [first, last] = [all[0]!, all.at(-1)!];
  report('bytes-flat', {
    lengths: LENGTHS.join(' : '),
    ratio: rounded(last.log / first.log),
    wanted: 'about 1',
  });
} finally {
  await rm(directory, { recursive: true, force: true });
}
