import { Requests } from '../agents/index.ts';
import {
  type AuditedResult,
  type Command,
  Conversation,
  type ConversationState,
  type Decision,
  type Effect,
  type Entry,
  owesSomething,
  pendingApprovals,
  type Reply,
} from '../conversation/index.ts';
import { Mailbox, messageOf, ParleyError } from '../kernel/index.ts';
import type { ConversationLog } from '../persistence/index.ts';
import { ApprovalExpiry } from './approval-expiry.ts';
import { Effects } from './effects.ts';
import { type PreparedRequest, prepareCall } from './prepare.ts';
import { rowOf } from './projections.ts';
import type { Runtime } from './runtime.ts';

/**
 * One conversation at work: the one loop of the design.
 *
 * Q1 Commands are decided one at a time; those that wait share one append.
 * Q2 Append, then act, then answer. What could not be appended never happened: it is undone and its senders told.
 * Q3 A conversation that owes something is marked before its first owing entry, so that the next start finds it.
 */

interface Item {
  readonly command: Command;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
  readonly onDurable: (() => void) | undefined;
}

export class ConversationWorker {
  readonly id: string;
  /** Milliseconds, of the daemon's clock. */
  lastUsedAt: number;
  private readonly conversation: Conversation;
  private requests: Requests;
  private readonly runtime: Runtime;
  private readonly log: ConversationLog;
  /** What is durable: nothing else is shown to anybody. */
  private durable: ConversationState;
  private readonly mailbox = new Mailbox<Item>(async (items) => void (await this.handle(items)));
  private readonly effects: Effects;
  private readonly expiry: ApprovalExpiry;
  private marked = false;
  private draining = false;
  private retired = false;
  /** The file is released, or about to be: nothing can be appended any more. */
  private over = false;

  private constructor(id: string, runtime: Runtime, log: ConversationLog, entries: Entry[]) {
    this.id = id;
    this.runtime = runtime;
    this.log = log;
    this.conversation = new Conversation(runtime.rules, entries);
    this.durable = this.conversation.state;
    this.requests = new Requests(id, runtime.sources);
    this.lastUsedAt = runtime.now();
    this.effects = new Effects(id, runtime, (command) => this.report(command));
    this.expiry = new ApprovalExpiry(runtime.approvalExpiryMs, runtime.now, (approvalId) =>
      this.report({ type: 'expire-approval', approvalId }),
    );
  }

  /** Opens a log and takes up what it owes. */
  static async open(id: string, runtime: Runtime, marked: boolean): Promise<ConversationWorker> {
    const { log, entries } = await runtime.store.open(id);
    try {
      const worker = new ConversationWorker(id, runtime, log, entries);
      worker.marked = marked;
      if (owesSomething(worker.durable)) {
        runtime.reach('before-recovery');
        await worker.submit({ type: 'recover', audited: await audited(id, runtime) });
      }
      return worker;
    } catch (error) {
      await log.close(); // else nobody could open it again
      throw error;
    }
  }

  /** The durable state. */
  get state(): ConversationState {
    return this.durable;
  }

  /** Durable entries from `from` on, `limit` at most. */
  entries(from = 0, limit = Number.POSITIVE_INFINITY): readonly Entry[] {
    return this.conversation.entries.slice(from, Math.min(this.durable.length, from + limit));
  }

  knows(id: string): boolean {
    return this.conversation.has(id);
  }

  /** It is being closed: ask for another. */
  get isRetired(): boolean {
    return this.retired;
  }

  retire(): void {
    this.retired = true;
  }

  /** The store knows that this conversation owes something (Q3). */
  get isMarked(): boolean {
    return this.marked;
  }

  get isIdle(): boolean {
    return this.mailbox.isIdle && this.effects.isIdle && !owesSomething(this.durable);
  }

  /**
   * Resolves once what was decided is durable; rejects if it could not be made so. `onDurable` is called before
   * anything else can happen to the conversation.
   */
  submit(command: Command, onDurable?: () => void): Promise<Reply> {
    this.lastUsedAt = this.runtime.now();
    return new Promise((resolve, reject) => this.mailbox.send({ command, resolve, reject, onDurable }));
  }

  /** Starts no further effects; resolves when those that run have reported. */
  async drain(): Promise<void> {
    this.draining = true;
    this.expiry.stop();
    await this.effects.idle();
    await this.mailbox.idle();
  }

  /** Writes the projections, lifts the mark if nothing is owed, releases the file. */
  async close(): Promise<void> {
    this.expiry.stop();
    await this.mailbox.idle();
    await this.saveProjections();
    if (this.marked && !owesSomething(this.durable)) {
      await this.runtime.store.clearOpen(this.id);
      this.marked = false;
    }
    this.over = true;
    await this.log.close();
  }

  /** Drops what runs and releases the file: the conversation is about to be deleted. */
  async abandon(): Promise<void> {
    this.draining = true;
    this.expiry.stop();
    this.effects.abortAll();
    await this.effects.idle();
    await this.mailbox.idle();
    this.over = true;
    await this.log.close();
  }

