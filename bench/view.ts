import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ModelRequest, Requests, sealed } from '../src/agents/index.ts';
import { assembleOnce } from '../src/agents/requests/requests.ts';
import { Conversation, type Entry } from '../src/conversation/index.ts';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { collectGarbage } from './support/garbage.ts';
import { ENTRIES_OF_A_TURN, exampleHistory, examplePost, type Words } from './support/history.ts';
import { interleave, median, ratioOf, report, rounded } from './support/report.ts';
import { createRuntime } from './support/runtime.ts';
import { writeHistory } from './support/turns.ts';

/**
 * What it takes to make a request of many messages, against JSON.stringify and UTF-8 of the same body, which any
 * program that keeps messages as objects pays for each request. Three figures, each for text that is all ASCII and for
 * text with other characters in each message (V8 keeps and encodes the two in different ways):
 *
 * - `view-warm`: the next request of an agent whose earlier ones this process made, after one more turn.
 * - `view-rebuilt`: the same from entries in memory and nothing else: what the agent knows, its words, the bytes.
 * - `view-cold`: the same from the disk, of a conversation that the store has not open: the log is read and checked,
 *   folded into the state, and then as above. The file is in the system's cache; the code is warm; what opening the
 *   store takes, once for a daemon, is not in it (`startup`).
 *
 * Every request passes the guard and carries its hash, which the other side does not. What a sample leaves behind is
 * collected before the next one, and not measured.
 *
 *     npx tsx bench/view.ts [directory] [messages] [rounds]
 */

const [base = tmpdir(), messageCount = '10000', roundCount = '31'] = process.argv.slice(2);
const messages = Number(messageCount);
const rounds = Number(roundCount);
const AGENT = 'pm';
const BYTES = 1_024;

const TEXTS: Readonly<Record<string, string>> = {
  ascii: 'we read the log once and parse each line; "no more" than that, and then we look again. ',
  mixed: 'we read the log once and parse each line — “no more” than that, und dann prüfen wir es. ',
};

/** Messages of a KiB each, no two alike. */
function wordsOf(text: string): Words {
  const plenty = Buffer.from(text.repeat(BYTES / 64));
  const say = (start: string) => {
    const begun = Buffer.from(start);
    // Not cut within a character.
    return Buffer.concat([begun, plenty])
      .subarray(0, BYTES)
      .toString('utf8')
      .replace(/\uFFFD+$/u, '');
  };
  return { post: (number) => say(`Step ${number}: `), answer: (number) => say(`Answer ${number}: `) };
}

function turnOf(conversation: Conversation): string {
  const turn = conversation.state.agents[AGENT]?.turn;
  if (!turn) throw new Error('no turn is open');
  return turn.turnId;
}

function sendable(next: ReturnType<Requests['draft']>): ModelRequest {
  if (!next || next.draft.fault || next.reduction) throw new Error('no request that may be sent');
  return sealed(next.draft, new Map()).request;
}

/** What any program does. */
function plainBody(body: object): Uint8Array {
  return Buffer.from(JSON.stringify(body));
}

function elapsed(work: () => unknown): number {
  collectGarbage();
  const started = performance.now();
  work();
  return performance.now() - started;
}

async function measure(directory: string, kind: string, text: string): Promise<void> {
  const words = wordsOf(text);
  const store = await openFileStore(directory);
  const { rules, sources } = createRuntime(store).team;
  const setup = sources.agents.get(AGENT)!;
  const made = new Conversation(rules, exampleHistory((messages / 2) * ENTRIES_OF_A_TURN, rules, words));
  const ask = (number: number) => made.apply({ type: 'post', post: examplePost(number, words) }, Date.now());
  ask(10_000_000);
  await writeHistory(store, kind, made.entries);

  // What came from a disk has its strings in other places of the memory than what was just made.
  const conversation = new Conversation(rules, JSON.parse(JSON.stringify(made.entries)) as Entry[]);
  const requests = new Requests(kind, () => sources);
  const first = sendable(requests.draft(conversation, AGENT, turnOf(conversation)));
  const body = Buffer.concat(first.body);
  const parsed = JSON.parse(body.toString('utf8')) as object;
  if (!Buffer.from(plainBody(parsed)).equals(body)) throw new Error('the sides make different bytes');
  const rebuild = () => {
    const { draft } = assembleOnce(sources, setup, conversation.entries, conversation.state, kind);
    return sealed(draft, new Map()).request;
  };
  if (rebuild().hash !== first.hash) throw new Error('rebuilt, it has other bytes');

  const cold = async () => {
    collectGarbage();
    const started = performance.now();
    const { log, entries } = await store.open(kind);
    const again = new Conversation(rules, entries);
    const request = sendable(new Requests(kind, () => sources).draft(again, AGENT, turnOf(again)));
    const took = performance.now() - started;
    if (request.hash !== first.hash) throw new Error('from the disk, it has other bytes');
    await log.close();
    return took;
  };
  let posts = 20_000_000;
  const warm = async () => {
    answer(conversation, turnOf(conversation), words.answer(posts));
    conversation.apply({ type: 'post', post: examplePost(++posts * 10, words) }, Date.now());
    return elapsed(() => sendable(requests.draft(conversation, AGENT, turnOf(conversation))));
  };
  const measured = await interleave(
    {
      plain: async () => elapsed(() => plainBody(parsed)),
      warm,
      rebuilt: async () => elapsed(rebuild),
      cold,
    },
    rounds,
    5,
  );
  const common = { messages, bytes: BYTES, text: kind };
  const figure = (name: 'warm' | 'rebuilt' | 'cold', wanted: string) =>
    report(`view-${name}`, {
      ...common,
      ratio: ratioOf(measured[name], measured.plain),
      wanted,
      ms: rounded(median(measured[name]), 2),
      plainMs: rounded(median(measured.plain), 2),
    });
  figure('warm', '<= 0.1');
  figure('rebuilt', '<= 1.5');
  figure('cold', '<= 3');
  await store.close();
}

function answer(conversation: Conversation, turnId: string, content: string): void {
  const upTo = conversation.entries.length;
  const report = { agent: AGENT, turnId, duration: 900, requestHash: 'f'.repeat(64), upTo };
  conversation.apply({ type: 'model-answered', answer: { content, toolCalls: [] }, ...report }, Date.now());
}

const directory = await mkdtemp(join(base, 'parley-bench-'));
try {
  for (const [kind, text] of Object.entries(TEXTS)) await measure(join(directory, kind), kind, text);
} finally {
  await rm(directory, { recursive: true, force: true });
}
