import type { Model } from '../../agents/index.ts';
import { type CallOutcome, isHelpedElsewhere } from '../../conversation/index.ts';
import type { Clock } from '../../kernel/index.ts';

/**
 * Which models and keys failed lately: a breaker for candidates of a turn (CANDIDATES-1).
 *
 * HEALTH-1 After a failure that another candidate may not have, a candidate backs off: `FIRST_MS`, twice as long after each
 *          further failure, up to `LONGEST_MS`; longer if the provider asks for it. An answer ends that.
 * HEALTH-2 A candidate that backs off is not called while one after it does not back off. If all do, it is called.
 * HEALTH-3 In memory, by client: a restart forgets it, and so does a reload, which may have corrected a key.
 */
const FIRST_MS = 15_000;
const LONGEST_MS = 600_000;

interface BackOff {
  readonly code: string;
  /** In a row. */
  readonly failures: number;
}

export class ModelHealth {
  readonly #faults = new WeakMap<Model, BackOff & { readonly until: number }>();
  readonly #elapsed: Clock;

  /** `elapsed`: the monotonic clock. */
  constructor(elapsed: Clock) {
    this.#elapsed = elapsed;
  }

  observe(client: Model, outcome: CallOutcome): void {
    if (outcome.type === 'model-answered') this.#faults.delete(client);
    if (outcome.type !== 'model-failed' || !isHelpedElsewhere(outcome.code)) return;
    const failures = (this.#faults.get(client)?.failures ?? 0) + 1;
    const wait = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10));
    const until = this.#elapsed() + Math.max(wait, outcome.afterMs ?? 0);
    this.#faults.set(client, { code: outcome.code, failures, until });
  }

  /** Null: it may be called. */
  backingOff(client: Model): (BackOff & { readonly leftMs: number }) | null {
    const fault = this.#faults.get(client);
    const leftMs = fault ? fault.until - this.#elapsed() : 0;
    return fault && leftMs > 0 ? { code: fault.code, failures: fault.failures, leftMs } : null;
  }
}