  /** Answers what could not be appended for, if anything. */
  private async handle(items: Item[]): Promise<unknown> {
    const before = this.conversation.entries.length;
    const decided: { readonly item: Item; readonly decision: Decision }[] = [];
    for (const item of items) {
      const length = this.conversation.entries.length;
      if (isPost(item)) this.runtime.reach('before-decision', this.id);
      try {
        decided.push({ item, decision: this.conversation.decide(item.command, this.runtime.now()) });
      } catch (error) {
        this.undo(length); // it may have been folded in part
        item.reject(undecided(error));
      }
    }
    const entries = decided.flatMap(({ decision }) => decision.entries);
    const effects = decided.flatMap(({ decision }) => decision.effects);
    try {
      const prepared = this.prepared(effects);
      await this.append(before, entries);
      for (const { item } of decided) item.onDurable?.();
      this.publish(entries);
      this.tellModels(entries);
      this.expiry.watch(pendingApprovals(this.durable));
      this.observe(decided, prepared);
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
    }
  }

  private prepared(effects: readonly Effect[]): Map<Effect, PreparedRequest> {
    try {
      return this.prepare(effects);
    } catch (error) {
      throw undecided(error);
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

  /** Requests are made before the append, so that a turn's start can carry the hash of its request. */
  private prepare(effects: readonly Effect[]): Map<Effect, PreparedRequest> {
    const prepared = new Map<Effect, PreparedRequest>();
    for (const effect of effects) {
      if (effect.type !== 'call-model') continue;
      const { conversation, requests, runtime } = this;
      const reserved = () => this.effects.reservations;
      const found = prepareCall(effect, { conversation, requests, runtime, reserved });
      if (!found) continue;
      prepared.set(effect, found);
      const asking = conversation.entries[effect.key];
      const isNamed = asking?.type === 'turn-started' || asking?.type === 'summary';
      if (isNamed && found.call.kind !== 'reduce') asking.requestHash = found.assembled.request.hash;
    }
    return prepared;
  }

  private async append(before: number, entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return;
    if (!this.marked && owesSomething(this.conversation.state)) {
      await this.runtime.store.markOpen(this.id); // Q3
      this.marked = true;
      this.runtime.reach('marked');
    }
    this.runtime.reach('before-append');
    const outcome = await this.log.append(before, entries);
    this.runtime.reach('after-append');
    if (outcome.kind === 'appended') {
      this.durable = this.conversation.state;
      return;
    }
    throw new ParleyError('LOG_CONFLICT', `somebody else wrote to conversation ${this.id}`, {
      hint: 'only one daemon may write to a data directory',
    });
  }

  private publish(entries: readonly Entry[]): void {
    if (entries.length > 0) this.runtime.publishEntries(this.id, entries);
  }

  private observe(
    decided: readonly { readonly decision: Decision }[],
    prepared: ReadonlyMap<Effect, PreparedRequest>,
  ): void {
    const { telemetry } = this.runtime;
    for (const { decision } of decided) telemetry.applied(this.id, decision);
    for (const { assembled } of prepared.values()) telemetry.viewBuilt(assembled);
  }

  /** Of turns that are over: an agent in another process may still work on one. */
  private tellModels(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.type !== 'turn-ended' || entry.outcome === 'waiting') continue;
      this.runtime.agents.get(entry.agent)?.model.turnOver?.(entry.turnId);
    }
  }

  /** Q2: what could not be appended is forgotten. */
  private undo(length: number): void {
    this.conversation.truncate(length);
    this.requests = new Requests(this.id, this.runtime.sources);
  }

  private report(command: Command): void {
    this.submit(command).catch((error: unknown) => {
      this.runtime.log.error(
        { conversation: this.id, error: messageOf(error) },
        'a report could not be appended; trying again',
      );
      this.retryReport(command);
    });
  }

  /** A report whose append failed (a full disk, say) is kept and sent again: its effect did happen. */
  private retryReport(command: Command): void {
    const timer = setTimeout(() => {
      if (this.over || this.runtime.shutdown.aborted) return;
      this.submit(command).catch(() => this.retryReport(command));
    }, 1_000);
    timer.unref();
  }

  private async saveProjections(): Promise<void> {
    if (this.durable.length === 0) return;
    await this.runtime.store.saveRow(rowOf(this.id, this.durable, this.conversation.entries));
    await this.runtime.store.saveState(this.id, { id: this.id, ...this.durable });
  }
}

/** A bug, and no fault of the outside world: waiting mends it not. */
function undecided(cause: unknown): ParleyError {
  if (cause instanceof ParleyError) return cause;
  return new ParleyError('DECISION_FAILED', `the daemon failed to decide on it: ${messageOf(cause)}`, {
    hint: 'this is a fault of Parley itself: report it with what was posted and the daemon’s log',
    cause,
  });
}

function isPost({ command }: Item): boolean {
  return command.type === 'post';
}

/** Together they are more than the store takes at once (Q1); alone they may not be. */
function isTooLarge(error: unknown): boolean {
  return error instanceof ParleyError && error.code === 'APPEND_TOO_LARGE';
}

/** What the audit log says of calls whose result the log may lack. */
async function audited(id: string, runtime: Runtime): Promise<AuditedResult[]> {
  const records = await runtime.store.toolRecords.read(id);
  return records.flatMap(({ type, call, result }) =>
    type === 'ToolCallCompleted' && result !== undefined
      ? [{ index: call.entry, position: call.position, content: result }]
      : [],
  );
}
