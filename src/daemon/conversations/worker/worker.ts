import { type Model, overBudget, type Reservation } from '../../../agents/index.ts';
import type { Fate, StreamPosition } from '../../../bus/index.ts';
import {
  awaitedCalls,
  type CallOutcome,
  type Command,
  type CommandOf,
  type ConversationState,
  type Decision,
  type Entry,
  missingForRun,
  pendingApprovals,
  type Reply,
  usedFor,
  wireCallId,
} from '../../../conversation/index.ts';
import { hasCode, messageOf, type ParleyError } from '../../../kernel/index.ts';
import { type ConversationStore, type IngressPosition, isCovered } from '../../../persistence/index.ts';
import type { Telemetry } from '../../observe/telemetry.ts';
import type { TraceExporter } from '../../observe/trace-exporter.ts';
import type { Definitions } from '../../team/definitions.ts';
import type { Team } from '../../team/team.ts';
import { keptReport } from '../../tools/entry-content.ts';
import type { IngressProgress } from '../ingress-progress.ts';
import { type ConversationOwner, moved, type Ownership } from '../ownership.ts';
import {
  audited,
  type Decided,
  Decider,
  type DeciderContext,
  type Item,
  isPost,
  NO_SENDER,
  type PreparedCall,
} from './decider.ts';
import { Effects, type EffectsContext } from './effects.ts';
import { isVoidLog, Ledger, type LedgerContext, openLog } from './ledger.ts';

/** `draining`: starts no effects. `closed`: the log is released or about to be; nothing can be appended. */
type Lifecycle = 'open' | 'draining' | 'closed';

/** A post by its id, and its place if it is of the ingress stream. */
export interface PostName {
  readonly conversation: string;
  readonly publisher: string;
  readonly id: string;
  readonly position?: StreamPosition;
}

/** What the conversations of a daemon share: `createRuntime` makes it (`daemon/runtime.ts`). */
export interface WorkerContext extends DeciderContext, EffectsContext, LedgerContext {
  readonly store: ConversationStore;
  readonly ownership: Ownership;
  readonly progress: IngressProgress;
  /** The current one: read it for each decision, and do not keep it (TEAM-1). */
  readonly team: Team;
  readonly definitions: Definitions;
  /** The model of all agents in other processes. */
  readonly remote: Pick<Model, 'turnOver'>;
  readonly telemetry: Telemetry;
  readonly traces: Pick<TraceExporter, 'appended'> | null;
  publishEntries(conversation: string, entries: readonly Entry[]): void;
}

const REPORT_RETRY_MS = 1_000;
/** Bytes. A report is not shortened below it (LARGE-5). */
const SMALLEST_ROOM = 8_192;

/**
 * One conversation in memory: decide, append, act, answer.
 *
 * WORKER-1 Commands are decided one at a time; those that wait share one append.
 * WORKER-2 Append, then act, then answer. Entries that could not be appended are undone, and the senders get the error.
 * WORKER-3 Only durable entries are shown. Outstanding work is marked in the store first (`Ledger`).
 * WORKER-4 When several daemons share the logs, every append follows an own claim (`ownership.ts`). When another daemon
 *          has claimed the conversation, this worker aborts its effects and reports and appends nothing.
 */
export class ConversationWorker {
  readonly id: string;
  /** By the monotonic clock. */
  lastUsedAt: number;
  readonly ledger: Ledger;
  readonly #decider: Decider;
  readonly #daemon: WorkerContext;
  readonly #mailbox = new Mailbox<Item>(async (items) => void (await this.#decideAndAct(items)));
  readonly #effects: Effects;
  readonly #expiry: ApprovalExpiry;
  /** Alone (`SoleOwner`): `claim` is always null, and a conflict is a fault. */
  readonly #owner: ConversationOwner;
  readonly #onFenced: () => void;
  #lifecycle: Lifecycle = 'open';
  /** It is being closed: callers must request a new worker. */
  isRetired = false;
  #deletedUpTo: IngressPosition | null;

