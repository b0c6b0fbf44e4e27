/**
 * The posts of each conversation, in the order in which they came.
 *
 * A post is tried at once, beside those before it, as long as none of them waits for another attempt. Else it stands behind
 * them, and they go on one at a time. One that is to be tried alone always stands so: what was before it is dealt with by
 * then, also what failed only after it had come, and what comes later is behind it.
 *
 * What waits when the daemon stops is given up until the next start, and so is all that comes behind it, though there
 * may be room by now: else a later post would overtake an earlier one.
 */

export interface Passage {
  readonly isAlone: boolean;
  readonly attempt: () => Promise<void>;
  /** Deals with a failed one, behind all before it. `isBehind`: some of those waited when it failed. */
  readonly insist: (failure: unknown, isBehind: boolean) => Promise<void>;
}

interface Lane {
  /** Resolves when all posts so far are dealt with, or given up. */
  last: Promise<void>;
  inside: number;
  waiting: number;
  /** Why one of them was given up until the next start. */
  givenUp: { readonly error: unknown } | null;
}

export class PostLanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #shutdown: AbortSignal;

  constructor(shutdown: AbortSignal) {
    this.#shutdown = shutdown;
  }

  /** Resolves when the post is dealt with; rejects as `insist` does, or when one before it was given up. */
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

  async #through(lane: Lane, before: Promise<void>, { isAlone, attempt, insist }: Passage): Promise<void> {
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
        await insist(failure, isBehind);
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
