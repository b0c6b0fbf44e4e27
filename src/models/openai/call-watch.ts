import { MAX_TIMER_MS } from '../../kernel/index.ts';

/**
 * Both early ends of a call: the caller's abort and the timeout.
 *
 * OPENAI-MODEL-W-1 `release` removes the listener from the caller's signal, which lives longer.
 */
export interface Watch {
  /** `aborted` (by the caller) has precedence over `expired`. */
  state(): 'waiting' | 'aborted' | 'expired';
  /** Called at an early end, while the call waits. */
  onEarlyEnd(stop: () => void): void;
  /** Restarts the timeout. */
  expectWithin(milliseconds: number): void;
  release(): void;
}

export function createWatch(caller: AbortSignal): Watch {
  let stop: () => void = () => undefined;
  let isExpired = false;
  let timer: NodeJS.Timeout | undefined;
  let wait = 0;
  const abort = (): void => stop();
  caller.addEventListener('abort', abort, { once: true });
  const expire = (): void => {
    isExpired = true;
    stop();
  };
  return {
    state: () => (caller.aborted ? 'aborted' : isExpired ? 'expired' : 'waiting'),
    onEarlyEnd(given) {
      stop = given;
    },
    expectWithin(milliseconds) {
      if (timer && milliseconds === wait) return void timer.refresh();
      wait = milliseconds;
      clearTimeout(timer);
      timer = setTimeout(expire, Math.min(milliseconds, MAX_TIMER_MS));
    },
    release() {
      clearTimeout(timer);
      caller.removeEventListener('abort', abort); // OPENAI-MODEL-W-1
    },
  };
}
