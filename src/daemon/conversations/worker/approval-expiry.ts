import {
  awaitedCalls,
  type Command,
  type ConversationState,
  pendingApprovals,
  wireCallId,
} from '../../../conversation/index.ts';
import type { Clock, Timers } from '../../../kernel/index.ts';

/**
 * Expires the approvals of one conversation, if the configuration sets a limit, and the calls that their caller does not answer.
 *
 * APPROVAL-EXPIRY-1  The limit counts from the request, across restarts, and is never exceeded.
 * APPROVAL-EXPIRY-2  While the daemon runs, it is measured by the monotonic clock. `expire` only asks for a decision.
 * APPROVAL-EXPIRY-3  A call of a caller's tool has the limit of approvals, at most a day: a program that has ended must not hold
 *                    an agent for ever.
 */
const DAY_MS = 86_400_000;

type Expiry = Extract<Command, { type: 'expire-approval' | 'expire-call' }>;

interface Waiting {
  readonly id: string;
  /** ISO 8601. */
  readonly since: string;
  readonly limit: number;
  readonly expiry: Expiry;
}

export class ApprovalExpiry {
  readonly #timers = new Map<string, { readonly limit: number; readonly cancel: () => void }>();
  readonly #limit: () => number | null;
  readonly #time: { readonly now: Clock; readonly timers: Timers };
  readonly #expire: (expiry: Expiry) => void;
  #stopped = false;

  /** `time`: `now` is the wall clock. */
  constructor(
    limit: () => number | null,
    time: { readonly now: Clock; readonly timers: Timers },
    expire: (expiry: Expiry) => void,
  ) {
    this.#limit = limit;
    this.#time = time;
    this.#expire = expire;
  }

  /** Starts a timer for each new call that waits, and stops those of the others. */
  watch(state: ConversationState): void {
    if (this.#stopped) return;
    const waiting = waitingIn(state, this.#limit());
    for (const [id, { limit, cancel }] of this.#timers) {
      if (waiting.some((one) => one.id === id && one.limit === limit)) continue;
      cancel();
      this.#timers.delete(id);
    }
    for (const { id, since, limit, expiry } of waiting) {
      if (this.#timers.has(id)) continue;
      const left = leftOf(limit, Date.parse(since), this.#time.now());
      const cancel = this.#time.timers.after(left, () => this.#expire(expiry), { unref: true });
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
