import type { PendingApproval } from '../../../conversation/index.ts';
import type { Clock, Timers } from '../../../kernel/index.ts';
/**
 * Expires the approvals of one conversation, if the configuration sets a limit.
 *
 * APPROVAL-EXPIRY-1  The limit counts from the request, across restarts, and is never exceeded.
 * APPROVAL-EXPIRY-2  While the daemon runs, it is measured by the monotonic clock. `expire` only asks for a decision.
 */
export class ApprovalExpiry {
  readonly #timers = new Map<string, () => void>();
  readonly #limit: () => number | null;
  /** The time that the running timers use. */
  #expireAfterMs: number | null = null;
  readonly #time: { readonly now: Clock; readonly timers: Timers };
  readonly #expire: (approvalId: string) => void;
  #stopped = false;

  /** `time`: `now` is the wall clock. */
  constructor(
    limit: () => number | null,
    time: { readonly now: Clock; readonly timers: Timers },
    expire: (approvalId: string) => void,
  ) {
    this.#limit = limit;
    this.#time = time;
    this.#expire = expire;
  }

  /** Starts a timer for each new pending approval, and stops those of the others. */
  watch(pending: readonly PendingApproval[]): void {
    if (this.#stopped) return;
    const limit = this.#limit();
    if (limit !== this.#expireAfterMs) this.#clear();
    this.#expireAfterMs = limit;
    if (limit === null) return;
    for (const [id, cancel] of this.#timers) {
      if (pending.some(({ approvalId }) => approvalId === id)) continue;
      cancel();
      this.#timers.delete(id);
    }
    for (const { approvalId, requestedAt } of pending) {
      if (this.#timers.has(approvalId)) continue;
      const left = leftOf(limit, Date.parse(requestedAt), this.#time.now());
      const expire = () => this.#expire(approvalId);
      this.#timers.set(approvalId, this.#time.timers.after(left, expire, { unref: true }));
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#clear();
  }

  #clear(): void {
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }
}

/** APPROVAL-EXPIRY-1: a clock that was set back, or an entry from the future, never extends the limit. */
function leftOf(whole: number, since: number, now: number): number {
  return Math.max(0, Math.min(whole, since + whole - now));
}
