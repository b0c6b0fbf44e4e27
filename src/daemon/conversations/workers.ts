import type { Model } from '../../agents/index.ts';
import type { Fate, StreamPosition } from '../../bus/index.ts';
import {
  type Claim,
  type Command,
  type Entry,
  firstOfDays,
  type PendingApproval,
  pendingApprovals,
  type Reply,
} from '../../conversation/index.ts';
import { InOrder, messageOf, ParleyError, tally } from '../../kernel/index.ts';
import { type ConversationRow, isCovered } from '../../persistence/index.ts';
import { runningActivity } from './activity.ts';
import {
  type Deletable,
  type Deleted,
  type DeletionContext,
  type DeletionTarget,
  deleteConversation,
  isSpared,
  type KeepCheck,
  nothingDeleted,
  readToDelete,
} from './deletion.ts';
import { type ListedRow, listedRow, rowOf } from './projections.ts';
import { ConversationWorker, type PostName, type WorkerContext } from './worker/worker.ts';

/**
 * The conversations in memory.
 *
 * WORKERS-1  A conversation has at most one open worker: opening, closing and deleting wait for each other.
 * WORKERS-2  Idle workers are evicted. Opening one reads only its own log.
 * WORKERS-3  A start opens every marked conversation and reads no other log (all logs if the marks are missing).
 */

const SWEEP_MS = 10_000;

/** What the conversations of a daemon share. */
interface WorkersContext extends WorkerContext, DeletionContext {
  readonly store: WorkerContext['store'];
  readonly ownership: WorkerContext['ownership'];
  readonly remote: Pick<Model, 'turnOver' | 'isAbsent'>;
}

export class Workers {
  readonly #daemon: WorkersContext;
  readonly #open = new OpenWorkers();
  /** Closes and deletes logs (WORKERS-1). */
  readonly #closing = new InOrder();
  /** By conversation: the deletions that are asked for. */
  readonly #deleting = new Map<string, number>();
  readonly #marked = new Set<string>();
  #sweeper: NodeJS.Timeout | null = null;

  constructor(daemon: WorkersContext) {
    this.#daemon = daemon;
  }

  opened(): Promise<ConversationWorker[]> {
    return this.#open.all();
  }

  /** How many are in memory. */
  get size(): number {
    return this.#open.size;
  }

  /** Decisions, model calls and tool calls in progress. */
  get running(): number {
    const { openings, workers } = this.#open;
    return workers.reduce((sum, worker) => sum + worker.running, openings.length - workers.length);
  }

  /** Resolves when nothing is in progress. */
  async idle(): Promise<void> {
    while (this.running > 0) for (const worker of await this.opened()) await worker.idle();
  }

