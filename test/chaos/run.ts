import type { Entry, ParleyClient, PendingApproval } from '../../src/client/index.ts';
import { sleep } from '../../src/kernel/index.ts';
import { createPublishers, type Publishers } from './actors/publishers.ts';
import { checkAnswered } from './checks/answers.ts';
import { checkPosts } from './checks/posts.ts';
import { type Seen, takeoversIn } from './checks/takeovers.ts';
import { checkViews } from './checks/views.ts';
import {
  checkDescriptors,
  checkEnd,
  countDescriptors,
  createEnvironment,
  type Environment,
  processesIn,
} from './environment.ts';
import { checkEffects, checkLogs, type Observed, type Violation, violation } from './findings.ts';
import { ProgressTimeout, readRefusals, rereadLog, seeViews, waitUntilIdle } from './observe.ts';
import { type ChaosReport, keepEvidence } from './report.ts';
import { hash } from './rng.ts';
import { type RunOutcome, runSchedule } from './runner.ts';
import type { Schedule } from './schedule.ts';

/**
 * A run: faults for a while, then recovery, then the checks.
 *
 * CHAOS-RUN-1 The checks use only outside observations: logs and views from the request API, effects from the tool server.
 * CHAOS-RUN-2 A run leaves no process, directory or mounted disk. (A second signal ends it at once and leaves its directory.)
 */

export interface ChaosOptions {
  readonly schedule: Schedule;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Prints progress for people. */
  readonly say: (line: string) => void;
  /** The command that starts the daemon; default: the command line of this package. */
  readonly launcher?: string;
  /** Where logs are stored: in files by default; in a stream if several daemons share them. */
  readonly store?: 'file' | 'jetstream';
  /** The failure timeout after which other daemons take over; default: the product default. */
  readonly failureTimeoutMs?: number;
  /** The directory for the logs and the report of a run with violations; null: they are deleted. */
  readonly keep: string | null;
  /** Ends the faults early. */
  readonly signal: AbortSignal;
}

/** Outstanding work after the last fault is a finding after this time without a new entry. */
const PROGRESS_TIMEOUT_MS = 90_000;
const TICK_MS = 300;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { schedule } = options;
  const startedAt = performance.now();
  const { daemons = 1, servers = 1 } = schedule;
  const environment = await createEnvironment({ ...options, daemons, servers });
  const giveUp = new AbortController();
  let publishers: Publishers | null = null;
  try {
    const person = createPersonActor(environment.client, giveUp.signal);
    const people = await createPublishers(environment.proxies.publishers.url, schedule.posts, giveUp.signal);
    publishers = people;
    options.say(`faults for ${schedule.seconds} s (seed ${schedule.seed})`);
    const done = await runSchedule(schedule, environment, options.signal, () => people.nextBatch());
    options.say('no more faults; waiting until no work is outstanding');
    const found = await checkRun(environment, schedule, people);
    giveUp.abort();
    await person.done;
    await people.close();
    publishers = null;
    const ended = await stopAndCheckLeftovers(environment);
    const violations = [...found.violations, ...ended];
    const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
    const counts = countsOf(
      environment,
      done,
      found.observed,
      person.answered,
      found.sent,
      found.descriptors,
    );
    const report = { seed: schedule.seed, faultSeconds: schedule.seconds, seconds, ...counts, violations };
    if (options.keep !== null && violations.length > 0)
      await keepEvidence(options.keep, report, found.observed, seenOf(environment));
    return report;
  } finally {
    giveUp.abort();
    await publishers?.close();
    await environment.close(); // CHAOS-RUN-2
  }
}

async function checkRun(environment: Environment, schedule: Schedule, publishers: Publishers) {
  if (schedule.posting === 'while-faults') publishers.enough();
  else publishers.hurry();
  const violations: Violation[] = [];
  if (!(await allPosted(publishers)))
    violations.push(violation('posts', null, null, 'not every message could be posted in time'));
  for (const { post, code, message } of publishers.refused) {
    violations.push(
      violation('posts', post.conversation, null, `${post.id} was refused: ${code}: ${message}`),
    );
  }
  const conversations = [...new Set(publishers.acknowledged.map(({ post }) => post.conversation))];
  const { logs, outstanding } = await waitUntilIdle(
    environment.client,
    publishers.acknowledged,
    PROGRESS_TIMEOUT_MS,
  );
  const held = await Promise.all(environment.daemons.map(({ pid }) => countDescriptors(pid)));
  const views = await seeViews(environment.client, logs);
  const { acknowledged, sent } = publishers;
  const observed: Observed = {
    planned: schedule.posts,
    acknowledged,
    logs,
    views,
    effects: environment.tools.effects,
    refused: await readRefusals(environment.client),
  };
  violations.push(
    ...checkPosts(observed),
    ...outstanding,
    ...checkAnswered(observed).filter(({ law }) => law !== 'outstanding'),
    ...checkLogs(observed),
    ...checkEffects(observed),
    ...checkViews(observed),
    ...held.flatMap((descriptors) => checkDescriptors(descriptors, conversations.length)),
    ...(await checkUnchanged(environment, logs)),
    ...environment.daemons
      .flatMap(({ findings }) => findings)
      .map((text) => violation('daemon', null, null, `unexpected end: ${text}`)),
  );
  const descriptors = held.includes(null) ? null : Math.max(...held.map(Number));
  return { observed, violations, sent, descriptors };
}

