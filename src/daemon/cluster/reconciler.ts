import { concurrently, groupedBy, hasCode, messageOf, sha256Of, sleep } from '../../kernel/index.ts';
import type { NewestAppend } from '../../persistence/index.ts';
import { isMoved } from '../conversations/ownership.ts';
import type { Claimant } from './claims.ts';
import type { Router, RouterParts } from './router.ts';
/**
 * Takes over conversations with outstanding work that no daemon works on.
 *
 * RECONCILER-1  A pass reads the newest append of every log. A whole log is read only if its claimant is gone, or does not
 *               have it open.
 * RECONCILER-2  When several daemons notice the same orphan, one is the first choice, so that they do not all read the
 *               same logs. The others check again a little later, because the first choice may be gone too. The log
 *               accepts one claim (L3).
 * RECONCILER-3  A pass that failed because the server did not answer is repeated after one second, not after a minute. If a
 *               claimant cannot be reached, the pass is repeated once a failed peer would be detected.
 * RECONCILER-4  A claimant that is slow to answer does not delay the takeover of other claimants' work, in the same pass or in the
 *               next one, which asks it again. Only a repeated pass waits for the running one, so that it can answer one of them.
 */

export const PASS_EVERY_MS = 60_000;
/** The part of the failure timeout that is the head start of the first choice (RECONCILER-2). */
const HEAD_START_PART = 1 / 4;
/** The part of the failure timeout after which, after a short outage, what is known of peers is reliable (RECONCILER-3). */
const TRUST_PART = 1 / 4;
/** After a pass that the server interrupted (RECONCILER-3). */
const RETRY_MS = 1_000;
/** Each read takes some round trips, which are slow while the server is busy. */
const CONCURRENT_READS = 32;
/** In one message. */
const MAX_NAMES = 2_000;

export interface ReconcilerParts extends Omit<RouterParts, 'peers'> {
  /** This one. */
  readonly daemon: string;
  readonly router: Router;
  readonly failureTimeoutMs: number;
}

/** `isFirstChoiceOnly`: only orphans whose first choice is this daemon (RECONCILER-2). */
interface Pass {
  readonly isFirstChoiceOnly: boolean;
  readonly handedOver: boolean;
}

