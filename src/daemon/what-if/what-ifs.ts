import {
  type Assembled,
  type Budget,
  type Change,
  callModel,
  changed,
  createReplay,
  type Definition,
  type FileCache,
  type Model,
  type ModelProfile,
  overBudget,
  type RecordedLog,
  type RecordedTurn,
  type RequestSources,
  type Reservation,
  type RetryPolicy,
  type Run,
  reservationFor,
  sourcesOf,
  type Variant,
} from '../../agents/index.ts';
import type { AnswerOf, WhatIfRun, WhatIfSummary, WhatIfTally, WhatIfTurn } from '../../bus/index.ts';
import { addedUp, type CallOutcome, type Entry, NOTHING_USED, usedWith } from '../../conversation/index.ts';
import {
  type Clock,
  concurrently,
  cut,
  type Log,
  linkedAbort,
  MAX_TIMER_MS,
  messageOf,
  ParleyError,
  pageOf,
  type Refusal,
  refusal,
  sizeOf,
  sleep,
  systemTimers,
} from '../../kernel/index.ts';
import type { Definitions } from '../team/definitions.ts';
import type { ConfiguredModels, Team } from '../team/team.ts';

/**
 * The what-ifs of this daemon: one runs at a time, the others wait.
 *
 * WHAT-IFS-1 Results are in memory: the newest one, and older ones with `MOST_KEPT` runs in all, until the daemon stops or their
 *            conversation is deleted.
 * WHAT-IFS-2 A result belongs to one log: it names the log's first entry, and is not shown for another log of the same id.
 */

/** Running and waiting. */
const MOST_OPEN = 8;
/** Runs. Each has an answer of the model. A thousand characters of a persona count as one. */
const MOST_KEPT = 10_000;
/** Bytes of an answer besides the summary and the results. */
const ENVELOPE = 64;

interface WhatIfParts {
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
    const { from, limit, room } = page;
    const { summary: whole, results } = this.#find(key, id) ?? notFound(key, id);
    const summary = shortened(whole, room);
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
      await job.run({ models, limits, retry, elapsed, now, read, files, usedBefore });
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
        runs += one.summary.done + (one.summary.change.persona?.length ?? 0) / 1_000;
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

const PARALLEL = 4;

type JobState = WhatIfSummary['state'];

/** What a job does; it does not change. */
interface JobPlan extends Omit<RecordedLog, 'files'> {
  readonly id: string;
  readonly by: string;
  readonly start: 'turn' | 'answer';
  readonly change: Change;
  readonly runs: number;
  readonly turns: readonly RecordedTurn[];
}

interface JobLimits extends Pick<Budget, 'tokensPerConversation' | 'usdPerConversation'> {
  /** The time limit of one model call, retries included. */
  readonly turnSeconds: number;
}

interface JobContext {
  readonly models: ConfiguredModels;
  readonly limits: JobLimits;
  readonly retry: RetryPolicy;
  readonly elapsed: Clock;
  readonly now: Clock;
  readonly files: FileCache;
  /** What earlier what-ifs of the conversation used (WHAT-IF-JOB-2). */
  readonly usedBefore: { readonly tokens: number; readonly usd: number };
  read(definition: string): Promise<Definition>;
}

type Side = 'control' | 'changed';

/**
 * One what-if: each turn is sent again `runs` times unchanged (the control) and `runs` times with the change.
 *
 * WHAT-IF-JOB-1 At most `PARALLEL` model calls at a time. Between two runs, other work of the daemon gets its turn.
 * WHAT-IF-JOB-2 A call that could exceed a limit of the conversation is not made, and ends the job. What what-ifs of the
 *               conversation used counts, what its turns used does not.
 */
class Job {
  readonly plan: JobPlan;
  state: JobState = 'queued';
  readonly #startedAt: string;
  #endedAt: string | null = null;
  #reason: string | undefined;
  #done = 0;
  readonly #tallies = { control: emptyTally(), changed: emptyTally() };
  readonly results: WhatIfTurn[];
  /** By all calls so far, also those of runs that have not ended. */
  readonly #spent = { tokens: 0, usd: 0 };
  readonly #abort = new AbortController();
  readonly #reserved = new Map<Reservation, Promise<void>>();

  constructor(plan: JobPlan, now: number) {
    this.plan = plan;
    this.#startedAt = new Date(now).toISOString();
    this.results = plan.turns.map((turn) => ({
      at: turn.steps.at(-1)?.index ?? turn.steps[0].index,
      recorded: recordedOf(turn, plan.entries),
      control: [],
      changed: [],
    }));
  }

  get isOver(): boolean {
    return this.state !== 'queued' && this.state !== 'running';
  }