  private constructor(
    id: string,
    daemon: WorkerContext,
    marked: boolean,
    onFenced: (worker: ConversationWorker) => void,
    opened: Awaited<ReturnType<typeof openLog>>,
  ) {
    this.id = id;
    this.#deletedUpTo = opened.deletedUpTo;
    this.#daemon = daemon;
    this.#owner = daemon.ownership.of(id);
    this.#onFenced = () => onFenced(this);
    this.ledger = new Ledger(id, daemon, marked || !daemon.ownership.recoversOnOpen, opened);
    this.lastUsedAt = daemon.elapsed();
    this.#effects = new Effects(
      id,
      daemon,
      (command) => this.#report(command),
      () => this.entries(),
    );
    const [ledger, owner] = [this.ledger, this.#owner];
    this.#decider = new Decider({ id, daemon, ledger, owner, reserved: () => this.#effects.reservations });
    this.#expiry = new ApprovalExpiry(daemon, (command) => this.#report(command));
  }

  /** Opens a log and continues its outstanding work. With shared logs, that follows the first claim (WORKER-4). */
  static async open(
    id: string,
    daemon: WorkerContext,
    marked: boolean,
    onFenced: (worker: ConversationWorker) => void = () => undefined,
  ): Promise<ConversationWorker> {
    const opened = await openLog(id, daemon);
    try {
      const worker = new ConversationWorker(id, daemon, marked, onFenced, opened);
      const { rules } = daemon.team.for(worker.state);
      const isOutstanding = worker.hasOutstandingWork || missingForRun(worker.state, rules) !== null;
      if (daemon.ownership.recoversOnOpen && isOutstanding) {
        daemon.reach('before-recovery');
        await worker.submit({ type: 'recover', audited: await audited(id, daemon) });
      }
      return worker;
    } catch (error) {
      await opened.log.close(); // otherwise it could never be opened again
      throw error;
    }
  }

  /** The durable state. */
  get state(): ConversationState {
    return this.ledger.state;
  }

  /** Durable entries from `from` on, `limit` at most. */
  entries(from = 0, limit = Number.POSITIVE_INFINITY): readonly Entry[] {
    return this.ledger.entries(from, limit);
  }

