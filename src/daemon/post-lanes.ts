/**
 * Conversations in which a post waits for another attempt: whatever comes later for them queues behind it, one at a time.
 *
 * What waits when the daemon stops is given up until the next start, and so is all that comes behind it, though there
 * may be room by now: else a later post would overtake an earlier one.
 */
export class PostLanes {
  readonly #lanes = new Map<string, Promise<void>>();
  readonly #shutdown: AbortSignal;

  constructor(shutdown: AbortSignal) {
    this.#shutdown = shutdown;
  }

  /** Something waits there. */
  has(conversation: string): boolean {
    return this.#lanes.has(conversation);
  }

  /** Behind whatever of this conversation waits already, and before whatever comes later. */
  behind(conversation: string, work: () => Promise<void>): Promise<void> {
    const before = this.#lanes.get(conversation) ?? Promise.resolve();
    const lane = before.then(work, (error: unknown) => {
      if (this.#shutdown.aborted) throw error;
      return work();
    });
    this.#lanes.set(conversation, lane);
    const leave = () => {
      if (this.#lanes.get(conversation) === lane) this.#lanes.delete(conversation);
    };
    lane.then(leave, () => {
      if (!this.#shutdown.aborted) leave();
    });
    return lane;
  }
}
