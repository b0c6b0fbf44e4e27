import type { AnswerOf, WhatIfSummary, WhatIfTurn } from '../../bus/index.ts';
import { type Clock, type Log, ParleyError, pageOf, sizeOf } from '../../kernel/index.ts';
import type { Definitions } from '../team/definitions.ts';
import type { ConfiguredModels, Team } from '../team/team.ts';
import { cutTurn, Job, type JobContext, type JobPlan } from './job.ts';

/**
 * The what-ifs of this daemon: one runs at a time, the others wait.
 *
 * WHAT-IFS-1 Results are in memory: the newest one, and older ones with `MOST_KEPT` runs in all, until the daemon stops or their
 *            conversation is deleted.
 * WHAT-IFS-2 A result belongs to one log: it names the log's first entry, and is not shown for another log of the same id.
 */

/** Running and waiting. */
const MOST_OPEN = 8;
/** Runs. Each has an answer of the model. */
const MOST_KEPT = 10_000;
/** Bytes of an answer besides the summary and the results. */
const ENVELOPE = 64;

export interface WhatIfParts {
  readonly team: () => Pick<Team, 'models' | 'limits' | 'retry'>;
  readonly definitions: Pick<Definitions, 'read' | 'files'>;
  readonly elapsed: Clock;
  readonly now: Clock;
  readonly log: Pick<Log, 'info'>;
}

/** Which log a result belongs to (WHAT-IFS-2). `origin`: the id of its first entry. */
export interface LogKey {
  readonly conversation: string;
  readonly origin: string;
}

interface Ended {
  readonly origin: string;
  readonly summary: WhatIfSummary;
  readonly results: readonly WhatIfTurn[];
}

export class WhatIfs {
  readonly #parts: WhatIfParts;
  /** In order; the first one runs. */
  #open: { readonly job: Job; readonly origin: string }[] = [];
  /** Newest first. */
  #ended: readonly Ended[] = [];
  /** By the origin of a log: what its what-ifs used. */
  readonly #used = new Map<string, JobContext['usedBefore']>();
  #running: Promise<void> | null = null;
  #isClosed = false;

  constructor(parts: WhatIfParts) {
    this.#parts = parts;
  }

  get models(): ConfiguredModels {
    return this.#parts.team().models;
  }

  /** Null: no such id. */
  summary(key: LogKey, id: string): WhatIfSummary | null {
    return this.#find(key, id)?.summary ?? null;
  }

  start(plan: JobPlan, origin: string): WhatIfSummary {
    if (this.#isClosed)
      throw new ParleyError('STOPPING', 'the daemon is stopping', { hint: 'try again later' });
    if (this.#open.length >= MOST_OPEN) {
      throw new ParleyError('WHAT_IF_BUSY', `${MOST_OPEN} what-ifs run or wait already`, {
        hint: 'try again when one of them has ended, or stop one with `parley what-if CONVERSATION --stop ID`',
      });
    }
    const job = new Job(plan, this.#parts.now());
    const { summary } = job;
    this.#open.push({ job, origin });
    this.#running ??= this.#runAll();
    return summary;
  }

  /** Newest first. */
  list(key: LogKey): WhatIfSummary[] {
    return this.#of(key).map(({ summary }) => summary);
  }

  result(
    key: LogKey,
    id: string,
    page: { readonly from: number; readonly limit: number; readonly room: number },
  ): AnswerOf<'what-if-result'> {
    const { summary, results } = this.#find(key, id) ?? notFound(key, id);
    const { from, limit, room } = page;
    const shown = pageOf(results.slice(from, from + limit), room - sizeOf(summary) - ENVELOPE, cutTurn);
    const next = from + shown.length;
    return { ...summary, results: [...shown], next: next < results.length ? next : null };
  }

  stop(key: LogKey, id: string): WhatIfSummary {
    this.#open.find(({ job, origin }) => origin === key.origin && job.plan.id === id)?.job.end('stopped');
    return this.summary(key, id) ?? notFound(key, id);
  }

  remove(conversation: string): void {
    const removed = this.#open.filter(({ job }) => job.plan.conversation === conversation);
    for (const { job } of removed) job.end('stopped');
    this.#open = this.#open.filter((open) => !removed.includes(open));
    this.#ended = this.#ended.filter(({ summary }) => summary.conversation !== conversation);
  }

  /** Ends all what-ifs. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { job } of this.#open) job.end('interrupted');
    await this.#running;
  }

  async #runAll(): Promise<void> {
    for (let open = this.#open[0]; open; open = this.#open[0]) {
      const { job, origin } = open;
      const { elapsed, now, definitions, log } = this.#parts;
      const { models, limits, retry } = this.#parts.team();
      const usedBefore = this.#used.get(origin) ?? { tokens: 0, usd: 0 };
      const read = (hash: string) => definitions.read(hash);
      const { files } = definitions;
      await job.run({ ...{ models, limits, retry, elapsed, now, read, files }, usedBefore });
      const { summary, results } = job;
      const used = [summary.control.used, summary.changed.used];
      this.#used.set(origin, {
        tokens: used.reduce((sum, one) => sum + one.inputTokens + one.outputTokens, usedBefore.tokens),
        usd: used.reduce((sum, { usd }) => sum + usd, usedBefore.usd),
      });
      const { conversation, agent, id, state, done, total } = summary;
      log.info({ conversation, agent, whatIf: id, state, done, total }, 'a what-if has ended');
      if (!this.#open.includes(open)) continue; // it was removed
      this.#open = this.#open.filter((one) => one !== open);
      let runs = 0;
      this.#ended = [{ origin, summary, results }, ...this.#ended].filter((one, at) => {
        runs += one.summary.done;
        return at === 0 || runs <= MOST_KEPT;
      });
    }
    this.#running = null;
  }

  #of({ conversation, origin }: LogKey): Ended[] {
    const open = this.#open.map(({ job, origin }) => ({
      origin,
      summary: job.summary,
      results: job.results,
    }));
    return [...open.reverse(), ...this.#ended].filter(
      (one) => one.summary.conversation === conversation && one.origin === origin,
    );
  }

  #find(key: LogKey, id: string): Ended | undefined {
    return this.#of(key).find(({ summary }) => summary.id === id);
  }
}

function notFound({ conversation }: LogKey, id: string): never {
  throw new ParleyError('NOT_FOUND', `conversation ${conversation} has no what-if ${id} on this daemon`, {
    hint: '`parley what-if CONVERSATION --list` prints the ids',
  });
}
