import {
  callModel,
  helping,
  type LivePublisher,
  type ModelRequest,
  type Prose,
  type Reservation,
  type Retry,
  reductionEntry,
  type SummariseContext,
  type Summariser,
  summarise,
  writeTitle,
} from '../../../agents/index.ts';
import {
  ATTACH,
  type CallOutcome,
  type Command,
  type CommandOf,
  type Effect,
  type Entry,
  finishNotice,
  type LiveChunk,
  type ServerAsks,
  SYSTEM_AUTHOR,
  type TypedAnswer,
  wireCallId,
} from '../../../conversation/index.ts';
import {
  type Clock,
  type JsonRecord,
  jsonFault,
  type LinkedAbort,
  linkedAbort,
  MAX_TIMER_MS,
  messageOf,
  onAbort,
  type Timers,
  type TraceContext,
  traceparentOf,
} from '../../../kernel/index.ts';
import {
  CheckBudget,
  schemaFault,
  type ValueCheck,
  valueCheck,
  valueFault,
} from '../../../kernel/json-schema.ts';
import type { AuditRecord } from '../../../persistence/index.ts';
import { hasNoCaller, Lineage } from '../../../traces/index.ts';
import type { Telemetry } from '../../observe/telemetry.ts';
import type { ModelHealth } from '../../team/health.ts';
import type { RunningAgent, Team } from '../../team/team.ts';
import { fitsPayload, keptReport } from '../../tools/entry-content.ts';
import { recordRequests, runTool, type ToolCallContext } from '../../tools/run-tool.ts';
import {
  type CallEffect,
  failedAttempt,
  type LimitReached,
  type PreparedCall,
  type ReadyCall,
  type ReducingCall,
  type ReservedCall,
} from './decider.ts';

/**
 * Runs the effects of decisions outside the mailbox: a stop or a new message never waits for a model.
 *
 * EFFECTS-1  An effect starts only after the entries that request it are durable (L9).
 * EFFECTS-2  An effect reports its result as a command. Without a report (at a shutdown) it stays outstanding in the log.
 * EFFECTS-3  Each effect has its own abort, linked to the daemon's, and unlinked when the effect ends.
 */

type ServersAnswer = Extract<Effect, { type: 'answer-tool' }>['content'];

interface OpenQuestion {
  readonly asks: ServerAsks;
  answer(content: ServersAnswer): void;
  readonly over: Promise<ServersAnswer>;
}

type ToolEffect = Extract<Effect, { type: 'run-tool' }>;

/** What effects need of the daemon. */
export interface EffectsContext extends ToolCallContext {
  readonly team: Pick<Team, 'toolbox' | 'retry' | 'limits' | 'files'>;
  readonly elapsed: Clock;
  readonly timers: Timers;
  readonly telemetry: Pick<Telemetry, 'modelCalled'>;
  /** Null: no traces are exported, and no context is passed on. */
  readonly traces: object | null;
  readonly livePublisher: LivePublisher;
  readonly health: ModelHealth;
  publishLive(conversation: string, agent: string, chunk: LiveChunk): void;
  /** By turn: the repeated model calls of this daemon. `since`: milliseconds since the epoch. */
  readonly retries: Map<string, Retry & { readonly since: number }>;
}

export class Effects {
  readonly #running = new Map<string, Set<LinkedAbort>>();
  readonly #reserved = new Map<string, ReservedCall>();
  /** What runs and has not reported its outcome. */
  readonly #reporting = new Set<Promise<void>>();
  #requests = new Map<string, AuditRecord>();
  readonly #conversation: string;
  readonly #daemon: EffectsContext;
  readonly #report: (command: Command) => void;
  /** The durable entries. */
  readonly #entries: () => readonly Entry[];
  readonly #typed: TypedAnswers;
  /** The open question of the server of a call, by wire id. */
  readonly #asked = new Map<string, OpenQuestion>();

  constructor(
    conversation: string,
    daemon: EffectsContext,
    report: (command: Command) => void,
    entries: () => readonly Entry[],
  ) {
    this.#conversation = conversation;
    this.#daemon = daemon;
    this.#report = report;
    this.#entries = entries;
    this.#typed = new TypedAnswers(daemon.elapsed);
  }

  get running(): number {
    return this.#reporting.size;
  }

