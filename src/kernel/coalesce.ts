/**
 * Lets many callers share one piece of work: a call that comes while the work runs waits for a later run, since the
 * running one may have begun before what the caller wants covered. At most one run at a time, at most one waiting.
 */
export function coalesce(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let waiting: Promise<void> | null = null;

  function request(): Promise<void> {
    if (running === null) {
      running = work().finally(() => {
        running = null;
      });
      return running;
    }
    waiting ??= running
      .catch(() => undefined)
      .then(() => {
        waiting = null;
        return request();
      });
    return waiting;
  }
  return request;
}