  /** Continues the outstanding work of the last run (WORKERS-3). */
  async recover(): Promise<void> {
    const { store, log } = this.#daemon;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#sweeper.unref();
    if (!this.#daemon.ownership.recoversOnOpen) return; // the reconciler claims conversations
    const marks = await store.openMarks();
    const ids = marks ?? (await store.conversations());
    if (marks === null && ids.length > 0) {
      log.warn(
        { conversations: ids.length },
        'the marks of open conversations are missing: reading every log',
      );
    }
    for (const id of marks ?? []) this.#marked.add(id);
    for (const id of ids) {
      try {
        await this.use(id);
      } catch (error) {
        // One damaged log must not block the others.
        log.error(
          { conversation: id, error: messageOf(error) },
          'a conversation cannot be opened; the others continue',
        );
      }
    }
    if (marks === null) await store.initialiseMarks();
  }

  /** `position`: of the command's post in the ingress stream; a void post has no effect. */
  async submit(conversation: string, command: Command, position?: StreamPosition): Promise<Reply> {
    let worker = await this.current(conversation);
    while (worker.isRetired) worker = await this.use(conversation);
    return worker.submit(command, position);
  }

  /** Opens the conversation if needed. Use the worker at once: an idle one may be closed. */
  async use(id: string): Promise<ConversationWorker> {
    await this.#closing.idle(id); // WORKERS-1
    this.#open.worker(id)?.touch();
    const known = this.#open.opening(id);
    if (known) return known;
    const opening = ConversationWorker.open(id, this.#daemon, this.#marked.has(id), (worker) =>
      this.drop(worker),
    );
    this.#open.add(id, opening);
    if (this.#open.isFull) this.#sweep();
    return opening;
  }

  /** As `use`, but rejects if the conversation has no entries: one whose posts were all refused does not exist. */
  async existing(id: string): Promise<ConversationWorker> {
    if (await this.isThere(id)) {
      const worker = await this.current(id, true);
      if (worker.state.length > 0) return worker;
    }
    throw noConversation(id);
  }

  /** False: it has no log, and none in memory. */
  async isThere(id: string): Promise<boolean> {
    return this.#open.opening(id) !== undefined || this.#daemon.store.exists(id);
  }

  /**
   * As `use`, reopened if another daemon has appended. An owned conversation is not compared with its log, since an append
   * detects a conflict; `always`: it is, before it is shown.
   */
  async current(id: string, always = false): Promise<ConversationWorker> {
    const isOpen = this.#open.opening(id) !== undefined;
    const worker = await this.use(id);
    if (!isOpen || (worker.isOurs && !always)) return worker; // one that was opened now has read its log
    if (!(await worker.isStale())) return worker;
    this.drop(worker);
    return this.use(id);
  }

  /** This daemon owns it, or is deleting it. */
  holds(id: string): boolean {
    return this.#deleting.has(id) || this.#open.worker(id)?.isOurs === true;
  }

  /** As `holds`, after a claim in progress. */
  async willHold(id: string): Promise<boolean> {
    return this.#deleting.has(id) || (await this.#open.worker(id)?.willBeOurs()) === true;
  }

  /** The conversations that this daemon owns. */
  get held(): readonly string[] {
    return this.#open.workers.filter((worker) => worker.isOurs).map(({ id }) => id);
  }

  /** Discards a worker whose conversation another daemon owns. Idempotent. */
  drop(worker: ConversationWorker): void {
    if (this.#open.worker(worker.id) !== worker) return;
    this.#open.delete(worker.id);
    worker.isRetired = true;
    this.#closing
      .run(worker.id, () => worker.abandon())
      .catch((error: unknown) =>
        this.#daemon.log.error(
          { conversation: worker.id, error: messageOf(error) },
          'a conversation could not be released',
        ),
      );
  }

  /** Has outstanding work or a command in progress; false if it is not in memory. */
  isBusy(id: string): boolean {
    return this.#open.opening(id) !== undefined && !this.#open.worker(id)?.isIdle;
  }

  /** As far as a conversation in memory knows. */
  fateInMemory(post: PostName): Fate['kind'] {
    return this.#open.worker(post.conversation)?.fateInConversation(post) ?? 'new';
  }

  /** As far as its conversation decides it (`Fate`). `new` also if the log cannot be read. */
  async fateInConversation(post: PostName): Promise<Fate['kind']> {
    const { conversation, position } = post;
    try {
      if (await this.isThere(conversation))
        return (await this.current(conversation, true)).fateInConversation(post);
      const isDeleted = position && isCovered(position, await this.#daemon.store.deletedUpTo(conversation));
      return isDeleted ? 'deleted' : 'new';
    } catch {
      return 'new';
    }
  }

  /** Durable entries of a conversation in memory. One with a running turn is in memory, unless it is being deleted. */
  async entriesOf(id: string): Promise<readonly Entry[]> {
    const opening = this.#open.opening(id);
    if (opening) return (await opening).entries();
    throw new ParleyError('NOT_FOUND', `the conversation ${id} is not open`);
  }

  /** The conversation list by id: the stored rows, updated from memory. `days`: with what was used on each of so many days. */
  async rows(days?: number): Promise<ListedRow[]> {
    const since = days === undefined ? null : firstOfDays(this.#daemon.now(), days);
    const stored = await this.#daemon.store.rows();
    const rows = new Map(
      stored.map((row) => [row.id, since === null ? atRest(row) : listedRow(row, [], since)]),
    );
    for (const worker of await this.#open.all()) {
      // The memory of a conversation that another daemon owns or deleted is stale.
      if (!worker.isOurs || worker.state.length === 0) continue;
      const { id, state } = worker;
      const entries = worker.entries();
      const current = runningActivity(state, entries, this.#daemon);
      rows.set(id, listedRow(rowOf(id, state, entries), current, since));
    }
    return [...rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Without memory. */
  storedRows(): Promise<ConversationRow[]> {
    return this.#daemon.store.rows();
  }

  /** Saves a row that is missing, or of a conversation whose daemon was killed before it did. */
  async refreshRow(id: string): Promise<void> {
    const worker = await this.current(id);
    await worker.ledger.saveProjections();
    await this.#close(worker);
  }

  /** Rebuilds missing rows from the logs (L1). Logs in mode run are opened too: the configuration may lack what their run needs. */
  async rebuildRows(): Promise<void> {
    const { store, shutdown, log } = this.#daemon;
    const rows = await store.rows();
    const known = new Set(rows.filter((row) => row.mode !== 'run').map((row) => row.id));
    for (const id of await store.conversations()) {
      if (known.has(id) || shutdown.aborted) continue;
      await this.refreshRow(id).catch((error: unknown) =>
        log.error({ conversation: id, error: messageOf(error) }, 'a conversation cannot be listed'),
      );
    }
  }

  /** The pending approvals. Their conversations are marked, so they are always in memory. */
  async approvals(): Promise<{ readonly conversation: string; readonly pending: PendingApproval }[]> {
    return (await this.#open.all()).flatMap((worker) =>
      worker.isOurs
        ? pendingApprovals(worker.state).map((pending) => ({ conversation: worker.id, pending }))
        : [],
    );
  }

  /**
   * `upTo`: the newest post to delete with it; default: the newest now. `keep` decides on the final state of the log. `origin`: of
   * the log to delete, if it is known. Idempotent.
   */
  async delete(
    id: string,
    upTo?: StreamPosition,
    keep?: KeepCheck,
    origin?: number | null,
  ): Promise<Deleted> {
    const asked = upTo ?? (await this.#daemon.lastPost(id));
    if (keep && (await this.#daemon.store.exists(id))) await this.current(id, true);
    tally(this.#deleting, id, 1);
    const deletion = this.#closing.run(id, async () => {
      const log = await this.#daemon.ownership.logAsked(id, origin);
      return this.#deleteWithWorker(id, { ...asked, log }, keep);
    });
    return deletion.finally(() => tally(this.#deleting, id, -1));
  }

  /** Deletes a conversation that may be in memory. Nothing else may open or close it meanwhile (WORKERS-1). */
  async #deleteWithWorker(id: string, asked: DeletionTarget, keep?: KeepCheck): Promise<Deleted> {
    const known = (await this.#open.opening(id)?.catch(() => null)) ?? null;
    while (known?.deciding) await known.deciding;
    if (isSpared(known, asked)) return nothingDeleted(asked);
    let kept = keep?.(known?.state, asked) ?? null;
    const worker = kept === null ? await this.#takeOut(id, known) : null;
    if (worker !== known) kept ??= keep?.(worker?.state, asked) ?? null; // it was read again
    if (kept !== null) {
      if (worker !== known) await worker?.abandon();
      return { ...nothingDeleted(asked), existed: true, kept };
    }
    const deleted = await deleteConversation(id, this.#daemon, asked, worker);
    this.#marked.delete(id);
    return deleted;
  }

  /** Removes the worker from memory. A log that other daemons may have appended to is read again: it may be a later one. */
  async #takeOut(id: string, known: ConversationWorker | null): Promise<Deletable | null> {
    this.#open.delete(id);
    if (known) known.isRetired = true;
    if (known?.isOurs) return known;
    await known?.abandon();
    return readToDelete(id, this.#daemon.store);
  }

  async cutDeletions(): Promise<void> {
    await this.#daemon.store.cutDeletions(() => this.#daemon.ingressEnd());
    for (const worker of await this.#open.all()) await worker.readDeletion();
  }

  /** Resolves when running work has reached a durable point. `onReleased`: other daemons take over what has, at once. */
  async drain(onReleased?: (id: string, claim: Claim | null) => void): Promise<void> {
    if (this.#sweeper) clearInterval(this.#sweeper);
    await Promise.all(
      this.#open.openings.map(async (opening) => {
        const worker = await opening.catch(() => null);
        await worker?.drain();
        if (!worker || !onReleased) return;
        const claim = worker.isOurs && worker.hasOutstandingWork ? worker.state.claim : null;
        await this.#close(worker, true);
        onReleased(worker.id, claim);
      }),
    );
  }

  async closeAll(): Promise<void> {
    const workers = await this.#open.all();
    await Promise.all(workers.map((worker) => this.#close(worker, true)));
    await this.#closing.idle();
  }

  #sweep(): void {
    for (const worker of this.#open.idle(this.#daemon.elapsed())) this.#close(worker).catch(() => undefined);
  }

  async #close(worker: ConversationWorker, evenIfBusy = false): Promise<void> {
    if (!evenIfBusy && !worker.isIdle) return;
    // Another worker may have replaced it meanwhile; the caller does not close that one.
    if (this.#open.worker(worker.id) !== worker) return;
    this.#open.delete(worker.id);
    worker.isRetired = true;
    await this.#closing.run(worker.id, async () => {
      await worker.close();
      if (worker.ledger.isMarked) this.#marked.add(worker.id);
      else this.#marked.delete(worker.id);
    });
  }
}

export function noConversation(id: string): ParleyError {
  return new ParleyError('NOT_FOUND', `there is no conversation ${id}`, {
    hint: 'post a message to begin one; `parley ls` lists the conversations',
  });
}

export function noEntry(id: string, { length }: readonly Entry[], index: number): ParleyError {
  const range = length === 0 ? 'it is empty' : `it has entries 0 to ${length - 1}`;
  return new ParleyError('NO_SUCH_ENTRY', `conversation ${id} has no entry ${index}; ${range}`, {
    hint: '`parley show` lists the entries by index',
  });
}

/** A stored row that has not changed gives the same object: readers see at once that it is the same. */
const known = new WeakMap<ConversationRow, ListedRow>();

function atRest(row: ConversationRow): ListedRow {
  const before = known.get(row);
  if (before) return before;
  const listed = listedRow(row);
  known.set(row, listed);
  return listed;
}

/**
 * The workers in memory and those being opened.
 *
 * OPEN-WORKERS-1  An idle worker is evicted after `IDLE_MS`, or at once with more than `MAX_OPEN` workers. With more than
 *                 `MAX_ENTRIES` in idle logs, the least recently used ones are evicted, but none that was used within
 *                 `IN_USE_MS`: reopening one reads its whole log.
 */
const IDLE_MS = 60_000;
const MAX_OPEN = 500;
const IN_USE_MS = 20_000;
/** About 200 MB with short entries. */
const MAX_ENTRIES = 250_000;

export class OpenWorkers {
  readonly #openings = new Map<string, Promise<ConversationWorker>>();
  readonly #opened = new WeakMap<Promise<ConversationWorker>, ConversationWorker>();
  /** In all logs, when they were opened or last counted. */
  #entries = 0;

  get size(): number {
    return this.#openings.size;
  }

  /** Resolves when the log is read; rejects if it cannot be read. */
  opening(id: string): Promise<ConversationWorker> | undefined {
    return this.#openings.get(id);
  }

  /** Undefined while its log is being read. */
  worker(id: string): ConversationWorker | undefined {
    const opening = this.#openings.get(id);
    return opening && this.#opened.get(opening);
  }

  get openings(): Promise<ConversationWorker>[] {
    return [...this.#openings.values()];
  }

  get workers(): ConversationWorker[] {
    return [...this.#openings.values()].flatMap((opening) => this.#opened.get(opening) ?? []);
  }

  add(id: string, opening: Promise<ConversationWorker>): void {
    this.#openings.set(id, opening);
    opening.then(
      (worker) => {
        this.#opened.set(opening, worker);
        this.#entries += worker.state.length;
      },
      () => {
        if (this.#openings.get(id) === opening) this.delete(id);
      },
    );
  }

  delete(id: string): void {
    this.#entries -= this.worker(id)?.state.length ?? 0;
    this.#openings.delete(id);
  }

  /** Resolves when all are opened; without those whose log cannot be read. */
  async all(): Promise<ConversationWorker[]> {
    const workers = await Promise.all(this.openings.map((opening) => opening.catch(() => null)));
    return workers.filter((worker) => worker !== null);
  }

  /** OPEN-WORKERS-1: eviction may be due. */
  get isFull(): boolean {
    return this.size > MAX_OPEN || this.#entries > MAX_ENTRIES;
  }

  /** Those to evict at this time of the monotonic clock (OPEN-WORKERS-1). */
  idle(now: number): ConversationWorker[] {
    const { workers } = this;
    this.#entries = workers.reduce((entries, { state }) => entries + state.length, 0);
    const longest = this.size > MAX_OPEN ? 0 : IDLE_MS;
    const idle = workers.filter((worker) => worker.isIdle).sort((a, b) => b.lastUsedAt - a.lastUsedAt);
    let entries = 0;
    return idle.filter(({ lastUsedAt, state }) => {
      entries += state.length;
      const unused = now - lastUsedAt;
      if (unused > longest) return true;
      return entries > MAX_ENTRIES && unused > IN_USE_MS;
    });
  }
}
