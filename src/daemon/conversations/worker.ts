import { Requests } from '../../agents/index.ts';
import {
  type Command,
  type ConversationState,
  type Decision,
  type Effect,
  type Entry,
  missingForRun,
  pendingApprovals,
  type Reply,
} from '../../conversation/index.ts';
import { Mailbox, messageOf, type ParleyError } from '../../kernel/index.ts';
import { type IngressPosition, isCovered, type NewestAppend } from '../../persistence/index.ts';
import type { Runtime } from '../runtime.ts';
import { ApprovalExpiry } from './approval-expiry.ts';
import { isVoidLog, openLog } from './deletion.ts';
import { Effects } from './effects.ts';
import { Ledger } from './ledger.ts';
import { type ConversationOwner, moved } from './ownership.ts';
import { type PreparedRequest, prepareCalls } from './prepare.ts';
import { TurnTimes } from './turn-times.ts';
import {
  audited,
  type Item,
  isPost,
  isTooLarge,
  keepReporting,
  NOBODY,
  NOTHING,
  observe,
  sequencesOf,
  tellModels,
  undecided,
} from './worker-items.ts';

/** `draining`: it starts no effects. `closed`: the file is released, or about to be; nothing can be appended. */
type Lifecycle = 'open' | 'draining' | 'closed';

/**
 * One conversation in memory: decide, append, act, answer.
 *
 * WORKER-1 Commands are decided one at a time; those that wait share one append.
 * WORKER-2 Append, then act, then answer. Entries that could not be appended are undone, and the senders get the error.
 * WORKER-3 Only durable entries are shown. Outstanding work is marked in the store first (`ledger.ts`).
 * WORKER-4 When several daemons share the logs, every append follows an own claim (`ownership.ts`). When another daemon
 *          has claimed the conversation, this worker aborts its effects, and reports and appends nothing any more.
 * WORKER-5 While it decides on posts, a note names them (`attempts.ts`).
 */
export class ConversationWorker {
  readonly id: string;
  /** By the monotonic clock. */
  lastUsedAt: number;
  private readonly ledger: Ledger;
  private requests: Requests;
  private readonly runtime: Runtime;
  private readonly mailbox = new Mailbox<Item>(async (items) => void (await this.handle(items)));
  private readonly effects: Effects;
  private readonly times: TurnTimes;
  private readonly expiry: ApprovalExpiry;
  private readonly owner: ConversationOwner;
  private readonly onFenced: () => void;
  private lifecycle: Lifecycle = 'open';
  /** It is being closed: ask for another. */
  isRetired = false;
  private deletedUpTo: IngressPosition | null;

  private constructor(
    id: string,
    runtime: Runtime,
    marked: boolean,
    onFenced: (worker: ConversationWorker) => void,
    opened: Awaited<ReturnType<typeof openLog>>,
  ) {
    this.id = id;
    this.deletedUpTo = opened.deletedUpTo;
    this.runtime = runtime;
    this.owner = runtime.ownership.of(id);
    this.onFenced = () => onFenced(this);
    this.ledger = new Ledger(id, runtime, marked || runtime.ownership.isShared, opened);
    this.requests = new Requests(id, runtime.sources);
    this.lastUsedAt = runtime.elapsed();
    this.times = new TurnTimes(runtime.elapsed);
    this.effects = new Effects(id, runtime, (command) => this.report(command));
    this.expiry = new ApprovalExpiry(runtime.approvalExpiryMs, runtime.now, (approvalId) =>
      this.report({ type: 'expire-approval', approvalId }),
    );
  }