  /** The first reason counts. */
  end(state: Exclude<JobState, 'queued' | 'running'>, reason?: string): void {
    if (this.isOver) return;
    this.state = state;
    this.#reason = reason;
    this.#abort.abort();
  }

  get summary(): WhatIfSummary {
    const { id, conversation, agent, by, start, change, runs, turns } = this.plan;
    return {
      id,
      conversation,
      agent,
      by,
      start,
      runs,
      state: this.state,
      ...(this.#reason === undefined ? {} : { reason: this.#reason }),
      startedAt: this.#startedAt,
      endedAt: this.#endedAt,
      change: { model: change.model?.profile.name ?? null, persona: change.persona },
      done: this.#done,
      total: turns.length * runs * 2,
      turns: turns.length,
      ...structuredClone(this.#tallies),
    };
  }

  /** Never rejects: what goes wrong with a turn is part of its result. */
  async run(context: JobContext): Promise<void> {
    if (this.isOver) return;
    this.state = 'running';
    await concurrently(this.#work(context), PARALLEL, async (run) => {
      if (this.isOver) return;
      await run();
      await sleep(0);
    });
    this.end('done');
    this.#endedAt = new Date(context.now()).toISOString();
  }

  /** The runs in order: those of one turn are next to each other, and share its first request. */
  *#work(context: JobContext): Generator<() => Promise<void>, undefined> {
    const variants = {
      control: this.#variant('control', context),
      changed: this.#variant('changed', context),
    };
    for (const [position, turn] of this.plan.turns.entries()) {
      for (const side of ['control', 'changed'] as const) {
        const replay = createReplay({ ...this.plan, files: context.files }, turn, variants[side]);
        for (let n = 0; n < this.plan.runs; n++) yield () => this.#runOnce(position, side, replay);
      }
    }
  }

  async #runOnce(position: number, side: Side, replay: () => Promise<Run>): Promise<void> {
    const result = this.results[position];
    if (!result) return;
    try {
      const made = await replay();
      const verdict = verdictOn(made, result.recorded);
      const run: WhatIfRun = { ...made, toolCalls: [...made.toolCalls], verdict };
      this.results[position] = {
        ...(this.results[position] ?? result),
        [side]: [...(this.results[position]?.[side] ?? []), run],
      };
      addRun(this.#tallies[side], run);
    } catch (error) {
      const code = error instanceof ParleyError ? error.code : 'INTERNAL';
      this.results[position] = {
        ...(this.results[position] ?? result),
        failure: { code, message: messageOf(error) },
      };
      this.#tallies[side].failed += 1;
    }
    this.#done += 1;
  }

  #variant(side: Side, context: JobContext): Variant {
    const { agent, change } = this.plan;
    const known = new Map<string, Promise<RequestSources>>();
    const sources = async (hash: string): Promise<RequestSources> => {
      if (hash === '') throw noDefinition(agent);
      const definition = await context.read(hash);
      const unchanged = sourcesOf(
        definition,
        (name) => context.models.changedTo(name, agent)?.profile.headers,
      );
      return side === 'control' ? unchanged : changed(unchanged, agent, change);
    };
    return {
      mayReduce: side === 'changed',
      sources(hash) {
        const found = known.get(hash) ?? sources(hash);
        known.set(hash, found);
        return found;
      },
      call: (assembled, profile) => this.#call(assembled, profile, context),
    };
  }

