import type { ParleyError } from '../kernel/index.ts';
import type { ConversationStore } from '../persistence/index.ts';

/**
 * A server of the logs that has no space or does not answer keeps what it is asked waiting.
 *
 * SERVER-FAULTS-1 What waits for it is answered with the cause within two seconds. The work itself continues, and may succeed.
 */

/** Milliseconds, before a fault of the server counts for what waits; and between two looks after that. */
const PATIENCE_MS = 1_500;
const LOOK_MS = 100;

/** The result of the work, or of `instead` if a fault of the server delays it (SERVER-FAULTS-1). */
export function orFault<T>(
  work: Promise<T>,
  store: Pick<ConversationStore, 'fault'>,
  instead: (fault: ParleyError) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const fault = store.fault();
      if (fault) resolve(Promise.resolve(fault).then(instead));
      else timer = setTimeout(look, LOOK_MS).unref();
    };
    let timer = setTimeout(look, PATIENCE_MS).unref();
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
