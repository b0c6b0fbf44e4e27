import type { PendingApproval } from '../../conversation/index.ts';

/**
 * Counts the time of one conversation's approvals, if the configuration lets them expire.
 *
 * APPROVAL-EXPIRY-1 A wait is counted from when the person was asked, over restarts, and never lasts longer than it was meant to.
 * APPROVAL-EXPIRY-2 Within a life of the daemon it is counted by a clock that nobody sets: `expire` decides nothing, the log does.
 */
export class ApprovalExpiry {
  private readonly timers = new Map<string, NodeJS.Timeout>();
  private readonly expireAfterMs: number | null;
  private readonly now: () => number;
  private readonly expire: (approvalId: string) => void;
  private stopped = false;

  constructor(expireAfterMs: number | null, now: () => number, expire: (approvalId: string) => void) {
    this.expireAfterMs = expireAfterMs;
    this.now = now;
    this.expire = expire;
  }

  /** What waits now: counts what is new, forgets what is gone. */
  watch(pending: readonly PendingApproval[]): void {
    if (this.expireAfterMs === null || this.stopped) return;
    for (const [id, timer] of this.timers) {
      if (pending.some(({ approvalId }) => approvalId === id)) continue;
      clearTimeout(timer);
      this.timers.delete(id);
    }
    for (const { approvalId, requestedAt } of pending) {
      if (this.timers.has(approvalId)) continue;
      const left = leftOf(this.expireAfterMs, Date.parse(requestedAt), this.now());
      const timer = setTimeout(() => this.expire(approvalId), left);
      timer.unref();
      this.timers.set(approvalId, timer);
    }
  }

  stop(): void {
    this.stopped = true;
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }
}

/** APPROVAL-EXPIRY-1: a clock that was set back, or an entry from the future, buys nothing beyond the whole. */
function leftOf(whole: number, since: number, now: number): number {
  return Math.max(0, Math.min(whole, since + whole - now));
}