  /** Opens a log and takes up what it owes; where logs are shared, the first who works on it does that (WORKER-4). */
  static async open(
    id: string,
    runtime: Runtime,
    marked: boolean,
    onFenced: (worker: ConversationWorker) => void = () => undefined,
  ): Promise<ConversationWorker> {
    const opened = await openLog(id, runtime);
    try {
      const worker = new ConversationWorker(id, runtime, marked, onFenced, opened);
      const isOutstanding = worker.hasOutstandingWork || missingForRun(worker.state, runtime.rules) !== null;
      if (!runtime.ownership.isShared && isOutstanding) {
        runtime.reach('before-recovery');
        await worker.submit({ type: 'recover', audited: await audited(id, runtime) });
      }
      return worker;
    } catch (error) {
      await opened.log.close(); // else nobody could open it again
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

  knows(id: string): boolean {
    return this.ledger.conversation.has(id);
  }

  /** Where logs are shared: the place of the newest append that is known here. */
  get newestSequence(): number {
    return this.ledger.newestSequence;
  }

  /** A deletion has made that post void (`deletion.ts`). */
  voids(post: IngressPosition): boolean {
    return isCovered(post, this.deletedUpTo);
  }

  /** DELETE-4 */
  async readDeletion(): Promise<void> {
    this.deletedUpTo = await this.runtime.store.deletedUpTo(this.id);
  }

  /** Somebody has use for it. */
  touch(): void {
    this.lastUsedAt = this.runtime.elapsed();
  }

  retire(): void {
    this.isRetired = true;
  }

  /** The store knows that this conversation owes something (WORKER-3). */
  get isMarked(): boolean {
    return this.ledger.isMarked;
  }

  /** Something is under way or waits. */
  get hasOutstandingWork(): boolean {
    return this.ledger.hasOutstandingWork;
  }

  get isIdle(): boolean {
    const isQuiet = this.mailbox.isIdle && this.effects.isIdle;
    return isQuiet && (!this.isOurs || !this.hasOutstandingWork);
  }

  /** Until all that was asked of it is in the log, or refused; null: it is. */
  get settling(): Promise<void> | null {
    return this.mailbox.isIdle ? null : this.mailbox.idle();
  }

  /** Nobody else works on it, as far as is known here. */
  get isOurs(): boolean {
    return this.lifecycle !== 'closed' && this.owner.isOurs(this.state);
  }

  /** As `isOurs`; a claim that is on its way is waited for, since others may see it already. */
  async willBeOurs(): Promise<boolean> {
    await this.owner.settled();
    return this.isOurs;
  }

  /** What is in memory is not what the log holds: another daemon has appended since, or the log was deleted. */
  isBehind(newest: NewestAppend | null): boolean {
    return this.owner.isBehind(this.state, this.ledger.newestSequence, newest);
  }

  /**
   * Resolves once what was decided is durable; rejects if it could not be made so. `onDurable` is called before
   * anything else can happen to the conversation.
   */
  submit(command: Command, onDurable?: () => void): Promise<Reply> {
    if (this.lifecycle === 'closed' && this.isShared) return Promise.reject(moved(this.id));
    this.touch();
    return new Promise((resolve, reject) => this.mailbox.send({ command, resolve, reject, onDurable }));
  }

  /** Starts no further effects; resolves when those that run have reported. */
  async drain(): Promise<void> {
    this.enter('draining');
    await this.effects.idle();
    await this.mailbox.idle();
  }

  /** Writes the projections, lifts the mark if nothing is owed, releases the file: that in any case, or nobody could open it. */
  async close(): Promise<void> {
    this.expiry.stop();
    await this.mailbox.idle();
    try {
      if (this.isOurs) await this.saveProjections();
      if (!this.isShared) await this.ledger.liftMark();
    } catch (error) {
      const fields = { conversation: this.id, error: messageOf(error) };
      this.runtime.log.warn(fields, 'the list says of a conversation what it was before; its log is whole');
    }
    this.enter('closed');
    await this.ledger.close();
  }

  /** Drops what runs and releases the file: the conversation is about to be deleted. */
  async abandon(): Promise<void> {
    this.enter('draining');
    this.effects.abortAll();
    await this.effects.idle();
    await this.mailbox.idle();
    this.enter('closed');
    await this.ledger.close();
  }

  /** Answers what could not be appended for, if anything. */
  private async handle(items: Item[]): Promise<unknown> {
    const before = this.ledger.conversation.entries.length;
    let taking: Decision | null;
    try {
      taking = await this.takeOver(items);
    } catch (error) {
      this.undo(before);
      for (const item of items) item.reject(error);
      return error;
    }
    const decided = this.decide(items);
    const isAsked = items.some(({ command }) => command.type === 'claim');
    if (taking && (isAsked || decided.some(({ decision }) => decision.entries.length > 0)))
      decided.unshift({ item: NOBODY, decision: taking });
    else if (taking) this.undo(before); // nothing comes of it: there is nothing to be claimed for
    const entries = decided.flatMap(({ decision }) => decision.entries);
    const effects = decided.flatMap(({ decision }) => decision.effects);
    try {
      const prepared = this.prepared(effects);
      await this.effects.announce(effects);
      await this.append(before, entries);
      if (before === 0 && entries.length > 0 && this.isShared) await this.refuseDeleted();
      if (entries.length > 0) this.owner.appended(taking);
      for (const { item } of decided) item.onDurable?.();
      if (entries.length > 0) this.runtime.publishEntries(this.id, entries);
      tellModels(decided, this.runtime);
      this.expiry.watch(pendingApprovals(this.state));
      observe(this.id, this.runtime, decided, prepared);
      if (this.lifecycle === 'open') {
        for (const effect of effects) this.effects.start(effect, prepared.get(effect)?.call);
      }
      for (const { item, decision } of decided) item.resolve(decision.reply);
      return undefined;
    } catch (error) {
      this.undo(before);
      if (decided.length > 1 && isTooLarge(error)) return this.handleEach(decided.map(({ item }) => item));
      for (const { item } of decided) item.reject(error);
      // A post that stands behind one that failed fails with it, or it would overtake it.
      for (const item of this.mailbox.takeBack(isPost)) item.reject(error);
      return error;
    } finally {
      this.owner.claimEnded();
    }
  }

  private decide(items: readonly Item[]): { readonly item: Item; readonly decision: Decision }[] {
    this.runtime.attempts.deciding(sequencesOf(items)); // WORKER-5
    const { conversation } = this.ledger;
    return items.flatMap((item) => {
      const length = conversation.entries.length;
      try {
        if (this.isShared && item.command.type === 'claim') return [{ item, decision: NOTHING }];
        if (isPost(item)) this.runtime.reach('before-decision', this.id);
        return [{ item, decision: conversation.decide(item.command, this.runtime.now()) }];
      } catch (error) {
        this.undo(length); // it may have been folded in part
        item.reject(undecided(error));
        return [];
      }
    });
  }

  /** WORKER-4: decided before anything else, if it has to be. */
  private async takeOver(items: readonly Item[]): Promise<Decision | null> {
    const { id, runtime, state } = this;
    if (this.lifecycle === 'closed' && this.isShared) throw moved(id);
    const command = await this.owner.claim({
      state,
      commands: items.map((item) => item.command),
      audited: () => audited(id, runtime),
      isLeaving: this.lifecycle !== 'open',
      reach: runtime.reach,
    });
    if (command === null) return null;
    return this.ledger.conversation.decide(command, runtime.now());
  }

  /** WORKER-4: another daemon has claimed the conversation, or deleted it. */
  private fence(): ParleyError {
    if (this.isShared) {
      this.enter('closed');
      this.effects.abortAll();
      this.onFenced();
    }
    return this.owner.conflict();
  }

  private get isShared(): boolean {
    return this.runtime.ownership.isShared;
  }

  /** The lifecycle only moves forward. */
  private enter(next: 'draining' | 'closed'): void {
    this.expiry.stop();
    if (this.lifecycle !== 'closed') this.lifecycle = next;
  }

  private prepared(effects: readonly Effect[]): Map<Effect, PreparedRequest> {
    const { requests, runtime, times } = this;
    const { conversation } = this.ledger;
    try {
      const reserved = () => this.effects.reservations;
      return prepareCalls(effects, { conversation, requests, runtime, times, reserved });
    } catch (error) {
      throw undecided(error);
    } finally {
      runtime.attempts.decided(); // WORKER-5
    }
  }

  /** Each with an append of its own. */
  private async handleEach(items: readonly Item[]): Promise<unknown> {
    let failure: unknown;
    for (const item of items) {
      if (failure !== undefined && isPost(item)) item.reject(failure);
      else failure = (await this.handle([item])) ?? failure;
    }
    return failure;
  }

  private async append(before: number, entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return;
    const standing = this.owner.standing(this.ledger.conversation.state);
    if (!(await this.ledger.append(before, entries, standing))) throw this.fence();
  }

  /** DELETE-3. The first append may be a claim alone: then the posts that follow it are compared. */
  private async refuseDeleted(): Promise<void> {
    this.deletedUpTo = await this.runtime.store.deletedUpTo(this.id).catch(() => this.deletedUpTo);
    if (isVoidLog(this.ledger.entries(0, Number.POSITIVE_INFINITY), this.deletedUpTo)) throw this.fence();
  }

  /** WORKER-2: what could not be appended is forgotten. */
  private undo(length: number): void {
    this.ledger.takeBack(length);
    this.requests = new Requests(this.id, this.runtime.sources);
  }

  private report(command: Command): void {
    const isOver = () => this.lifecycle === 'closed';
    keepReporting(this.id, () => this.submit(command), isOver, this.runtime);
  }

  saveProjections(): Promise<void> {
    return this.ledger.saveProjections();
  }
}
