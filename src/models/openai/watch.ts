/**
 * One signal for everything that ends a call early: the caller's abort, and silence.
 *
 * W1 The caller's signal lives long: the listener on it is undone by `release`.
 * W2 `release` aborts the own signal, so that whatever still hangs on it lets go of its socket.
 */
export interface Watch {
  readonly signal: AbortSignal;
  /** `aborted` (by the caller) wins over `expired`. */
  state(): 'waiting' | 'aborted' | 'expired';
  /** The next sign of life must come within so many milliseconds from now. */
  expectWithin(milliseconds: number): void;
  release(): void;
}

/** Timers fire at once above this. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function createWatch(caller: AbortSignal): Watch {
  const own = new AbortController();
  let isExpired = false;
  let timer: NodeJS.Timeout | undefined;
  const abort = (): void => own.abort();
  caller.addEventListener('abort', abort, { once: true });
  const expire = (): void => {
    isExpired = true;
    own.abort();
  };
  return {
    signal: own.signal,
    state: () => (caller.aborted ? 'aborted' : isExpired ? 'expired' : 'waiting'),
    expectWithin(milliseconds) {
      clearTimeout(timer);
      timer = setTimeout(expire, Math.min(milliseconds, LONGEST_TIMER_MS));
    },
    release() {
      clearTimeout(timer);
      caller.removeEventListener('abort', abort); // W1
      own.abort(); // W2
    },
  };
}
