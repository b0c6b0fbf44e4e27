import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSearchIndex, type SearchDocument } from '../src/search/index.ts';
import { median, report, rounded, timed } from './support/report.ts';

/**
 * The search index: the time to build it, and to find a rare word, a word that every message has, two frequent words, the
 * beginning of words, and a frequent word of one agent. `memory`: of the process, with the index in its thread.
 *
 *     npx tsx bench/search.ts [entries] [rounds]
 */

const [entryCount = '1000000', roundCount = '5'] = process.argv.slice(2);
const count = Number(entryCount);
const rounds = Number(roundCount);
const OF_A_CONVERSATION = 100;
const BATCH = 2_000;
const VOCABULARY = 20_000;

let seed = 1;
/** The same texts in each run. */
function random(): number {
  seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
  return seed / 0x7fffffff;
}

/** Few words are frequent and most are rare, as in a language. */
function textOf(index: number): string {
  const words = Array.from(
    { length: 20 + random() * 40 },
    () => `w${Math.floor(VOCABULARY * random() ** 3).toString(36)}`,
  );
  return `${index % 100_000 === 7 ? 'needle ' : ''}the ${words.join(' ')}`;
}

function documentAt(index: number): SearchDocument {
  const isAgent = index % 2 === 1;
  return {
    index: index % OF_A_CONVERSATION,
    at: new Date(Date.UTC(2026, 0, 1) + index * 1_000).toISOString(),
    author: isAgent
      ? { kind: 'agent', id: index % 20 === 1 ? 'dev' : 'pm', name: 'Agent' }
      : { kind: 'person', id: 'web/alice', name: 'alice' },
    phase: 'chat',
    text: textOf(index),
  };
}

const folder = await mkdtemp(join(tmpdir(), 'parley-bench-'));
const path = join(folder, 'index.sqlite');
const index = openSearchIndex(path);
try {
  const built = await timed(async () => {
    for (let from = 0; from < count; from += BATCH) {
      const batch = [];
      for (let first = from; first < Math.min(from + BATCH, count); first += OF_A_CONVERSATION) {
        const documents = Array.from({ length: OF_A_CONVERSATION }, (_, at) => documentAt(first + at));
        const id = `conversation-${first / OF_A_CONVERSATION}`;
        batch.push({ id, length: OF_A_CONVERSATION, lastId: `e${first}`, updatedAt: '', documents });
      }
      await index.put(batch);
    }
  });
  const queries = {
    rareMs: { text: 'needle' },
    frequentMs: { text: 'the ' },
    twoFrequentMs: { text: 'the w1 ' },
    beginningMs: { text: 'w1a' },
    frequentBeginningMs: { text: 'the' },
    oneAgentMs: { text: 'the ', agent: 'dev' },
    oneConversationMs: { text: 'the ', conversation: 'conversation-7' },
    newestHourMs: {
      text: 'the ',
      after: new Date(Date.UTC(2026, 0, 1) + (count - 3_600) * 1_000).toISOString(),
    },
  };
  const figures: Record<string, number> = {};
  for (const [name, query] of Object.entries(queries)) {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++)
      times.push(await timed(() => index.search({ ...query, limit: 20 })));
    figures[name] = rounded(median(times), 1);
  }
  const added = await timed(() =>
    index.put([{ id: 'new', length: 1, lastId: 'x', updatedAt: '', documents: [documentAt(count)] }]),
  );
  const removed = await timed(() => index.remove(['conversation-7']));
  report('search', {
    ...{ entries: count, buildS: rounded(built / 1_000, 1) },
    ...figures,
    ...{ addOneMs: rounded(added, 1), removeConversationMs: rounded(removed, 1) },
    fileMB: rounded((await stat(path)).size / 1e6, 0),
    memoryMB: rounded(process.memoryUsage().rss / 1e6, 0),
  });
} finally {
  await index.close();
  await rm(folder, { recursive: true, force: true });
}