  async #call(assembled: Assembled, profile: ModelProfile, context: JobContext): Promise<CallOutcome> {
    const { agent, turnId, hash } = assembled.request;
    const report = { agent, turnId, requestHash: hash, upTo: 0, duration: 0 };
    const model = context.models.get(profile.name);
    if (!model)
      return {
        type: 'model-failed',
        ...report,
        partial: '',
        ...unknownModel(profile.name, context.models.names),
      };
    const reservation = reservationFor(assembled.tokens, profile.maxOutputTokens, profile.price);
    const release = await this.#reserve(reservation, context);
    if (!release) return { type: 'model-aborted', partial: '', ...report };
    try {
      return await this.#callInTime(assembled, profile, model, context);
    } finally {
      release();
    }
  }

  /** WHAT-IF-JOB-2: waits for running calls while their reservations alone are in the way. Null: the job has ended. */
  async #reserve(reservation: Reservation, context: JobContext): Promise<(() => void) | null> {
    while (!this.isOver) {
      const budget = { ...context.limits, ...this.#used(context) };
      const limit = overBudget(budget, [...this.#reserved.keys(), reservation]);
      if (!limit) {
        let release = () => {};
        const released = new Promise<void>((resolve) => {
          release = resolve;
        });
        this.#reserved.set(reservation, released);
        return () => {
          this.#reserved.delete(reservation);
          release();
        };
      }
      if (this.#reserved.size === 0)
        this.end('limited', `${limit.name}: in what-ifs of this conversation, ${limit.message}`);
      else await Promise.race(this.#reserved.values());
    }
    return null;
  }

  async #callInTime(
    { request, estimatedTokens }: Assembled,
    { price }: ModelProfile,
    model: Model,
    { retry, elapsed, limits }: JobContext,
  ): Promise<CallOutcome> {
    const abort = linkedAbort(this.#abort.signal);
    const timer = setTimeout(() => abort.abort(), Math.min(limits.turnSeconds * 1_000, MAX_TIMER_MS));
    try {
      const outcome = await callModel(
        request,
        { upTo: 0, estimatedTokens },
        {
          model,
          retry,
          elapsed,
          price,
          timers: systemTimers,
          signal: abort.signal,
          random: Math.random,
          live: null,
        },
      );
      const {
        inputTokens = 0,
        outputTokens = 0,
        usd = 0,
      } = (outcome.type === 'model-answered' && outcome.answer.usage) || {};
      this.#spent.tokens += inputTokens + outputTokens;
      this.#spent.usd += usd;
      if (outcome.type !== 'model-aborted' || this.#abort.signal.aborted) return outcome;
      const message = `no answer within ${limits.turnSeconds} s`;
      return { ...outcome, limit: { name: 'turnSeconds', message } };
    } finally {
      clearTimeout(timer);
      abort.unlink();
      model.turnOver?.(request.turnId);
    }
  }

  #used({ usedBefore }: JobContext): { readonly usedTokens: number; readonly usedUsd: number } {
    return { usedTokens: usedBefore.tokens + this.#spent.tokens, usedUsd: usedBefore.usd + this.#spent.usd };
  }
}

export function unknownModel(name: string, names: readonly string[]): Refusal {
  return refusal('UNKNOWN_MODEL', `there is no model ${name}`, `configured models: ${names.join(', ')}`);
}

export function noDefinition(agent: string): ParleyError {
  return new ParleyError('NO_DEFINITION', `the turn of ${agent} was recorded without a definition`, {
    hint: 'turns before definitions were stored, and imported answers, cannot be sent again; choose a later turn',
  });
}

type Tally = { -readonly [K in keyof WhatIfTally]: WhatIfTally[K] };

function emptyTally(): Tally {
  return { same: 0, different: 0, diverged: 0, failed: 0, interrupted: 0, used: NOTHING_USED };
}

function addRun(tally: Tally, { verdict, used }: WhatIfRun): void {
  tally[verdict] += 1;
  tally.used = addedUp(tally.used, used);
}

function recordedOf({ steps }: RecordedTurn, entries: readonly Entry[]): WhatIfTurn['recorded'] {
  const answers = steps.flatMap(({ index }) => entries[index] ?? []);
  const last = answers.at(-1);
  const [first] = answers;
  if (last?.type !== 'message' || first?.type !== 'message')
    throw new Error('the answer of a step is a message');
  return {
    content: last.content,
    toolCalls: (last.tool_calls ?? []).map((call) => ({
      name: call.function.name,
      arguments: call.function.arguments,
    })),
    finishReason: last.finishReason,
    model: last.model,
    steps: steps.length,
    used: answers.reduce(usedWith, NOTHING_USED),
    requestHash: first.requestHash ?? '',
  };
}

/** White space around a text does not matter. */
function verdictOn(run: Run, { content, toolCalls }: WhatIfTurn['recorded']): WhatIfRun['verdict'] {
  if (run.outcome !== 'answered' && run.outcome !== 'ended') return run.outcome;
  const hasSameCalls = run.outcome === 'ended' || toolCalls.length === 0;
  return hasSameCalls && (run.content ?? '').trim() === (content ?? '').trim() ? 'same' : 'different';
}

/** With as much of its persona as fits `room` bytes beside the rest, whatever the characters (JSON takes up to 6 bytes for one). */
export function shortened({ change, ...summary }: WhatIfSummary, room: number): WhatIfSummary {
  return { ...summary, change: { ...change, persona: change.persona && cut(change.persona, room / 8) } };
}

/** With `truncated`, if it fits no answer. */
function cutTurn(turn: WhatIfTurn, most: number): WhatIfTurn {
  const short = <T extends WhatIfRun | WhatIfTurn['recorded']>(one: T): T => ({
    ...one,
    content: one.content === null ? null : cut(one.content, most),
    toolCalls: one.toolCalls.map((call) => ({ ...call, arguments: cut(call.arguments, most) })),
  });
  return {
    ...turn,
    recorded: short(turn.recorded),
    control: turn.control.map(short),
    changed: turn.changed.map(short),
    truncated: true,
  };
}
