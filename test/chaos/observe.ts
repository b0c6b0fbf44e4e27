import { setTimeout as pause } from 'node:timers/promises';
import { type Entry, type ParleyClient, ParleyError, type View } from '../../src/client/index.ts';
import type { Acknowledged } from './actors/publishers.ts';
import { outstandingIn } from './checks/answers.ts';
import { type SeenView, type Violation, violation } from './findings.ts';
import { AGENTS } from './scenario.ts';

/** Observes a daemon through its public request API. */

const POLL_MS = 300;
/** The limit also for logs that still grow: a team that never becomes idle is a violation. */
const LONGEST_WAIT_MS = 1_800_000;
/** Requests for answers that are checked, per conversation and agent, besides those at the end. */
const SAMPLES = 12;

export type Logs = ReadonlyMap<string, readonly Entry[]>;

/** Ends a wait after this time without progress, because a busy machine alone is not a fault of the daemon. */
export class ProgressTimeout {
  readonly #patienceMs: number;
  readonly #end = performance.now() + LONGEST_WAIT_MS;
  #until: number;
  #seen = -1;

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
    this.#until = performance.now() + patienceMs;
  }

  /** `progress` increases with the awaited work. */
  isOver(progress: number): boolean {
    const now = performance.now();
    if (progress > this.#seen) this.#until = Math.min(now + this.#patienceMs, this.#end);
    this.#seen = progress;
    return now > this.#until;
  }
}

/** The reasons of dead letters by the id of the post; empty if the daemon does not answer. */
export async function readRefusals(client: ParleyClient): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>();
  try {
    for (let before: number | undefined; ; ) {
      const { letters, next } = await client.request('dead', before === undefined ? {} : { before });
      for (const { id = '', code, reason } of letters) refused.set(id, `${code}: ${reason}`);
      if (next === null) return refused;
      before = next;
    }
  } catch {
    return refused;
  }
}

/**
 * Waits until no log has outstanding work and each acknowledged post is in a log. Returns what is outstanding when
 * no log has grown for the given time.
 */
export async function waitUntilIdle(
  client: ParleyClient,
  acknowledged: readonly Acknowledged[],
  patienceMs: number,
): Promise<{ readonly logs: Logs; readonly outstanding: readonly Violation[] }> {
  const posted = new Map<string, Set<string>>();
  for (const { post } of acknowledged)
    posted.set(post.conversation, (posted.get(post.conversation) ?? new Set()).add(post.id));
  const patience = new ProgressTimeout(patienceMs);
  const logs = new Map<string, readonly Entry[]>();
  for (;;) {
    const outstanding = [];
    let isWhole = true;
    for (const [conversation, ids] of posted) {
      const known = logs.get(conversation) ?? [];
      const found = await readLog(client, conversation, known).catch(() => null);
      if (!found)
        outstanding.push(violation('outstanding', conversation, null, 'the daemon does not show its log'));
      else logs.set(conversation, found);
      outstanding.push(...outstandingIn(conversation, found ?? []));
      const present = new Set(found?.map(({ id }) => id));
      if ([...ids].some((id) => !present.has(id))) isWhole = false;
    }
    const entries = [...logs.values()].reduce((sum, log) => sum + log.length, 0);
    if ((outstanding.length === 0 && isWhole) || patience.isOver(entries)) return { logs, outstanding };
    await pause(POLL_MS);
  }
}

/** Reads the log from the last position on. */
async function readLog(
  client: ParleyClient,
  conversation: string,
  known: readonly Entry[],
): Promise<Entry[]> {
  const entries = [...known];
  for (;;) {
    const page = await client.request('entries', { conversation, from: entries.length });
    entries.push(...page.entries);
    if (entries.length >= page.length) return entries;
  }
}

/** Reads the whole log again, to verify that it has not changed. */
export function rereadLog(client: ParleyClient, conversation: string): Promise<Entry[]> {
  return readLog(client, conversation, []);
}

/** Requests for answers, spread over each log, and the next request of every agent. */
export async function seeViews(client: ParleyClient, logs: Logs): Promise<SeenView[]> {
  const views: SeenView[] = [];
  for (const [conversation, entries] of logs) {
    for (const agent of AGENTS) {
      const answers = entries.filter(
        (entry) => entry.type === 'message' && entry.role === 'assistant' && entry.author.id === agent,
      );
      const stride = Math.max(1, Math.ceil(answers.length / SAMPLES));
      const sampled = answers.filter((_, place) => place % stride === 0 || place === answers.length - 1);
      for (const at of [...sampled.map(({ index }) => index), null]) {
        views.push(await seeView(client, conversation, agent, at));
      }
    }
  }
  return views;
}

async function seeView(
  client: ParleyClient,
  conversation: string,
  agent: string,
  at: number | null,
): Promise<SeenView> {
  const seen = { conversation, agent, at };
  try {
    const asked = { conversation, agent, ...(at === null ? {} : { at }) };
    const { messages, report } = await client.request('view', asked);
    return { ...seen, messages, ...(report as unknown as Omit<SeenView, 'messages' | keyof typeof seen>) };
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error;
    const fault = { code: error.code, message: error.message };
    return { ...seen, messages: [] as View['messages'], requestHash: '', included: [], parts: [], fault };
  }
}
