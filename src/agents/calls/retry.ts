import type { Model, ModelDelta, ModelOutcome, ModelRequest } from '../model-port.ts';

/**
 * Tries a model call again while that may help.
 *
 * RETRY-1 Only what the model calls retryable is tried again, and nothing of which a delta was given.
 * RETRY-2 Waits are random between nothing and an exponentially growing bound (full jitter), so that many callers
 *    do not come back together; the provider's own word (`afterMs`) is obeyed instead.
 * RETRY-3 A provider that wants a longer wait than anyone would sit through fails the call, and says so.
 * RETRY-4 An abort ends a wait at once. Every attempt sends the same request.
 */
export interface RetryPolicy {
  /** Calls in all, the first included. */
  readonly attempts: number;
  /** The bound of the first wait; each next one is twice as long, up to `maxMs`. */
  readonly baseMs: number;
  readonly maxMs: number;
}

export interface RetryOptions {
  readonly signal: AbortSignal;
  /** Begins an attempt (from 1) and answers with where its deltas go. */
  readonly onAttempt: (attempt: number) => (delta: ModelDelta) => void;
  readonly policy: RetryPolicy;
  /** Resolves after so many milliseconds, or when the signal aborts. Never rejects, and leaves no timer. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
}

/** R3. Milliseconds. */
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
    if (outcome.kind !== 'failed' || !outcome.retryable || gaveDelta) return outcome; // RETRY-1
    if (signal.aborted) return { kind: 'aborted', partial: outcome.partial };
    tries += outcome.tries ?? 1;
    if (attempt >= policy.attempts) return saying(outcome, triedText(tries));
    const wait = outcome.afterMs ?? backoff(attempt, policy, options.random);
    if (wait > LONGEST_WAIT_MS) {
      const seconds = Math.ceil(wait / 1000);
      return saying(outcome, `The provider wants ${seconds} s to pass before the next try: come back then.`);
    }
    await options.sleep(wait, signal);
    if (signal.aborted) return { kind: 'aborted', partial: outcome.partial }; // RETRY-4
  }
}

/** RETRY-2 */
function backoff(attempt: number, policy: RetryPolicy, random: () => number): number {
  const bound = Math.min(policy.maxMs, policy.baseMs * 2 ** (attempt - 1), LONGEST_WAIT_MS);
  return Math.floor(random() * bound);
}

type Failed = Extract<ModelOutcome, { kind: 'failed' }>;

function saying(outcome: Failed, text: string): Failed {
  if (text === '') return outcome;
  const message = outcome.message.trimEnd();
  return { ...outcome, message: `${message}${/[.!?…]$/.test(message) ? '' : '.'} ${text}` };
}

function triedText(tries: number): string {
  return tries === 1 ? '' : `Tried ${tries} times.`;
}
