/**
 * Keeps the posts of each conversation in their order.
 *
 * A post is tried at once, concurrently with earlier ones, unless one of these waits for another attempt. Then it waits for
 * them, and they continue one at a time. A post that must be tried alone always waits for all earlier ones.
 *
 * At a stop, a waiting post and all later posts of its conversation are left to the next start: no post overtakes another.
 */

export interface Passage {
  readonly isAlone: boolean;
  readonly attempt: () => Promise<void>;
  /** Handles a failed post, after all earlier ones. `isBehind`: an earlier one waited when it failed. */
  readonly retry: (failure: unknown, isBehind: boolean) => Promise<void>;
}

interface Lane {
  /** Resolves when all posts so far are settled or left to the next start. */
  last: Promise<void>;
  inside: number;
  waiting: number;
  /** Why one of them is left to the next start. */
  givenUp: { readonly error: unknown } | null;
}

export class PostLanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #shutdown: AbortSignal;

  constructor(shutdown: AbortSignal) {
    this.#shutdown = shutdown;
  }

  /** Resolves when the post is settled. Rejects as `retry` does, or if an earlier post is left to the next start. */
  pass(conversation: string, passage: Passage): Promise<void> {
    const lane = this.#lanes.get(conversation) ?? newLane();
    this.#lanes.set(conversation, lane);
    const before = lane.last;
    lane.inside += 1;
    const mine = this.#through(lane, before, passage).finally(() => {
      lane.inside -= 1;
      if (lane.inside === 0 && !lane.givenUp) this.#lanes.delete(conversation);
    });
    lane.last = Promise.allSettled([before, mine]).then(() => undefined);
    return mine;
  }

  async #through(lane: Lane, before: Promise<void>, { isAlone, attempt, retry }: Passage): Promise<void> {
    let isWaiting = false;
    const wait = async () => {
      isWaiting = true;
      lane.waiting += 1;
      await before;
      if (lane.givenUp) throw lane.givenUp.error;
    };
    try {
      const waitsFirst = isAlone || isOccupied(lane);
      if (waitsFirst) await wait();
      try {
        await attempt();
      } catch (failure) {
        const isBehind = !waitsFirst && isOccupied(lane);
        if (!waitsFirst) await wait();
        await retry(failure, isBehind);
      }
    } catch (error) {
      if (this.#shutdown.aborted) lane.givenUp ??= { error };
      throw error;
    } finally {
      if (isWaiting) lane.waiting -= 1;
    }
  }
}

function newLane(): Lane {
  return { last: Promise.resolve(), inside: 0, waiting: 0, givenUp: null };
}

function isOccupied({ waiting, givenUp }: Lane): boolean {
  return waiting > 0 || givenUp !== null;
}