  /** Resolves when everything that runs now has reported. */
  async idle(): Promise<void> {
    await Promise.all(this.#reporting);
  }

  /** Records what the calls of tools will be given. Must be called before the entries that request these effects are appended. */
  async announce(effects: readonly Effect[]): Promise<void> {
    if (this.#requests.size === 0 && !effects.some(({ type }) => type === 'run-tool')) return;
    this.#requests = await recordRequests(this.#conversation, effects, this.#requests, this.#daemon);
  }

  start(effects: readonly Effect[], prepared: ReadonlyMap<Effect, PreparedCall>): void {
    for (const call of prepared.values()) {
      if (call.kind === 'ready') this.#reserve(call.request.turnId, call.request.agent, call.reservation);
    }
    for (const effect of effects) this.#start(effect, prepared.get(effect));
  }

  #start(effect: Effect, prepared: PreparedCall | undefined): void {
    if (effect.type === 'abort-turn') this.#abortTurn(effect.turnId, 'aborted by a person');
    else if (effect.type === 'run-tool') this.#track(this.#runTool(effect));
    else if (effect.type === 'answer-tool') this.#answer(effect);
    else if (prepared) this.#track(this.#call(effect, prepared));
  }

  /** What the running calls may use. */
  get reservations(): ReservedCall[] {
    return [...this.#reserved.values()];
  }

  /** Aborts everything without a report: the conversation is being deleted. */
  abortAll(): void {
    for (const turnId of this.#running.keys()) this.#abortTurn(turnId, 'deleted');
  }

  #abortTurn(turnId: string, reason: string): void {
    for (const abort of this.#running.get(turnId) ?? []) abort.abort(reason);
  }

  #track(work: Promise<void>): void {
    const tracked: Promise<void> = work
      .catch((error: unknown) => {
        this.#daemon.log.error(
          { conversation: this.#conversation, error: messageOf(error) },
          'an effect failed',
        );
      })
      .finally(() => this.#reporting.delete(tracked));
    this.#reporting.add(tracked);
  }

  async #call(effect: CallEffect, prepared: PreparedCall): Promise<void> {
    const { agent, turnId } = effect;
    const report = { agent, turnId, duration: 0, requestHash: '', upTo: prepared.upTo };
    if (prepared.kind === 'limited') {
      this.#report({ type: 'model-aborted', partial: '', limit: prepared.limit, ...report });
    } else if (prepared.kind === 'refused') {
      const { code, message } = prepared.refusal;
      this.#report({ type: 'model-failed', code, message, partial: '', ...report });
    } else if (prepared.kind === 'skipped') {
      const { failed, upTo } = prepared;
      this.#report({ type: 'attempt-failed', ...failed, agent, turnId, duration: 0, upTo });
    } else if (prepared.kind === 'reduce') {
      await this.#reduce(effect, prepared);
    } else {
      await this.#callWithin(effect, prepared);
    }
  }

  /** Writes the summary for a reduced view, with the summary model if one is configured. */
  async #reduce(effect: CallEffect, call: ReducingCall): Promise<void> {
    const { agent, turnId } = effect;
    const { setup, reduction, upTo, tokenRatio } = call;
    const abort = this.#begin(turnId);
    try {
      const prose = await this.#summarise(effect, call, abort);
      if (this.#daemon.shutdown.aborted) return;
      const { text = null, failure, ...written } = prose ?? {};
      if (failure !== undefined) this.#warnOfExtract(agent, setup, failure);
      const writtenBy = text === null ? 'extract' : 'model';
      const entryWith = (content: string) =>
        reductionEntry(reduction, { content, writtenBy, tokenRatio, ...written });
      const content = reduction.write(text, (content) => fitsPayload(entryWith(content), this.#daemon));
      const entry = entryWith(content);
      this.#report({ type: 'reduce-view', agent, turnId, upTo, reduction: entry });
    } finally {
      this.#end(turnId, abort);
    }
  }

  #warnOfExtract(agent: string, { summariser }: RunningAgent, reason: string): void {
    this.#daemon.log.warn(
      { conversation: this.#conversation, agent, model: summariser?.profile.name, reason },
      'the summary model returned no summary; an extract replaces it',
    );
  }

  /** Beside the turns, once: without a title, that of the first words stays. */
  writeTitle(instead: string, titler: Summariser, allows: SummariseContext['allows']): void {
    const [daemon, conversation] = [this.#daemon, this.#conversation];
    const call = { conversation, agent: SYSTEM_AUTHOR.id, turnId: `title-${conversation}` };
    const title = async () => {
      const abort = this.#begin(call.turnId); // the conversation may be deleted meanwhile
      const context = this.#proseContext(titler, call, abort, allows);
      const once = { ...context, retry: { ...context.retry, attempts: 1 } };
      const { text, failure, ...written } = await writeTitle(this.#entries(), titler, call, once).finally(
        () => {
          this.#reserved.delete(call.turnId);
          this.#end(call.turnId, abort);
        },
      );
      if (failure !== undefined)
        daemon.log.warn(
          { conversation, model: titler.profile.name, reason: failure },
          'the title model returned no title; the first words of the conversation are its title',
        );
      if (text !== null || written.usage)
        this.#report({ type: 'title-written', instead, title: text ?? instead, ...written });
    };
    this.#track(title());
  }

  /** Within the remaining time of the turn and the limits of the conversation (L15). */
  async #summarise(
    { agent, turnId }: CallEffect,
    { setup: { summariser }, reduction, deadline, allows }: ReducingCall,
    abort: LinkedAbort,
  ): Promise<Prose | null> {
    if (!summariser) return null;
    const left = deadline - this.#daemon.elapsed();
    const timeoutMs = Math.max(0, Math.min(summariser.timeoutMs, left, MAX_TIMER_MS));
    const call = { conversation: this.#conversation, agent, turnId };
    const context = this.#proseContext(summariser, call, abort, allows);
    try {
      return await summarise(reduction, { ...summariser, timeoutMs }, call, context);
    } finally {
      this.#reserved.delete(turnId);
    }
  }

  /** Of a call for a summary or a title. Its reservation ends with it. */
  #proseContext(
    { profile }: Summariser,
    { agent, turnId }: { readonly agent: string; readonly turnId: string },
    { signal }: LinkedAbort,
    allows: SummariseContext['allows'],
  ): SummariseContext {
    const { team, elapsed, timers, telemetry } = this.#daemon;
    return {
      retry: team.retry,
      signal,
      random: Math.random,
      elapsed,
      timers,
      allows: (reservation) => allows(reservation) && this.#reserve(turnId, agent, reservation),
      onCallEnded: (outcome) => telemetry.modelCalled(this.#conversation, profile.name, undefined, outcome),
    };
  }

  #reserve(turnId: string, agent: string, reservation: Reservation): true {
    this.#reserved.set(turnId, { agent, ...reservation });
    return true;
  }

  /** One model call within the remaining time of its turn (L15). */
  async #callWithin(effect: CallEffect, prepared: ReadyCall): Promise<void> {
    const { setup, asked, request, upTo, deadline, estimatedTokens } = prepared;
    const daemon = this.#daemon;
    const abort = this.#begin(request.turnId);
    let limit: LimitReached | undefined;
    const cancelLimit = daemon.timers.after(
      Math.max(0, Math.min(deadline - daemon.elapsed(), MAX_TIMER_MS)),
      () => {
        const seconds = daemon.team.limits.turnSeconds;
        limit = { name: 'turnSeconds', message: `the turn took longer than ${seconds} seconds` };
        abort.abort('the turn took too long');
      },
    );
    try {
      daemon.reach('before-model-call');
      const startedAt = daemon.elapsed();
      let firstTokenMs: number | undefined;
      const reported = await callModel(
        this.#traced(request),
        { upTo, estimatedTokens },
        {
          model: asked.client,
          retry: daemon.team.retry,
          signal: abort.signal,
          elapsed: daemon.elapsed,
          live: {
            publisher: daemon.livePublisher,
            publish: (chunk) => {
              firstTokenMs ??= Math.round(daemon.elapsed() - startedAt);
              daemon.publishLive(this.#conversation, request.agent, chunk);
            },
          },
          onRetry: (retry) => daemon.retries.set(request.turnId, { ...retry, since: daemon.now() }),
          timers: daemon.timers,
          random: Math.random,
          price: setup.profile.price,
        },
      );
      daemon.reach('after-model-call');
      const command = await keptReport(
        this.#conversation,
        this.#typed.checked(reported, prepared.schema),
        daemon,
        this.#hasAttached(request.turnId),
      );
      daemon.telemetry.modelCalled(
        this.#conversation,
        setup.card.runtime !== 'local' ? null : setup.profile.name,
        prepared.number,
        command,
        firstTokenMs,
      );
      const wasAborted = command.type === 'model-aborted';
      if (wasAborted && !limit && daemon.shutdown.aborted) return;
      const shorter = command.type === 'model-failed' ? shorterAfter(command, prepared) : null;
      if (shorter) {
        this.#reserved.delete(request.turnId); // the refused call used nothing
        return await this.#reduce(effect, shorter);
      }
      daemon.health.observe(asked.client, command);
      const moved = firstTokenMs === undefined ? moveToNext(command, prepared) : null;
      this.#report(moved ?? (wasAborted && limit ? { ...command, limit } : command));
    } finally {
      cancelLimit();
      daemon.retries.delete(request.turnId);
      this.#end(request.turnId, abort);
      this.#reserved.delete(request.turnId);
    }
  }

  /** Runs one tool call. The audit log records it before and after (L9). */
  async #runTool(effect: ToolEffect): Promise<void> {
    const { agent, turnId, call } = effect;
    const requested = this.#requests.get(wireCallId(call));
    this.#requests.delete(wireCallId(call));
    const abort = this.#begin(turnId);
    let startedAt = this.#daemon.elapsed();
    const onWaited = (milliseconds: number) => {
      startedAt += milliseconds;
    };
    try {
      const traceparent = this.#traceparent(turnId, (lineage) => lineage.toolCall(turnId, call));
      const ran = await runTool(
        this.#conversation,
        { ...effect, ...traceparent, ask: (asks, ended) => this.#ask(effect, asks, ended, onWaited) },
        this.#daemon,
        abort.signal,
        requested,
      );
      if (ran === null) return;
      const duration = Math.round(this.#daemon.elapsed() - startedAt);
      this.#report({ type: 'tool-finished', agent, turnId, call, duration, ...ran });
    } finally {
      this.#end(turnId, abort);
    }
  }

  /** SERVER-QUESTION-1 */
  async #ask(
    { agent, turnId, call }: ToolEffect,
    asks: ServerAsks,
    ended: AbortSignal,
    onWaited: (milliseconds: number) => void,
  ): Promise<ServersAnswer> {
    const key = wireCallId(call);
    while (this.#asked.has(key)) await this.#asked.get(key)?.over;
    if (ended.aborted) return undefined;
    const report = (given: ServerAsks | null) =>
      this.#report({ type: 'tool-asks', agent, turnId, call, asks: given });
    const withdraw = () => {
      report(null);
      this.#asked.get(key)?.answer(undefined);
    };
    const detach = onAbort([ended], withdraw);
    let answer: (content: ServersAnswer) => void = () => undefined;
    const over = new Promise<ServersAnswer>((resolve) => {
      answer = resolve;
    });
    this.#asked.set(key, { asks, answer, over });
    report(asks);
    const askedAt = this.#daemon.elapsed();
    try {
      return await over;
    } finally {
      onWaited(this.#daemon.elapsed() - askedAt);
      this.#asked.delete(key);
      detach();
    }
  }

  /** An answer to a question that the server gave up meanwhile is in the log, and goes nowhere. */
  #answer({ call, asks, content }: Extract<Effect, { type: 'answer-tool' }>): void {
    const open = this.#asked.get(wireCallId(call));
    if (JSON.stringify(open?.asks) === JSON.stringify(asks)) open?.answer(content);
  }

  /** Backwards, and no further than the turn's start: a log is long and a turn is short. */
  #hasAttached(turnId: string): boolean {
    const nearest = this.#entries().findLast(
      (entry) =>
        entry.turnId === turnId &&
        (entry.type === 'message'
          ? entry.toolName === ATTACH
          : entry.type === 'turn-started' && !entry.resumed),
    );
    return nearest?.type === 'message';
  }

  #traced(request: ModelRequest): ModelRequest {
    const { turnId, hash, headers } = request;
    return {
      ...request,
      headers: { ...headers, ...this.#traceparent(turnId, (lineage) => lineage.modelCall(turnId, hash)) },
    };
  }

  /** The header that makes the other program's work a part of the trace. Without an exporter: that of the post, unchanged. */
  #traceparent(
    turnId: string,
    spanIn: (lineage: Lineage) => TraceContext,
  ): { readonly traceparent?: string } {
    const entries = this.#entries();
    const isTraced = this.#daemon.traces !== null;
    if (!isTraced && hasNoCaller(turnId, entries)) return {};
    const lineage = new Lineage(this.#conversation, entries);
    const traceparent = isTraced ? traceparentOf(spanIn(lineage)) : lineage.caller(turnId);
    return traceparent === null ? {} : { traceparent };
  }

  #begin(turnId: string): LinkedAbort {
    const abort = linkedAbort(this.#daemon.shutdown);
    this.#running.set(turnId, (this.#running.get(turnId) ?? new Set()).add(abort));
    return abort;
  }

  #end(turnId: string, abort: LinkedAbort): void {
    abort.unlink();
    const running = this.#running.get(turnId);
    running?.delete(abort);
    if (running?.size === 0) this.#running.delete(turnId);
  }
}

/** The turn asks its next candidate (CANDIDATES-3). Null: the call is the outcome of the turn's. */
function moveToNext(command: Command, { asked, others }: ReadyCall): Command | null {
  if (command.type !== 'model-failed' || command.partial !== '') return null;
  const { agent, turnId, code, message, duration, requestHash, upTo } = command;
  const failed = failedAttempt(asked, helping(code, asked, others), code, message);
  return failed && { type: 'attempt-failed', ...failed, agent, turnId, duration, requestHash, upTo };
}

/** Words of providers for a file that is damaged, or of a kind that the model does not take. */
const ABOUT_FILES = /image|picture|audio|pdf|document|media|\bfiles?\b/i;

/**
 * The reduction after the provider refused the request before it produced any output; null: another reason. Its words for “too
 * long” are not always known: a request near the window that is refused for an unknown reason may be too long.
 */
function shorterAfter(
  { code, partial, message }: CommandOf<'model-failed'>,
  call: ReadyCall,
): ReducingCall | null {
  if (partial !== '') return null;
  if (code === 'CONTEXT_TOO_LONG') return call.tooLong();
  if (code !== 'BAD_REQUEST') return null;
  // A file that stayed would fail every later turn, too.
  return (ABOUT_FILES.test(message) && call.withoutFiles()) || (call.isNearWindow ? call.tooLong() : null);
}

/** Characters of JSON. The entry has the value besides the text, and must fit into one append. */
const MAX_VALUE = 131_072;

/** A model may put its JSON into a block of Markdown. */
const FENCED = /^```(?:json)?[ \t]*\n([\s\S]*?)\n?```$/i;

/** Checks the answers of one conversation against the schemas of its turns (TYPED-3). */
class TypedAnswers {
  readonly #budget: CheckBudget;
  /** The objects of the log and of definitions stay the same, so a schema is compiled once. */
  readonly #checks = new WeakMap<JsonRecord, ValueCheck>();

