import type { Model, ModelDelta, ModelOutcome, ModelRequest } from '../model-port.ts';

/**
 * Retries a model call.
 *
 * RETRY-1 A call is retried only if the adapter reports it as retryable and no delta was delivered.
 * RETRY-2 Backoff is exponential with full jitter. A delay that the provider asks for (`afterMs`) replaces it.
 * RETRY-3 If the provider asks for a delay over `LONGEST_WAIT_MS`, the call fails with a message that says so.
 * RETRY-4 An abort ends a wait at once. Every attempt sends the same request.
 */
export interface RetryPolicy {
  /** Attempts in all, including the first. */
  readonly attempts: number;
  /** Upper bound of the first wait. It doubles with each attempt, up to `maxMs`. */
  readonly baseMs: number;
  readonly maxMs: number;
}

/** A failed attempt that is repeated. */
export interface Retry {
  /** The number of the next attempt, and of attempts in all. */
  readonly attempt: number;
  readonly attempts: number;
  readonly waitMs: number;
  /** Why the last one failed. */
  readonly code: string;
  readonly message: string;
}

export interface RetryOptions {
  readonly signal: AbortSignal;
  /** Called when an attempt starts (from 1). Returns the receiver of its deltas. */
  readonly onAttempt: (attempt: number) => (delta: ModelDelta) => void;
  readonly policy: RetryPolicy;
  /** Called before the wait for the next attempt. Does not throw. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** Resolves after the delay or when the signal aborts. Never rejects; leaves no timer. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
}

/** RETRY-3. Milliseconds. */
export const LONGEST_WAIT_MS = 60_000;

export async function callWithRetries(
  model: Model,
  request: ModelRequest,
  options: RetryOptions,
): Promise<ModelOutcome> {
  const { signal, policy } = options;
  let tries = 0;
  for (let attempt = 1; ; attempt += 1) {
    const onDelta = options.onAttempt(attempt);
    let gaveDelta = false;
    const outcome = await model.call(request, {
      signal,
      onDelta(delta) {
        gaveDelta = true;
        onDelta(delta);
      },
    });
    if (outcome.kind !== 'failed' || !outcome.retryable || gaveDelta) return outcome;
    if (signal.aborted) return { kind: 'aborted', partial: outcome.partial };
    tries += outcome.tries ?? 1;
    if (attempt >= policy.attempts) return withAdvice(outcome, triedText(tries));
    const wait = outcome.afterMs ?? backoff(attempt, policy, options.random);
    if (wait > LONGEST_WAIT_MS) {
      const seconds = Math.ceil(wait / 1000);
      return withAdvice(
        outcome,
        `The provider wants ${seconds} s to pass before the next try: come back then.`,
      );
    }
    const { code, message } = outcome;
    options.onRetry?.({
      attempt: attempt + 1,
      attempts: policy.attempts,
      waitMs: wait,
      ...{ code, message },
    });
    await options.sleep(wait, signal);
    if (signal.aborted) return { kind: 'aborted', partial: outcome.partial };
  }
}

function backoff(attempt: number, policy: RetryPolicy, random: () => number): number {
  const bound = Math.min(policy.maxMs, policy.baseMs * 2 ** (attempt - 1), LONGEST_WAIT_MS);
  return Math.floor(random() * bound);
}

type Failed = Extract<ModelOutcome, { kind: 'failed' }>;

function withAdvice(outcome: Failed, text: string): Failed {
  if (text === '') return outcome;
  const message = outcome.message.trimEnd();
  return { ...outcome, message: `${message}${/[.!?…]$/.test(message) ? '' : '.'} ${text}` };
}

function triedText(tries: number): string {
  return tries === 1 ? '' : `Tried ${tries} times.`;
}