export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #stopping = new AbortController();
  /** By conversation: the newest append of a log without a stored `status` that was read and has no outstanding work. */
  readonly #idle = new Map<string, number>();
  #running: Promise<void> = Promise.resolve();
  /** Passes that interrupt the running one; it then waits for no claimant (RECONCILER-4). */
  #waiting = 0;
  #interrupt = () => {};
  #interrupted: Promise<null> = new Promise(() => {});
  #periodic: Promise<void> = Promise.resolve();
  #rowRepair: Promise<void> | null = null;
  /** Scheduled passes, by their delay in milliseconds. */
  readonly #retries = new Map<number, Pass>();

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** Resolves when the orphans whose first choice is this daemon are taken over. */
  async start(): Promise<void> {
    await this.pass({ isFirstChoiceOnly: true, handedOver: false });
    this.#periodic = this.#runPeriodically();
  }

  /** A peer is gone. */
  gone(handedOver: boolean): void {
    void this.pass({ isFirstChoiceOnly: true, handedOver });
    this.#retryAfter(
      { isFirstChoiceOnly: false, handedOver },
      this.#parts.failureTimeoutMs * HEAD_START_PART,
    ); // RECONCILER-2, and what failed
  }

  /** A peer has released a conversation with outstanding work. */
  async released(conversation: string, claim: Claimant): Promise<void> {
    this.#parts.router.noteReleased(conversation, claim);
    await this.#takeOver(conversation, true);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#periodic;
    await this.#running;
    await this.#rowRepair;
  }

  /** Does not reject. `isRepeated`: it interrupts no other pass (RECONCILER-4). */
  pass(scope: Pass, isRepeated = false): Promise<void> {
    const interrupts = isRepeated ? 0 : 1;
    this.#waiting += interrupts;
    if (!isRepeated) this.#interrupt();
    this.#running = this.#running.then(async () => {
      this.#waiting -= interrupts;
      if (this.#stopping.signal.aborted) return;
      try {
        if (!(await this.#runPass(scope))) this.#retryAfter(scope, RETRY_MS);
      } catch (error) {
        this.#parts.log.warn({ error: messageOf(error) }, 'the search for outstanding work failed; retrying');
        this.#retryAfter(scope, RETRY_MS);
      }
    });
    return this.#running;
  }

  /** RECONCILER-3. Passes with the same delay are merged. */
  #retryAfter(scope: Pass, afterMs: number): void {
    const waiting = this.#retries.get(afterMs);
    this.#retries.set(afterMs, {
      isFirstChoiceOnly: scope.isFirstChoiceOnly && (waiting?.isFirstChoiceOnly ?? true),
      handedOver: scope.handedOver && (waiting?.handedOver ?? true),
    });
    if (waiting) return;
    void sleep(afterMs, this.#stopping.signal).then(() => {
      const again = this.#retries.get(afterMs);
      this.#retries.delete(afterMs);
      return again && this.pass(again, true);
    });
  }

  async #runPeriodically(): Promise<void> {
    const { signal } = this.#stopping;
    await sleep(this.#parts.failureTimeoutMs, signal);
    while (!signal.aborted) {
      await this.pass({ isFirstChoiceOnly: false, handedOver: false });
      await sleep(PASS_EVERY_MS * (0.75 + Math.random() / 2), signal);
    }
  }

  /** False: not everything could be taken over. */
  async #runPass(scope: Pass): Promise<boolean> {
    const all = await this.#parts.logs.all();
    const outstanding = [...all].filter(([id, newest]) => this.#mayHaveWork(id, newest)).map(([id]) => id);
    this.#interrupted = new Promise((resolve) => {
      this.#interrupt = () => resolve(null);
      if (this.#waiting > 0) resolve(null);
    });
    // RECONCILER-4; in reverse order: the first choice has started at the other end (RECONCILER-2).
    const passes = [...byOwnerOf(outstanding, all)]
      .reverse()
      .map(([owner, ids]) => this.#takeOverFrom(owner, ids, all, scope));
    const isWhole = (await Promise.all(passes)).every((isDone) => isDone);
    // Not awaited: many logs may have to be read, and another daemon may fail meanwhile.
    this.#rowRepair ??= this.#repairRows(all, scope.isFirstChoiceOnly).finally(() => {
      this.#rowRepair = null;
    });
    return isWhole;
  }

  /** Takes over what that claimant does not work on. False: not everything could be taken over. */
  async #takeOverFrom(
    owner: string,
    ids: readonly string[],
    all: ReadonlyMap<string, NewestAppend>,
    { isFirstChoiceOnly, handedOver }: Pass,
  ): Promise<boolean> {
    const { daemon, router, failureTimeoutMs } = this.#parts;
    const later = { isFirstChoiceOnly: false, handedOver };
    const { held, isConfirmed } = await this.#heldBy(owner, ids, this.#interrupted);
    if (owner !== daemon && held.length > 0 && !isConfirmed)
      this.#retryAfter(later, failureTimeoutMs * TRUST_PART); // RECONCILER-3
    const known = new Set(held);
    const orphans = ids.filter((id) => !known.has(id));
    for (const id of orphans) {
      const claim = all.get(id)?.status?.claim;
      if (claim && isConfirmed) router.noteReleased(id, claim);
    }
    const wanted = isFirstChoiceOnly ? orphans.filter((id) => this.#isFirstChoice(id)) : orphans.reverse();
    if (wanted.length < orphans.length) this.#retryAfter(later, failureTimeoutMs * HEAD_START_PART); // RECONCILER-2
    let isWhole = true;
    await concurrently(wanted, CONCURRENT_READS, async (id) => {
      if (this.#stopping.signal.aborted) return;
      if (!isFirstChoiceOnly && (await this.#hasMoved(id, all.get(id)))) return; // the first choice has it
      if (!(await this.#takeOver(id, handedOver, all.get(id)))) isWhole = false;
    });
    return isWhole;
  }

  /**
   * Repairs the conversation list. `all` must be read before the rows.
   *
   * ROW-REPAIR-1  A daemon saves the row of a conversation when it releases it; a killed daemon does not. So a row is
   *               written again if no daemon has the conversation open and its length differs from the log's.
   * ROW-REPAIR-2  A row without a log is removed: the conversation was deleted while another daemon had it open.
   */
  async #repairRows(all: ReadonlyMap<string, NewestAppend>, isFirst: boolean): Promise<void> {
    const { logs, workers, log } = this.#parts;
    const { signal: stopping } = this.#stopping;
    try {
      const stored = await workers.storedRows();
      const lengths = new Map(stored.map((row) => [row.id, row.length]));
      const lagging = [...all].filter(([id, { length }]) => length !== null && lengths.get(id) !== length);
      const ids = lagging.map(([id]) => id).filter((id) => !isFirst || this.#isFirstChoice(id));
      const held = await Promise.all(
        [...byOwnerOf(ids, all)].map(async ([owner, own]) => (await this.#heldBy(owner, own)).held),
      );
      const known = new Set(held.flat());
      for (const id of ids.filter((one) => !known.has(one))) {
        if (stopping.aborted) return;
        await workers.refreshRow(id);
      }
      for (const id of lengths.keys()) {
        if (!stopping.aborted && !all.has(id) && (await logs.newest(id)) === null) await logs.forgetRow(id);
      }
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'the conversation list could not be repaired');
    }
  }

  #mayHaveWork(id: string, { status, sequence }: NewestAppend): boolean {
    return status ? status.hasOutstandingWork : this.#idle.get(id) !== sequence;
  }

  /** Which of these that daemon works on. `isConfirmed`: it answered itself; without an answer, or interrupted, all of them. */
  async #heldBy(
    owner: string,
    ids: readonly string[],
    interrupted?: Promise<null>,
  ): Promise<{ readonly held: readonly string[]; readonly isConfirmed: boolean }> {
    const { daemon, workers, monitor, router } = this.#parts;
    if (owner === daemon) return { held: ids.filter((id) => workers.holds(id)), isConfirmed: false };
    if (owner === '' || monitor.isFailed(owner)) return { held: [], isConfirmed: false };
    const held: string[] = [];
    for (let from = 0; from < ids.length; from += MAX_NAMES) {
      const conversations = ids.slice(from, from + MAX_NAMES);
      const asked = router.ask(owner, 'holds', { conversations });
      const response = await (interrupted ? Promise.race([asked, interrupted]) : asked);
      if (response?.kind !== 'answered')
        return { held: monitor.isFailed(owner) ? [] : ids, isConfirmed: false };
      held.push(...response.body.held);
    }
    return { held, isConfirmed: true };
  }

  /** RECONCILER-2. All daemons that know the same peers agree on it. */
  #isFirstChoice(conversation: string): boolean {
    const { daemon, monitor } = this.#parts;
    return firstChoice(conversation, [daemon, ...monitor.responsive]) === daemon;
  }

  /** False: the server did not answer. */
  async #takeOver(conversation: string, handedOver: boolean, newest?: NewestAppend): Promise<boolean> {
    const { workers, log, daemon } = this.#parts;
    try {
      if (newest) this.#parts.router.noteNewest(conversation, newest);
      const worker = await workers.current(conversation);
      if (worker.isOurs) return true;
      if (worker.hasOutstandingWork) {
        log.info({ conversation }, 'taking over a conversation');
        await workers.submit(conversation, { type: 'claim', daemon, handedOver });
      } else if (newest) this.#idle.set(conversation, newest.sequence);
      return true;
    } catch (error) {
      if (isMoved(error)) return this.#hasMoved(conversation, newest);
      log.error({ conversation, error: messageOf(error) }, 'a conversation could not be taken over');
      return !hasCode(error, 'STORE_UNAVAILABLE', 'LOG_UNAVAILABLE');
    }
  }

  /** Another daemon has claimed it. False: the claim is still the one that was read. */
  async #hasMoved(conversation: string, seen?: NewestAppend): Promise<boolean> {
    if (!seen) return true;
    const now = await this.#parts.logs.newest(conversation).catch(() => seen);
    const [before, claim] = [seen.status?.claim, now?.status?.claim];
    return claim?.daemon !== before?.daemon || claim?.epoch !== before?.epoch;
  }
}

/** Groups conversations by their last claimant. */
function byOwnerOf(
  ids: readonly string[],
  all: ReadonlyMap<string, NewestAppend>,
): ReadonlyMap<string, readonly string[]> {
  return groupedBy(ids, (id) => all.get(id)?.status?.claim?.daemon ?? '');
}

/** The same for all daemons that know the same ones; each has its share of the names. */
export function firstChoice(name: string, daemons: readonly string[]): string {
  const ranks = new Map(daemons.map((daemon) => [sha256Of(`${daemon}\n${name}`), daemon]));
  return ranks.get([...ranks.keys()].sort()[0] ?? '') ?? '';
}
