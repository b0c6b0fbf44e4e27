import type { StreamPosition } from '../../bus/index.ts';
import {
  type Claim,
  type Command,
  type Entry,
  type PendingApproval,
  pendingApprovals,
  type Reply,
} from '../../conversation/index.ts';
import { messageOf, ParleyError } from '../../kernel/index.ts';
import type { ConversationRow } from '../../persistence/index.ts';
import type { Runtime } from '../runtime.ts';
import { type Deleted, deleteConversation, isSpared, type Keep, nothingDeleted } from './deletion.ts';
import { OpenWorkers } from './open-workers.ts';
import { deleted } from './post-refusals.ts';
import { isComplete, type ListedRow, listed, rowOf } from './projections.ts';
import { ConversationWorker } from './worker.ts';

/**
 * The conversations that are in memory.
 *
 * WORKERS-1 A conversation is open once at a time: opening, closing and deleting wait for one another.
 * WORKERS-2 Idle ones leave memory; opening one reads its own log only.
 * WORKERS-3 A start takes up every conversation that was marked, and reads no other log (all, if the marks are missing).
 */

const SWEEP_MS = 10_000;

export class Workers {
  private readonly runtime: Runtime;
  private readonly open = new OpenWorkers();
  /** Conversations whose log is being closed or deleted (WORKERS-1). */
  private readonly closing = new Map<string, Promise<void>>();
  private readonly deleting = new Map<string, Promise<void>>();
  private readonly marked = new Set<string>();
  private sweeper: NodeJS.Timeout | null = null;

  constructor(runtime: Runtime) {
    this.runtime = runtime;
  }

  /** How many are in memory. */
  get size(): number {
    return this.open.size;
  }

