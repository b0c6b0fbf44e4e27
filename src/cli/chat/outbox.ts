import { isUnreachable, type ParleyClient, type PostAnswer, type PostMessage } from '../../client/index.ts';

/**
 * The messages of a chat that the daemon has not acknowledged.
 *
 * CHAT-OUTBOX-1 Messages are sent one at a time, in the order in which they were typed.
 * CHAT-OUTBOX-2 While the daemon does not answer, a message is kept and sent again with the same id: it is appended once.
 * CHAT-OUTBOX-3 A refused message is not kept; the next one is sent.
 */
export interface Outbox {
  /** Rejects with the refusal, or with an `AbortError` after `leave`. */
  send(message: PostMessage): Promise<PostAnswer>;
  /** Repeats the work until the daemon answers or refuses. */
  untilAnswered<T>(work: () => Promise<T>): Promise<T>;
  /** Reports whether the daemon answers. True: it did not, or did, before. */
  reach(isReachable: boolean): boolean;
  readonly isAway: boolean;
  /** Ends all sending, at once if the daemon does not answer. Returns the messages that were not acknowledged. */
  leave(): Promise<readonly PostMessage[]>;
  readonly hasLeft: boolean;
}

/** `onAway`: a request found that the daemon does not answer. */
export function createOutbox(client: ParleyClient, onAway: () => void): Outbox {
  const kept: PostMessage[] = [];
  const leaving = new AbortController();
  const { signal } = leaving;
  let isAway = false;
  let last: Promise<unknown> = Promise.resolve();
  let waiting: (() => void)[] = [];

  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise<void>((wake) => waiting.push(wake));
  };
  const changed = () => {
    const wakes = waiting;
    waiting = [];
    for (const wake of wakes) wake();
  };
  const reach = (isReachable: boolean) => {
    if (isAway !== isReachable) return false;
    isAway = !isReachable;
    changed();
    return true;
  };

  async function untilAnswered<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      await until(() => !isAway || signal.aborted);
      signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        if (!isUnreachable(error)) throw error;
        onAway();
      }
    }
  }

  return {
    untilAnswered,
    reach,
    send(message) {
      kept.push(message);
      const sent = last.then(() => untilAnswered(() => client.post(message, { signal })));
      const done = () => {
        if (signal.aborted) return;
        kept.splice(kept.indexOf(message), 1);
        changed();
      };
      last = sent.then(done, done);
      return sent;
    },
    get isAway() {
      return isAway;
    },
    async leave() {
      await until(() => isAway || kept.length === 0);
      leaving.abort();
      changed();
      return kept;
    },
    get hasLeft() {
      return signal.aborted;
    },
  };
}