  /** As far as it is known here (`Fate`). */
  fateInConversation({ publisher, id, position }: PostName): Fate['kind'] {
    if (position && isCovered(position, this.#deletedUpTo)) return 'deleted';
    return this.ledger.conversation.hasPost(publisher, id) ? 'inLog' : 'new';
  }

  /** With shared logs: the sequence of the newest append known here. */
  get newestSequence(): number {
    return this.ledger.newestSequence;
  }

  async readDeletion(): Promise<void> {
    this.#deletedUpTo = await this.#daemon.store.deletedUpTo(this.id);
  }

  /** Delays its eviction. */
  touch(): void {
    this.lastUsedAt = this.#daemon.elapsed();
  }

  get hasOutstandingWork(): boolean {
    return this.ledger.hasOutstandingWork;
  }

  get isIdle(): boolean {
    return this.running === 0 && !(this.isOurs && this.hasOutstandingWork);
  }

  /** Model calls and tool calls in progress, and the decisions as one. */
  get running(): number {
    return this.#effects.running + (this.#mailbox.isIdle ? 0 : 1);
  }

  /** Resolves when what is in progress now has ended. */
  async idle(): Promise<void> {
    await this.#mailbox.idle();
    await this.#effects.idle();
  }

  /** Starts the timers of the calls that wait, with the limit of the current team. */
  watchApprovals(): void {
    this.#expiry.watch(this.state);
  }

  /** Resolves when all commands are appended or refused; null: they are. */
  get deciding(): Promise<void> | null {
    return this.#mailbox.isIdle ? null : this.#mailbox.idle();
  }

  /** As far as is known here, no other daemon owns it. */
  get isOurs(): boolean {
    return this.#lifecycle !== 'closed' && this.#owner.isOurs(this.state);
  }

  /** As `isOurs`, after a claim in progress: other daemons may see it already. */
  async willBeOurs(): Promise<boolean> {
    await this.#owner.idle();
    return this.isOurs;
  }

  /** The log is newer than memory: another daemon has appended, or the log was deleted. */
  isStale(): Promise<boolean> {
    return this.#owner.isStale(this);
  }

  /**
   * Resolves when the decision is durable; rejects if it could not be appended. `position`: of a post of the ingress stream,
   * which is void if it was deleted.
   */
  submit(command: Command, position?: StreamPosition): Promise<Reply> {
    if (position && isCovered(position, this.#deletedUpTo)) return Promise.resolve({ kind: 'done' });
    if (this.#lifecycle === 'closed') return Promise.reject(moved(this.id));
    this.touch();
    return new Promise((resolve, reject) => this.#mailbox.send({ command, resolve, reject, position }));
  }

  /** The reply that a command would get now. Nothing is appended. */
  replyTo(command: Command): Reply {
    return this.ledger.conversation.replyTo(command, this.#daemon.now());
  }

  /** Starts no further effects; resolves when those that run have reported. */
  async drain(): Promise<void> {
    this.#enter('draining');
    await this.#effects.idle();
    await this.#mailbox.idle();
  }

  /** Saves the projections, clears the mark, and releases the log. The last step is never skipped. */
  async close(): Promise<void> {
    this.#expiry.stop();
    await this.#mailbox.idle();
    try {
      if (this.isOurs) await this.ledger.saveProjections();
      if (this.#daemon.ownership.recoversOnOpen) await this.ledger.clearMark();
    } catch (error) {
      const fields = { conversation: this.id, error: messageOf(error) };
      this.#daemon.log.warn(fields, 'a conversation list entry is stale; the log is intact');
    }
    this.#enter('closed');
    await this.ledger.close();
  }

  /** Aborts its effects and releases the log without saving: the conversation moved or is being deleted. */
  async abandon(): Promise<void> {
    this.#enter('draining');
    this.#effects.abortAll();
    await this.drain();
    this.#enter('closed');
    await this.ledger.close();
  }

  /** Returns the error of a failed append, else undefined. */
  async #decideAndAct(sent: Item[]): Promise<unknown> {
    let items = sent;
    const before = this.ledger.conversation.entries.length;
    let taking: Decision | null;
    try {
      if (this.#lifecycle === 'closed') throw moved(this.id);
      const completing = this.#decider.withFacts(sent);
      if (completing !== null) items = await completing;
      taking = await this.#decider.takeOver(items, this.#lifecycle !== 'open');
    } catch (error) {
      return this.#fail(before, items, error);
    }
    const decided = this.#decider.decideBatch(items, taking, before);
    const entries = decided.flatMap(({ decision }) => decision.entries);
    const effects = decided.flatMap(({ decision }) => decision.effects);
    try {
      const prepared = await this.#decider.prepare(entries, effects);
      await this.#effects.announce(effects);
      await this.#append(before, entries);
      if (before === 0 && entries.length > 0) await this.#refuseDeleted();
      if (entries.length > 0) this.#owner.appended(taking);
      for (const { item } of decided) if (item.position) this.#daemon.progress.took(this.id, item.position); // before anything else happens to it
      if (entries.length > 0) this.#daemon.publishEntries(this.id, entries);
      this.#daemon.traces?.appended(this.id, entries, () => this.entries());
      this.#observe(decided, prepared);
      this.watchApprovals();
      if (this.#lifecycle === 'open') this.#effects.start(effects, prepared);
      this.#writeTitle(entries);
      for (const { item, decision } of decided) item.resolve(decision.reply);
      return undefined;
    } catch (error) {
      const failed = decided.map(({ item }) => item).filter((item) => item !== NO_SENDER);
      if (!isTooLarge(error)) return this.#fail(before, failed, error);
      this.#decider.undo(before);
      if (failed.length > 1) return this.#decideAndActOnEach(failed);
      failed[0]?.reject(error); // never tried again: no later post overtakes it
      return undefined;
    } finally {
      this.#owner.claimEnded();
    }
  }

  /** Later posts fail with it; otherwise they would overtake it (POSTS-5). */
  #fail(before: number, items: readonly Item[], error: unknown): unknown {
    this.#decider.undo(before);
    for (const item of [...items, ...this.#mailbox.takeBack(isPost)]) item.reject(error);
    return error;
  }

  /** The first answer gave the conversation its title: a model may write a better one. */
  #writeTitle(entries: readonly Entry[]): void {
    const { titler, limits } = this.#daemon.team;
    const first = entries.find((entry) => entry.type === 'title-set' && entry.author.kind === 'system');
    if (!titler || first?.type !== 'title-set' || first.writtenBy || first.copiedFrom) return;
    if (this.#lifecycle !== 'open') return;
    const { tokens: usedTokens, usd: usedUsd } = usedFor(this.state, first.author.id);
    const allows = (reservation: Reservation) =>
      overBudget({ ...limits, usedTokens, usedUsd }, [...this.#effects.reservations, reservation]) === null;
    this.#effects.writeTitle(first.title, titler, allows);
  }

  /** WORKER-4: another daemon has claimed the conversation, or deleted it. */
  #fence(): ParleyError {
    const { error, isLost } = this.#owner.conflict();
    if (isLost) {
      this.#enter('closed');
      this.#effects.abortAll();
      this.#onFenced();
    }
    return error;
  }

  /** The lifecycle only moves forward. */
  #enter(next: 'draining' | 'closed'): void {
    this.#expiry.stop();
    if (this.#lifecycle !== 'closed') this.#lifecycle = next;
  }

  /** One append for each item. */
  async #decideAndActOnEach(items: readonly Item[]): Promise<unknown> {
    let failure: unknown;
    for (const item of items) {
      if (failure !== undefined && isPost(item)) item.reject(failure);
      else failure = (await this.#decideAndAct([item])) ?? failure;
    }
    return failure;
  }

  async #append(before: number, entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return;
    const status = this.#owner.workStatus(this.ledger.conversation.state);
    const startedAt = this.#daemon.elapsed();
    if (!(await this.ledger.append(before, entries, status))) throw this.#fence();
    this.#daemon.telemetry.appended(this.#daemon.elapsed() - startedAt);
  }

  /** DELETE-3. If the first append is only a claim, the posts after it are checked instead. */
  async #refuseDeleted(): Promise<void> {
    this.#deletedUpTo = await this.#daemon.store.deletedUpTo(this.id).catch(() => this.#deletedUpTo);
    if (isVoidLog(this.ledger.entries(0, Number.POSITIVE_INFINITY), this.#deletedUpTo)) throw this.#fence();
  }

  /** Notifies agents in other processes of ended turns, since one may still work on it; and telemetry. */
  #observe(decided: readonly Decided[], prepared: ReadonlyMap<unknown, PreparedCall>): void {
    const { remote, telemetry } = this.#daemon;
    for (const { decision } of decided.filter(isOwn)) {
      telemetry.applied(this.id, decision);
      for (const entry of decision.entries) {
        if (entry.type !== 'turn-ended' || entry.outcome === 'waiting') continue;
        remote.turnOver?.(entry.turnId);
      }
    }
    for (const call of prepared.values())
      telemetry.viewBuilt(call.assembled, 'setup' in call ? call.setup.profile.contextTokens : undefined);
  }

  /** Retries a report whose append failed, for example on a full disk: its effect did happen. */
  #report(command: Command): void {
    const { log, shutdown } = this.#daemon;
    const submit = () => this.#submitReport(command, this.#daemon.maxPayload);
    const isOver = () => this.#lifecycle === 'closed';
    const again = () => {
      const timer = setTimeout(() => {
        if (!isOver() && !shutdown.aborted) submit().catch(again);
      }, REPORT_RETRY_MS);
      timer.unref();
    };
    submit().catch((error: unknown) => {
      if (isOver()) return; // the new owner repairs it
      log.error(
        { conversation: this.id, error: messageOf(error) },
        'a report could not be appended; retrying',
      );
      again();
    });
  }

  /** LARGE-5 */
  async #submitReport(command: Command, room: number): Promise<unknown> {
    try {
      return await this.submit(command);
    } catch (error) {
      if (!isTooLarge(error) || !isOutcome(command)) throw error;
      if (room < SMALLEST_ROOM) return this.submit(unkept(command, messageOf(error)));
      const { store, team, newId } = this.#daemon;
      const smaller = await keptReport(this.id, command, { store, team, newId, maxPayload: room / 2 });
      return this.#submitReport(smaller, room / 2);
    }
  }
}

/** The append is too large for the store. If it is a shared one (WORKER-1), single ones may fit. */
function isTooLarge(error: unknown): boolean {
  return hasCode(error, 'APPEND_TOO_LARGE');
}

/** LARGE-6 */
function unkept({ agent, turnId, duration, requestHash, upTo }: CallOutcome, why: string): CallOutcome {
  const message = `The answer is too large to be stored, even without its long texts: ${why}. Ask for less at once.`;
  const report = { agent, turnId, duration, requestHash, upTo, partial: '' };
  return { type: 'model-failed', code: 'ANSWER_TOO_LARGE', message, ...report };
}

/** Of a model call: its texts can become files. */
function isOutcome(command: Command): command is CallOutcome {
  return command.type in OUTCOMES;
}
const OUTCOMES = { 'model-answered': 1, 'model-failed': 1, 'model-aborted': 1 } satisfies Record<
  CallOutcome['type'],
  1
>;

/** False for copies: their turns belong to another conversation, where they may still run. */
function isOwn({ item: { command } }: Decided): boolean {
  return command.type !== 'copy' && command.type !== 'fork';
}

/**
 * Expires the approvals of one conversation, if the configuration sets a limit, and the calls that their caller does not answer.
 *
 * APPROVAL-EXPIRY-1  The limit counts from the request, across restarts, and is never exceeded.
 * APPROVAL-EXPIRY-2  While the daemon runs, it is measured by the monotonic clock. `expire` only asks for a decision.
 * APPROVAL-EXPIRY-3  A call of a caller's tool has the limit of approvals, at most a day: a program that has ended must not hold
 *                    an agent for ever.
 */
const DAY_MS = 86_400_000;

type Expiry = CommandOf<'expire-approval' | 'expire-call'>;

interface Waiting {
  readonly id: string;
  /** ISO 8601. */
  readonly since: string;
  readonly limit: number;
  readonly expiry: Expiry;
}

class ApprovalExpiry {
  readonly #timers = new Map<string, { readonly limit: number; readonly cancel: () => void }>();
  readonly #daemon: Pick<WorkerContext, 'team' | 'now' | 'timers'>;
  readonly #expire: (expiry: Expiry) => void;
  #stopped = false;

  constructor(daemon: Pick<WorkerContext, 'team' | 'now' | 'timers'>, expire: (expiry: Expiry) => void) {
    this.#daemon = daemon;
    this.#expire = expire;
  }

  /** Starts a timer for each new call that waits, and stops those of the others. */
  watch(state: ConversationState): void {
    if (this.#stopped) return;
    const { team, now, timers } = this.#daemon;
    const waiting = waitingIn(state, team.approvalExpiryMs);
    for (const [id, { limit, cancel }] of this.#timers) {
      if (waiting.some((one) => one.id === id && one.limit === limit)) continue;
      cancel();
      this.#timers.delete(id);
    }
    for (const { id, since, limit, expiry } of waiting) {
      if (this.#timers.has(id)) continue;
      const left = leftOf(limit, Date.parse(since), now());
      const cancel = timers.after(left, () => this.#expire(expiry), { unref: true });
      this.#timers.set(id, { limit, cancel });
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const { cancel } of this.#timers.values()) cancel();
    this.#timers.clear();
  }
}

function waitingIn(state: ConversationState, limit: number | null): Waiting[] {
  const approvals = limit === null ? [] : pendingApprovals(state);
  return [
    ...approvals.map(({ approvalId: id, requestedAt: since }): Waiting => {
      return { id, since, limit: limit ?? DAY_MS, expiry: { type: 'expire-approval', approvalId: id } };
    }),
    ...awaitedCalls(state).map(({ call: { place, atCaller } }): Waiting => {
      const expiry = { type: 'expire-call', call: place } as const;
      return {
        id: wireCallId(place),
        since: atCaller ?? '',
        limit: Math.min(limit ?? DAY_MS, DAY_MS),
        expiry,
      };
    }),
  ];
}

/** APPROVAL-EXPIRY-1: a clock that was set back, or an entry from the future, never extends the limit. */
function leftOf(whole: number, since: number, now: number): number {
  return Math.max(0, Math.min(whole, since + whole - now));
}

/**
 * A queue with one reader: items that arrive while the reader works are passed on together.
 *
 * MAILBOX-1 The handler runs once at a time, with all waiting items, oldest first.
 * MAILBOX-2 The handler must not reject: it reports the result of each item itself.
 */
export class Mailbox<T> {
  #waiting: T[] = [];
  #running: Promise<void> | null = null;
  readonly #handle: (items: T[]) => Promise<void>;

  constructor(handle: (items: T[]) => Promise<void>) {
    this.#handle = handle;
  }

  get isIdle(): boolean {
    return this.#running === null;
  }

  send(item: T): void {
    this.#waiting.push(item);
    this.#running ??= this.#drain();
  }

  /** Removes and returns the waiting items that fit, oldest first. */
  takeBack(fits: (item: T) => boolean): T[] {
    const taken = this.#waiting.filter(fits);
    this.#waiting = this.#waiting.filter((item) => !fits(item));
    return taken;
  }

  /** Resolves when nothing waits and nothing runs. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #drain(): Promise<void> {
    // Items sent in the same tick are handled together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const items = this.#waiting;
      this.#waiting = [];
      await this.#handle(items);
    }
    this.#running = null;
  }
}
