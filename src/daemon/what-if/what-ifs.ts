import type { AnswerOf, BusLog, WhatIfSummary, WhatIfTurn } from '../../bus/index.ts';
import { type Clock, messageOf, ParleyError } from '../../kernel/index.ts';
import type { WhatIfTexts } from '../../persistence/index.ts';
import type { Definitions } from '../team/definitions.ts';
import type { ConfiguredModels, Team } from '../team/team.ts';
import { Job, type JobPlan, pageOfTurns } from './job.ts';

/**
 * The what-ifs of this daemon: one runs at a time, the others wait.
 *
 * WHAT-IFS-1 A result is outside the log: one file, saved at the start, at most every `SAVE_MS` and at the end. After a crash it has
 *            the runs up to the last save, and its state is `interrupted`.
 * WHAT-IFS-2 A result belongs to one log: it names the log's first entry, and is not shown for another log of the same id.
 * WHAT-IFS-3 A deletion of the conversation ends its what-ifs and removes their files before it removes the log. What a
 *            crash or another daemon's deletion leaves is removed at the start and once an hour.
 */

/** Running and waiting. */
const MOST_OPEN = 8;
const SAVE_MS = 2_000;
const HOURLY_MS = 3_600_000;

export interface WhatIfParts {
  readonly texts: WhatIfTexts;
  readonly team: () => Pick<Team, 'models' | 'limits' | 'retry'>;
  readonly definitions: Pick<Definitions, 'read'>;
  readonly elapsed: Clock;
  readonly now: Clock;
  readonly log: BusLog;
}

interface OpenJob {
  readonly job: Job;
  readonly origin: string;
  savedAt: number;
}

interface Stored {
  /** Id of the first entry of its log (WHAT-IFS-2). */
  readonly origin: string;
  readonly summary: WhatIfSummary;
  readonly results: readonly WhatIfTurn[];
}

/** Which log a result belongs to (WHAT-IFS-2). */
export interface LogKey {
  readonly conversation: string;
  readonly origin: string;
}

export class WhatIfs {
  readonly #parts: WhatIfParts;
  /** In order; the first one runs. */
  readonly #open: OpenJob[] = [];
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(parts: WhatIfParts) {
    this.#parts = parts;
  }

  get models(): ConfiguredModels {
    return this.#parts.team().models;
  }