  /** Takes up what the last run left (WORKERS-3). */
  async recover(): Promise<void> {
    const { store, log } = this.runtime;
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS);
    this.sweeper.unref();
    if (this.runtime.ownership.isShared) return; // a conversation has to be claimed first
    const marks = await store.openMarks();
    const ids = marks ?? (await store.conversations());
    if (marks === null && ids.length > 0) {
      log.warn(
        { conversations: ids.length },
        'the marks of open conversations are missing: reading every log',
      );
    }
    for (const id of marks ?? []) this.marked.add(id);
    for (const id of ids) {
      try {
        await this.use(id);
      } catch (error) {
        // One damaged log must not keep the others from being served.
        log.error(
          { conversation: id, error: messageOf(error) },
          'this conversation cannot be opened; the others go on',
        );
      }
    }
    if (marks === null) await store.initialiseMarks();
  }

  /** `post`: where the ingress stream has the post that the command is made of; one that is deleted changes nothing. */
  async submit(
    conversation: string,
    command: Command,
    onDurable?: () => void,
    post?: StreamPosition,
  ): Promise<Reply> {
    let worker = await this.current(conversation);
    while (worker.isRetired) worker = await this.use(conversation);
    if (post && worker.voids(post)) return { kind: 'refused', refusal: deleted(conversation) };
    return worker.submit(command, onDurable);
  }

  /** The worker of a conversation, opened if need be. Use it at once: it may be closed when nobody asked for long. */
  async use(id: string): Promise<ConversationWorker> {
    // Another closing may have begun by the time that one is over (WORKERS-1).
    for (let before = this.closing.get(id); before; before = this.closing.get(id)) await before;
    this.open.worker(id)?.touch();
    const known = this.open.opening(id);
    if (known) return known;
    const opening = ConversationWorker.open(id, this.runtime, this.marked.has(id), (worker) =>
      this.drop(worker),
    );
    this.open.add(id, opening);
    if (this.open.isFull) this.sweep();
    return opening;
  }

  /** As `use`, but only if the conversation has entries: one whose every post was refused does not exist. */
  async existing(id: string): Promise<ConversationWorker> {
    if (this.open.opening(id) || (await this.runtime.store.exists(id))) {
      const worker = await this.current(id, true);
      if (worker.state.length > 0) return worker;
    }
    throw new ParleyError('NOT_FOUND', `there is no conversation ${id}`, {
      hint: 'post a message to begin one; `parley ls` lists what there is',
    });
  }

  /**
   * As `use`, and what is in memory is what the log holds: where logs are shared, others may have appended. One's own
   * need not be looked at before an append, which finds that out; `always`: before it is shown, it is.
   */
  async current(id: string, always = false): Promise<ConversationWorker> {
    const worker = await this.use(id);
    const { shared } = this.runtime.store;
    if (shared === null || (worker.isOurs && !always)) return worker;
    if (!worker.isBehind(await shared.newest(id))) return worker;
    this.drop(worker);
    return this.use(id);
  }

  /** It is open here, and nobody else works on it; or it is being deleted here. */
  holds(id: string): boolean {
    return this.deleting.has(id) || this.open.worker(id)?.isOurs === true;
  }

  /** As `holds`; a claim that is on its way is waited for. */
  async willHold(id: string): Promise<boolean> {
    return this.deleting.has(id) || (await this.open.worker(id)?.willBeOurs()) === true;
  }

  /** The conversations that are this daemon's to work on. */
  get held(): readonly string[] {
    return this.open.workers.filter((worker) => worker.isOurs).map(({ id }) => id);
  }

  /** What is in memory of a conversation is of no use any more: another daemon has it. Again is fine. */
  drop(worker: ConversationWorker): void {
    if (this.open.worker(worker.id) !== worker) return;
    this.open.delete(worker.id);
    worker.retire();
    this.exclusively(worker.id, () => worker.abandon()).catch((error: unknown) =>
      this.runtime.log.error(
        { conversation: worker.id, error: messageOf(error) },
        'a conversation could not be let go',
      ),
    );
  }

  /** Something is owed or under way there; false for what is not in memory. */
  isAtWork(id: string): boolean {
    return this.open.opening(id) !== undefined && !this.open.worker(id)?.isIdle;
  }

  /** The same of a conversation in memory; false for another. */
  remembers(conversation: string, id: string): boolean {
    return this.open.worker(conversation)?.knows(id) === true;
  }

  /** An entry of that conversation has this id. False where the log cannot be read. */
  async knows(conversation: string, id: string): Promise<boolean> {
    try {
      return (await this.existing(conversation)).knows(id);
    } catch {
      return false;
    }
  }

  /** What is durable of a conversation in memory: one whose turn runs is, unless it is just being deleted. */
  async entriesOf(id: string): Promise<readonly Entry[]> {
    const opening = this.open.opening(id);
    if (opening) return (await opening).entries();
    throw new ParleyError('NOT_FOUND', `the conversation ${id} is not open`);
  }

  /** The list of conversations by id: what is stored, corrected by what is in memory. */
  async rows(): Promise<ListedRow[]> {
    const rows = new Map((await this.runtime.store.rows()).map((row) => [row.id, listed(row)]));
    for (const worker of await this.open.all()) {
      // Of one that others work on, or have deleted, what is in memory says nothing.
      if (worker.isOurs && worker.state.length > 0) {
        const row = rowOf(worker.id, worker.state, worker.entries(0, 50));
        rows.set(worker.id, listed(row, worker.state));
      }
    }
    return [...rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** As it is stored, whatever is in memory. */
  storedRows(): Promise<ConversationRow[]> {
    return this.runtime.store.rows();
  }

  /** Saves the row of a conversation that somebody left without doing so. */
  async listAnew(id: string): Promise<void> {
    const worker = await this.current(id);
    if (worker.isOurs) return; // its row is saved when it is closed
    await worker.saveProjections();
    await this.close(worker);
  }

  /**
   * Rebuilds rows that are missing from the list or were written by an older version, from the logs (L1). Logs in mode run
   * are opened too: the configuration may no longer have what their run needs.
   */
  async rebuildRows(): Promise<void> {
    const rows = await this.runtime.store.rows();
    const known = new Set(rows.filter((row) => isComplete(row) && row.mode !== 'run').map((row) => row.id));
    for (const id of await this.runtime.store.conversations()) {
      if (known.has(id) || this.runtime.shutdown.aborted) continue;
      await this.use(id)
        .then(async (worker) => {
          await worker.saveProjections();
          await this.close(worker);
        })
        .catch((error: unknown) =>
          this.runtime.log.error({ conversation: id, error: messageOf(error) }, 'cannot be listed'),
        );
    }
  }

  /** The calls that wait for a person's word. Their conversations are marked, so a start opens them and none leaves memory. */
  async approvals(): Promise<{ readonly conversation: string; readonly pending: PendingApproval }[]> {
    return (await this.open.all()).flatMap((worker) =>
      worker.isOurs
        ? pendingApprovals(worker.state).map((pending) => ({ conversation: worker.id, pending }))
        : [],
    );
  }

  /** The conversation in memory whose log asked for this approval, answered or not. */
  async conversationOf(approvalId: string): Promise<string | undefined> {
    const isAsked = (entry: Entry) =>
      entry.type === 'approval-requested' && !entry.copiedFrom && entry.approvalId === approvalId;
    return (await this.open.find((worker) => worker.isOurs && worker.entries().some(isAsked)))?.id;
  }

  /**
   * `upTo`: the newest post that goes with it; default: the newest of now. `keep`: why it stays after all, by what its
   * log holds when nothing else can happen to it. Again is fine.
   */
  async delete(id: string, upTo?: StreamPosition, keep?: Keep): Promise<Deleted> {
    const asked = upTo ?? (await this.runtime.lastPost(id));
    if (keep && (await this.runtime.store.exists(id))) await this.current(id, true);
    let deleted = nothingDeleted(asked);
    const deletion = this.exclusively(id, async () => {
      const known = (await this.open.opening(id)?.catch(() => null)) ?? null;
      while (known?.settling) await known.settling;
      if (isSpared(known, asked)) return;
      let kept = keep?.(known?.state, asked) ?? null;
      const worker = kept === null ? await this.takeOut(id, known) : null;
      if (worker !== known) kept ??= keep?.(worker?.state, asked) ?? null; // it was read again
      if (kept !== null) {
        if (worker !== known) await worker?.abandon();
        deleted = { ...nothingDeleted(asked), existed: true, kept };
        return;
      }
      deleted = await deleteConversation(id, this.runtime, asked, worker);
      this.marked.delete(id);
    });
    this.deleting.set(id, deletion);
    await deletion.finally(() => {
      if (this.deleting.get(id) === deletion) this.deleting.delete(id);
    });
    return deleted;
  }

  /** DELETE-4 */
  async cutDeletions(): Promise<void> {
    await this.runtime.store.cutDeletions(() => this.runtime.ingressEnd());
    for (const worker of await this.open.all()) await worker.readDeletion();
  }

  /**
   * The worker of a conversation that is to be deleted; it is no longer in memory. Where logs are shared, what others
   * may have appended to is read again: the log may be a later one.
   */
  private async takeOut(id: string, known: ConversationWorker | null): Promise<ConversationWorker | null> {
    this.open.delete(id);
    known?.retire();
    if (this.runtime.store.shared === null || known?.isOurs) return known;
    await known?.abandon();
    return ConversationWorker.open(id, this.runtime, false).catch(() => null); // a damaged log can be deleted
  }

  /** Lets what runs reach a durable point. */
  async drain(onReleased: (id: string, claim: Claim | null) => void = () => undefined): Promise<void> {
    if (this.sweeper) clearInterval(this.sweeper);
    await Promise.all(
      this.open.openings.map(async (opening) => {
        const worker = await opening.catch(() => null);
        await worker?.drain();
        if (!worker || !this.runtime.ownership.isShared) return;
        const claim = worker.isOurs && worker.hasOutstandingWork ? worker.state.claim : null;
        await this.close(worker, true); // others need not wait for the slowest
        onReleased(worker.id, claim);
      }),
    );
  }

  async closeAll(): Promise<void> {
    const workers = await this.open.all();
    await Promise.all(workers.map((worker) => this.close(worker, true)));
    await Promise.all(this.closing.values());
  }

  private sweep(): void {
    for (const worker of this.open.idle(this.runtime.elapsed())) this.close(worker).catch(() => undefined);
  }

  private async close(worker: ConversationWorker, evenIfBusy = false): Promise<void> {
    if (!evenIfBusy && !worker.isIdle) return;
    // By now another worker of the same conversation may stand in its place: that one is not this caller's to close.
    if (this.open.worker(worker.id) !== worker) return;
    this.open.delete(worker.id);
    worker.retire();
    await this.exclusively(worker.id, async () => {
      await worker.close();
      if (worker.isMarked) this.marked.add(worker.id);
      else this.marked.delete(worker.id);
    });
  }

  /** WORKERS-1 */
  private exclusively(id: string, work: () => Promise<void>): Promise<void> {
    const before = this.closing.get(id) ?? Promise.resolve();
    const running = before.then(work).finally(() => {
      if (this.closing.get(id) === running) this.closing.delete(id);
    });
    this.closing.set(id, running);
    return running;
  }
}
