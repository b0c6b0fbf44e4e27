import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConversationWorker } from '../src/daemon/conversations/worker/worker.ts';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { exampleHistory } from './support/history.ts';
import { interleave, median, ratioOf, report, rounded } from './support/report.ts';
import { createRuntime } from './support/runtime.ts';
import { writeHistory } from './support/turns.ts';

/**
 * Opening a conversation as the daemon does: reading its log, checking every line, and folding the entries into the
 * state and the ids. Against reading its file and parsing each line. Closing is not in it.
 *
 *     npx tsx bench/resume.ts [directory] [entries] [rounds]
 */

const [base = tmpdir(), entryCount = '5000', roundCount = '41'] = process.argv.slice(2);
const count = Number(entryCount);

const directory = await mkdtemp(join(base, 'parley-bench-'));
try {
  const store = await openFileStore(directory);
  const runtime = createRuntime(store);
  await writeHistory(store, 'long', exampleHistory(count, runtime.team.rules));
  const path = join(directory, 'conversations', 'long', 'log.jsonl');

  function check(entries: number): void {
    if (entries !== count) throw new Error(`${entries} entries were read, ${count} were written`);
  }
  async function plain(): Promise<number> {
    const started = performance.now();
    const lines = (await readFile(path, 'utf8')).split('\n');
    lines.pop();
    const entries = lines.map((line) => JSON.parse(line));
    const elapsed = performance.now() - started;
    check(entries.length);
    return elapsed;
  }
  async function daemon(): Promise<number> {
    const started = performance.now();
    const worker = await ConversationWorker.open('long', runtime, false);
    const elapsed = performance.now() - started;
    check(worker.state.length);
    await worker.close();
    return elapsed;
  }

  const measured = await interleave({ plain, daemon }, Number(roundCount), 5);
  await store.close();
  report('resume', {
    entries: count,
    ratio: ratioOf(measured.daemon, measured.plain),
    wanted: '<= 1.5',
    daemonMs: rounded(median(measured.daemon), 2),
    plainMs: rounded(median(measured.plain), 2),
  });
} finally {
  await rm(directory, { recursive: true, force: true });
}