async function allPosted(publishers: Publishers): Promise<boolean> {
  const patience = new ProgressTimeout(PROGRESS_TIMEOUT_MS);
  const isDone = publishers.done.then(() => true);
  while (!patience.isOver(publishers.acknowledged.length + publishers.refused.length)) {
    const tick = new Promise<false>((resolve) => setTimeout(() => resolve(false), TICK_MS));
    if (await Promise.race([isDone, tick])) return true;
  }
  return false;
}

/** A log must read the same after the daemon has opened its files again. */
async function checkUnchanged(
  { daemons, client }: Environment,
  logs: ReadonlyMap<string, readonly Entry[]>,
): Promise<Violation[]> {
  await Promise.all(daemons.map((daemon) => daemon.stop(0)));
  const found: Violation[] = [];
  for (const [conversation, entries] of logs) {
    const again = await untilAnswered(() => rereadLog(client, conversation));
    if (JSON.stringify(again) === JSON.stringify(entries)) continue;
    const at = entries.findIndex((entry, index) => JSON.stringify(entry) !== JSON.stringify(again?.[index]));
    const index = at < 0 ? entries.length : at;
    found.push(violation('log', conversation, index, 'the log differs after a restart'));
  }
  return found;
}

async function untilAnswered<T>(ask: () => Promise<T>): Promise<T | null> {
  for (let attempt = 0; attempt < 30; attempt++) {
    const answer = await ask().catch(() => null);
    if (answer !== null) return answer;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return null;
}

/** Stops each daemon by SIGTERM and checks what it leaves. */
async function stopAndCheckLeftovers(environment: Environment): Promise<Violation[]> {
  const ends = environment.daemons.map(async (daemon) => checkEnd(daemon.data, await daemon.stopForGood()));
  const found = (await Promise.all(ends)).flat();
  await Promise.all(environment.servers.map((server) => server.end('SIGTERM')));
  const orphans = await processesIn(environment.root);
  return [
    ...found,
    ...orphans.map((line) => violation('leftovers', null, null, `a process is left: ${line}`)),
  ];
}

function seenOf({ daemons }: Environment): Seen {
  return {
    outages: daemons.flatMap(({ outages }) => outages),
    lives: daemons.flatMap(({ lives }) => lives),
  };
}

function countsOf(
  environment: Environment,
  { counts: faults, skipped }: RunOutcome,
  { logs, acknowledged, views, effects }: Observed,
  approvals: number,
  sent: number,
  descriptors: number | null,
) {
  const entries = [...logs.values()].flat();
  const crashes: Record<string, number> = {};
  for (const point of environment.daemons.flatMap((daemon) => daemon.crashes))
    crashes[point] = (crashes[point] ?? 0) + 1;
  return {
    faults,
    crashes,
    skipped,
    ...(environment.daemons.length > 1 && { takeovers: takeoversIn(logs, seenOf(environment)) }),
    counts: {
      conversations: logs.size,
      posts: new Set(acknowledged.map(({ post }) => post.id)).size,
      sent,
      entries: entries.length,
      turns: entries.filter(({ type }) => type === 'turn-started').length,
      modelCalls: environment.model.requests,
      effects: [...effects.values()].reduce((sum, count) => sum + count, 0),
      approvals,
      views: views.length,
      daemonStarts: environment.daemons.reduce((sum, { starts }) => sum + starts, 0),
      descriptors,
    },
  };
}

/** Answers approvals of calls that may have run, in varying ways. */
interface PersonActor {
  readonly answered: number;
  readonly done: Promise<void>;
}

const EVERY_MS = 250;
const ANSWERS = ['rerun', 'failed', 'result'] as const;

function createPersonActor(client: ParleyClient, signal: AbortSignal): PersonActor {
  const person = { answered: 0, done: Promise.resolve() };
  const answer = async ({ approvalId, mayHaveRun }: PendingApproval) => {
    const picked = ANSWERS[hash(approvalId) % ANSWERS.length] ?? 'failed';
    const word = mayHaveRun ? picked : 'approve';
    const result = word === 'result' ? { result: 'checked by hand: done' } : {};
    await client.request('answer', { approvalId, answer: word, publisher: 'judge', ...result });
    person.answered += 1;
  };
  person.done = (async () => {
    while (!signal.aborted) {
      const found = await client.request('approvals', {}).catch(() => ({ approvals: [] }));
      // Answered meanwhile, or the daemon is down: the next poll shows which.
      for (const approval of found.approvals) await answer(approval).catch(() => undefined);
      await sleep(EVERY_MS, signal);
    }
  })();
  return person;
}