  /** Null: no such id. */
  async summary(key: LogKey, id: string): Promise<WhatIfSummary | null> {
    return (await this.#find(key, id))?.summary ?? null;
  }

  async start(plan: JobPlan, origin: string): Promise<WhatIfSummary> {
    if (this.#isClosed)
      throw new ParleyError('STOPPING', 'the daemon is stopping', { hint: 'try again later' });
    if (this.#open.length >= MOST_OPEN) {
      throw new ParleyError('WHAT_IF_BUSY', `${MOST_OPEN} what-ifs run or wait already`, {
        hint: 'try again when one of them has ended, or stop one with `parley what-if CONVERSATION --stop ID`',
      });
    }
    const open = { job: new Job(plan, this.#parts.now()), origin, savedAt: Number.NEGATIVE_INFINITY };
    this.#open.push(open);
    try {
      await this.#save(open, true);
    } catch (error) {
      this.#close(open);
      throw error;
    }
    this.#running ??= this.#runAll();
    return open.job.summary;
  }

  /** Newest first. */
  async list(key: LogKey): Promise<WhatIfSummary[]> {
    const ids = await this.#parts.texts.list(key.conversation);
    const found = await Promise.all(ids.map((id) => this.#find(key, id).catch((error) => this.#skip(error))));
    const summaries = found.flatMap((stored) => stored?.summary ?? []);
    return summaries.sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1));
  }

  async result(
    key: LogKey,
    id: string,
    page: { readonly from: number; readonly limit: number; readonly room: number },
  ): Promise<AnswerOf<'what-if-result'>> {
    const { summary, results } = (await this.#find(key, id)) ?? notFound(key, id);
    const { from, limit, room } = page;
    const head = Buffer.byteLength(JSON.stringify(summary)) + 64;
    const shown = pageOfTurns(results.slice(from, from + limit), room - head);
    const next = from + shown.length;
    return { ...summary, results: shown, next: next < results.length ? next : null };
  }

  async stop(key: LogKey, id: string): Promise<WhatIfSummary> {
    const open = this.#open.find(
      ({ job, origin }) => isOf(job, key) && origin === key.origin && job.plan.id === id,
    );
    open?.job.end('stopped');
    return (await this.summary(key, id)) ?? notFound(key, id);
  }

  async remove(conversation: string): Promise<void> {
    for (const open of this.#open.filter(({ job }) => job.plan.conversation === conversation)) {
      open.job.end('stopped');
      this.#close(open);
    }
    await this.#parts.texts.remove(conversation);
  }

  /** WHAT-IFS-3: now, and once an hour. */
  sweep(exists: (conversation: string) => Promise<boolean>): void {
    const once = async () => {
      for (const conversation of await this.#parts.texts.conversations())
        if (!this.#isClosed && !(await exists(conversation))) await this.remove(conversation);
    };
    const run = () =>
      void once().catch((error: unknown) =>
        this.#parts.log.warn(
          { error: messageOf(error) },
          'results of what-ifs were not removed; trying again in an hour',
        ),
      );
    run();
    this.#timer = setInterval(run, HOURLY_MS).unref();
  }

  /** Ends all what-ifs and saves what they have. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer ?? undefined);
    for (const { job } of this.#open) job.end('interrupted');
    await this.#running;
  }

  async #runAll(): Promise<void> {
    for (let open = this.#open[0]; open; open = this.#open[0]) {
      const { log } = this.#parts;
      const { id, conversation, agent } = open.job.plan;
      try {
        await this.#runOne(open);
        const { state, done, total } = open.job.summary;
        log.info({ conversation, agent, whatIf: id, state, done, total }, 'a what-if has ended');
      } catch (error) {
        log.error(
          { conversation, whatIf: id, error: messageOf(error) },
          'the result of a what-if was not saved',
        );
      }
      this.#close(open);
    }
    this.#running = null;
  }

  async #runOne(open: OpenJob): Promise<void> {
    const { elapsed, now, definitions, log } = this.#parts;
    const { models, limits, retry } = this.#parts.team();
    const earlier = await this.list({ conversation: open.job.plan.conversation, origin: open.origin });
    const used = earlier.flatMap(({ control, changed }) => [control.used, changed.used]);
    await open.job.run({
      ...{ models, limits, retry, elapsed, now },
      usedBefore: {
        tokens: used.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
        usd: used.reduce((sum, { usd }) => sum + usd, 0),
      },
      read: (hash) => definitions.read(hash),
      onProgress: () => {
        if (elapsed() - open.savedAt < SAVE_MS) return;
        this.#save(open, false).catch((error: unknown) =>
          log.warn({ error: messageOf(error) }, 'the result of a what-if was not saved; trying again'),
        );
      },
    });
    await this.#save(open, true);
  }

  #skip(error: unknown): null {
    this.#parts.log.warn({ error: messageOf(error) }, 'the list of what-ifs is incomplete');
    return null;
  }

  #close(open: OpenJob): void {
    const at = this.#open.indexOf(open);
    if (at >= 0) this.#open.splice(at, 1);
  }

  /** A job that was removed is not saved. */
  async #save(open: OpenJob, durable: boolean): Promise<void> {
    if (!this.#open.includes(open)) return;
    open.savedAt = this.#parts.elapsed();
    const { job, origin } = open;
    const { conversation, id } = job.plan;
    const text = JSON.stringify({ format: 1, origin, summary: job.summary, results: job.results });
    await this.#parts.texts.put(conversation, id, `${text}\n`, { durable });
  }

  async #find({ conversation, origin }: LogKey, id: string): Promise<Stored | null> {
    const open = this.#open.find(({ job }) => isOf(job, { conversation }) && job.plan.id === id);
    if (open) {
      const { summary, results } = open.job;
      return open.origin === origin ? { origin, summary, results } : null;
    }
    const text = await this.#parts.texts.get(conversation, id);
    const stored = text === null ? null : storedIn(text, conversation, id);
    if (stored?.origin !== origin) return null;
    const { summary, results } = stored;
    const isCrashed = summary.state === 'queued' || summary.state === 'running';
    return { origin, results, summary: isCrashed ? { ...summary, state: 'interrupted' } : summary };
  }
}

function isOf({ plan }: Job, { conversation }: Pick<LogKey, 'conversation'>): boolean {
  return plan.conversation === conversation;
}

function storedIn(text: string, conversation: string, id: string): Stored {
  try {
    const value = JSON.parse(text) as Stored & { readonly format?: unknown };
    if (value.format === 1 && value.summary && Array.isArray(value.results)) return value;
  } catch {
    // not JSON: reported below
  }
  throw new ParleyError(
    'WHAT_IF_UNREADABLE',
    `the result of the what-if ${id} of ${conversation} is damaged`,
    {
      hint: 'remove its file from what-if/ in the data directory, and start the what-if again',
    },
  );
}

function notFound({ conversation }: LogKey, id: string): never {
  throw new ParleyError('NOT_FOUND', `conversation ${conversation} has no what-if ${id} on this daemon`, {
    hint: '`parley what-if CONVERSATION --list` prints the ids',
  });
}
