import { DEFAULT_VIEW_POLICY, type Entry, RECALL_CHARACTERS, recall } from '../src/conversation/index.ts';
import { sleep } from '../src/kernel/index.ts';
import { inSlices } from '../src/tools/builtin/recall.ts';
import { median, report, rounded, timed } from './support/report.ts';

/**
 * `recall` of one agent in a long log: entries by their indexes, and by words. How long it takes, and the longest time
 * in which nothing else could run; once more for the same process doing nothing, since a busy machine blocks too. One
 * person speaks, every second entry is another agent's.
 *
 *     npx tsx bench/recall.ts [entries] [bytes of an entry] [rounds]
 */

const [entryCount = '100000', entryBytes = '1024', roundCount = '7'] = process.argv.slice(2);
const count = Number(entryCount);
const bytes = Number(entryBytes);
const rounds = Number(roundCount);

const WORDS =
  'the upload of a large file stops at the proxy [1] and nobody knows why; we read its log = line by line '
    .repeat(Math.ceil(bytes / 100))
    .slice(0, bytes - 20);

function entryAt(index: number): Entry {
  const author =
    index % 2 === 0
      ? ({ kind: 'person', id: 'alice', name: 'Alice' } as const)
      : ({ kind: 'agent', id: 'dev', name: 'Developer' } as const);
  const role = index % 2 === 0 ? 'user' : 'assistant';
  // Not one string for all: each is read from its own place in memory, as it is after opening a log.
  const content = Buffer.from(`${index} ${index % 1_000 === 0 ? 'needle ' : ''}${WORDS}`).toString();
  return {
    index,
    id: `e${index}`,
    createdAt: '2026-11-22T00:00:00.000Z',
    type: 'message',
    role,
    author,
    content,
  };
}

const entries = Array.from({ length: count }, (_, index) => entryAt(index));

/** The longest time between two turns of the event loop while this ran. */
async function longestBlock(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  let running = true;
  const look = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (running) setImmediate(look);
  };
  setImmediate(look);
  await work();
  look();
  running = false;
  return longest;
}

const { signal } = new AbortController();
const ask = (request: object) => async () => {
  const answer = await inSlices(recall(entries, 'pm', DEFAULT_VIEW_POLICY, request), signal);
  if (!answer.ok || answer.text.length > 2 * RECALL_CHARACTERS) throw new Error(JSON.stringify(answer));
};

const requests: Readonly<Record<string, () => Promise<void>>> = {
  nothing: () => sleep(300),
  'a range at the end': ask({ from: count - 100 }),
  'a rare word': ask({ query: 'needle' }),
  'three words that are everywhere': ask({ query: 'upload proxy log' }),
  'a phrase': ask({ query: '"needle the upload"' }),
};

for (const [what, request] of Object.entries(requests)) {
  const times: number[] = [];
  const blocks: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const block = await longestBlock(async () => {
      const time = await timed(request);
      if (round > 0) times.push(time);
    });
    if (round > 0) blocks.push(block);
  }
  report('recall', {
    entries: count,
    bytes,
    what,
    ms: rounded(median(times), 1),
    longestBlockMs: rounded(median(blocks), 1),
    worstBlockMs: rounded(Math.max(...blocks), 1),
  });
}
