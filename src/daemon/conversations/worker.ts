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
import { Mailbox, messageOf, ParleyError } from '../../kernel/index.ts';
import { type IngressPosition, isCovered, type NewestAppend } from '../../persistence/index.ts';
import { Lease, moved, standingOf } from '../cluster/lease.ts';
import type { Runtime } from '../runtime.ts';
import { ApprovalExpiry } from './approval-expiry.ts';
import { isVoidLog, openLog } from './deletion.ts';
import { Effects } from './effects.ts';
import { Ledger } from './ledger.ts';
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

/**
 * One conversation at work: the one loop of the design.
 *
 * Q1 Commands are decided one at a time; those that wait share one append.
 * Q2 Append, then act, then answer. What could not be appended never happened: it is undone and its senders told.
 * Q3 Nothing but what is durable is shown, and what is owed is marked first (`ledger.ts`).
 * Q4 Where several daemons share the work, what is decided here stands behind an own claim, or is not appended. When
 *    another has claimed the conversation, this worker is over: it drops what runs, and reports and appends nothing.
 * Q5 While it decides on posts, and waits for nothing, a note says on which (`attempts.ts`).
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
  private readonly tenure: Lease | null;
  private readonly onFenced: () => void;
  private draining = false;
  private retired = false;
  /** The file is released, or about to be: nothing can be appended any more. */
  private over = false;
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
    this.tenure = runtime.self && new Lease(runtime.self);
    this.onFenced = () => onFenced(this);
    this.ledger = new Ledger(id, runtime, marked || runtime.self !== null, opened);
    this.requests = new Requests(id, runtime.sources);
    this.lastUsedAt = runtime.elapsed();
    this.times = new TurnTimes(runtime.elapsed);
    this.effects = new Effects(id, runtime, (command) => this.report(command));
    this.expiry = new ApprovalExpiry(runtime.approvalExpiryMs, runtime.now, (approvalId) =>
      this.report({ type: 'expire-approval', approvalId }),
    );
  }

  /** Opens a log and takes up what it owes; where logs are shared, the first who works on it does that (Q4). */
  static async open(
    id: string,
    runtime: Runtime,
    marked: boolean,
    onFenced: (worker: ConversationWorker) => void = () => undefined,
  ): Promise<ConversationWorker> {
    const opened = await openLog(id, runtime);
    try {
      const worker = new ConversationWorker(id, runtime, marked, onFenced, opened);
      if (runtime.self === null && (worker.owes || missingForRun(worker.state, runtime.rules) !== null)) {
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

  /** It is being closed: ask for another. */
  get isRetired(): boolean {
    return this.retired;
  }

  /** Somebody has use for it. */
  touch(): void {
    this.lastUsedAt = this.runtime.elapsed();
  }

  retire(): void {
    this.retired = true;
  }

  /** The store knows that this conversation owes something (Q3). */
  get isMarked(): boolean {
    return this.ledger.isMarked;
  }

  /** Something is under way or waits. */
  get owes(): boolean {
    return this.ledger.owes;
  }

  get isIdle(): boolean {
    const isQuiet = this.mailbox.isIdle && this.effects.isIdle;
    return isQuiet && (!this.isOurs || !this.owes);
  }

  /** Until all that was asked of it is in the log, or refused; null: it is. */
  get settling(): Promise<void> | null {
    return this.mailbox.isIdle ? null : this.mailbox.idle();
  }

  /** Nobody else works on it, as far as is known here. */
  get isOurs(): boolean {
    return !this.over && (this.tenure === null || this.tenure.isOurs(this.state));
  }

  /** As `isOurs`; a claim that is on its way is waited for, since others may see it already. */
  async willBeOurs(): Promise<boolean> {
    await this.tenure?.decided();
    return this.isOurs;
  }

  /** What is in memory is not what the log holds: another daemon has appended since, or the log was deleted. */
  isBehind(newest: NewestAppend | null): boolean {
    return this.tenure?.isBehind(this.state, this.ledger.newestSequence, newest) ?? false;
  }

  /**
   * Resolves once what was decided is durable; rejects if it could not be made so. `onDurable` is called before
   * anything else can happen to the conversation.
   */
  submit(command: Command, onDurable?: () => void): Promise<Reply> {
    if (this.over && this.tenure) return Promise.reject(moved(this.id));
    this.touch();
    return new Promise((resolve, reject) => this.mailbox.send({ command, resolve, reject, onDurable }));
  }

  /** Starts no further effects; resolves when those that run have reported. */
  async drain(): Promise<void> {
    this.draining = true;
    this.expiry.stop();
    await this.effects.idle();
    await this.mailbox.idle();
  }

  /** Writes the projections, lifts the mark if nothing is owed, releases the file: that in any case, or nobody could open it. */
  async close(): Promise<void> {
    this.expiry.stop();
    await this.mailbox.idle();
    try {
      if (this.isOurs) await this.saveProjections();
      if (this.tenure === null) await this.ledger.liftMark();
    } catch (error) {
      const fields = { conversation: this.id, error: messageOf(error) };
      this.runtime.log.warn(fields, 'the list says of a conversation what it was before; its log is whole');
    }
    this.over = true;
    await this.ledger.close();
  }

  /** Drops what runs and releases the file: the conversation is about to be deleted. */
  async abandon(): Promise<void> {
    this.draining = true;
    this.expiry.stop();
    this.effects.abortAll();
    await this.effects.idle();
    await this.mailbox.idle();
    this.over = true;
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
      if (before === 0 && entries.length > 0 && this.tenure) await this.refuseDeleted();
      if (entries.length > 0) this.tenure?.tookUp(this.id, taking);
      for (const { item } of decided) item.onDurable?.();
      if (entries.length > 0) this.runtime.publishEntries(this.id, entries);
      tellModels(entries, this.runtime);
      this.expiry.watch(pendingApprovals(this.state));
      observe(this.id, this.runtime, decided, prepared);
      if (!this.draining) {
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
      this.tenure?.claimIsOver();
    }
  }

  private decide(items: readonly Item[]): { readonly item: Item; readonly decision: Decision }[] {
    this.runtime.attempts.deciding(sequencesOf(items)); // Q5
    const { conversation } = this.ledger;
    return items.flatMap((item) => {
      const length = conversation.entries.length;
      try {
        if (this.tenure && item.command.type === 'claim') return [{ item, decision: NOTHING }];
        if (isPost(item)) this.runtime.reach('before-decision', this.id);
        return [{ item, decision: conversation.decide(item.command, this.runtime.now()) }];
      } catch (error) {
        this.undo(length); // it may have been folded in part
        item.reject(undecided(error));
        return [];
      }
    });
  }

  /** Q4: decided before anything else, if it has to be. */
  private async takeOver(items: readonly Item[]): Promise<Decision | null> {
    if (this.tenure === null) return null;
    if (this.over) throw moved(this.id);
    if (!this.tenure.needsClaim(this.state)) return null;
    if (this.draining) throw moved(this.id); // whoever leaves takes over nothing
    const { id, runtime } = this;
    const found = () => audited(id, runtime);
    const command = await this.tenure.command(id, this.state, items, found, runtime.reach);
    return this.ledger.conversation.decide(command, runtime.now());
  }

  /** Q4 */
  private fence(): ParleyError {
    this.over = true;
    this.draining = true;
    this.expiry.stop();
    this.effects.abortAll();
    this.onFenced();
    return moved(this.id);
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
      runtime.attempts.decided(); // Q5
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
    const standing = this.tenure ? standingOf(this.ledger.conversation.state) : undefined;
    if (await this.ledger.append(before, entries, standing)) return;
    if (this.tenure) throw this.fence();
    throw new ParleyError('LOG_CONFLICT', `somebody else wrote to conversation ${this.id}`, {
      hint: 'only one daemon may write to a data directory',
    });
  }

  /** DELETE-3. The first append may be a claim alone: then the posts that follow it are compared. */
  private async refuseDeleted(): Promise<void> {
    this.deletedUpTo = await this.runtime.store.deletedUpTo(this.id).catch(() => this.deletedUpTo);
    if (isVoidLog(this.ledger.entries(0, Number.POSITIVE_INFINITY), this.deletedUpTo)) throw this.fence();
  }

  /** Q2: what could not be appended is forgotten. */
  private undo(length: number): void {
    this.ledger.takeBack(length);
    this.requests = new Requests(this.id, this.runtime.sources);
  }

  private report(command: Command): void {
    keepReporting(
      this.id,
      () => this.submit(command),
      () => this.over,
      this.runtime,
    );
  }

  saveProjections(): Promise<void> {
    return this.ledger.saveProjections();
  }
}