  constructor(elapsed: Clock) {
    this.#budget = new CheckBudget(elapsed);
  }

  /** The report with the result of the check, if it is the last answer of a turn with a schema. */
  checked(report: CallOutcome, schema: JsonRecord | null): CallOutcome {
    if (schema === null || report.type !== 'model-answered') return report;
    const { answer } = report;
    if (answer.toolCalls.length > 0 || answer.finishReason === 'pause') return report;
    const typed = this.#compare(answer.content ?? '', schema);
    if (typed.kind !== 'invalid') return { ...report, answer: { ...answer, typed } };
    const cut = answer.finishReason === 'stop' ? null : finishNotice(answer.finishReason);
    const why = cut === null ? typed.why : `${typed.why}; the answer was ${cut}`;
    return { ...report, answer: { ...answer, typed: { kind: 'invalid', why } } };
  }

  #compare(content: string, schema: JsonRecord): TypedAnswer {
    const text = content.trim();
    const json = FENCED.exec(text)?.[1] ?? text;
    if (json.length > MAX_VALUE)
      return invalid(`the answer has ${json.length} characters, and at most ${MAX_VALUE} are accepted`);
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch (error) {
      return invalid(`the answer is not JSON: ${jsonFault(error)}`);
    }
    const unkept = valueFault(value);
    if (unkept !== null) return invalid(`the answer cannot be kept: ${unkept}`);
    const check = this.#checks.get(schema) ?? valueCheck(schema, this.#budget, 'answer');
    this.#checks.set(schema, check);
    const why = check(value);
    if (why === undefined) return { kind: 'unchecked', why: this.#unusable(schema) };
    return why === null ? { kind: 'valid', value } : invalid(why);
  }

  #unusable(schema: JsonRecord): string {
    const fault = schemaFault(schema, this.#budget) ?? 'comparing the answer with it took too long';
    return `The answer could not be checked: ${fault}. The answer is kept.`;
  }
}

function invalid(why: string): TypedAnswer {
  return { kind: 'invalid', why };
}
