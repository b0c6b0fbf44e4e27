import {
  type Bus,
  type DeliveryHead,
  MAX_ORIGINAL_BYTES,
  type Reading,
  type RefusedRuns,
  type UnreadPosts,
} from '../../bus/index.ts';
import type { Log } from '../../kernel/index.ts';
import type { PublisherLimits } from './publisher-limits.ts';

/**
 * Decides on the rate of each post when it is read, so that a flood that is refused does not delay other publishers.
 *
 * FLOOD-1  Of the posts of one publisher over its rate, `ONE_BY_ONE` a minute are refused one by one. The others share a
 *          dead letter and a log line for each `TOGETHER_MS`.
 * FLOOD-2  A post is settled once the letter that names it is stored.
 * FLOOD-3  Unread posts are refused only if their publisher is far over its rate, in a short time. So what waited at a permitted
 *          rate while no daemon ran is read.
 * FLOOD-4  Memory does not grow with the number of refused posts: only their runs are kept, for `TOGETHER_MS`.
 */
const ONE_BY_ONE = 20;
const MINUTE_MS = 60_000;
const TOGETHER_MS = 1_000;
/** With as many the letter is stored at once: it fits the broker's payload, and posts are settled soon. */
const MOST_RUNS = 2_000;
const MOST_POSTS = 200_000;
/** A flood has this many times the posts that a publisher may send in that time, a minute's burst included (FLOOD-3). */
const FAR_OVER = 2;
/** With more publishers than this, those that were refused nothing for a minute are forgotten. */
const MANY = 1_000;

interface Batch {
  readonly stream: string;
  readonly from: number;
  to: number;
  count: number;
  bytes: number;
  readonly runs: [number, number][];
  /** The longest of all. */
  waitMs: number;
  readonly kept: Promise<void>;
  /** Stores the letter. */
  readonly store: () => void;
}

/** A publisher that was over its rate. */
interface Flooder {
  /** Since when posts were refused one by one, in milliseconds of the stream's clock; and how many were. */
  since: number;
  refused: number;
  batch: Batch | null;
  /** The newest run is over: a post of this publisher was delivered after it. */
  isRunOver: boolean;
}

interface FloodParts {
  readonly limits: PublisherLimits;
  readonly bus: Pick<Bus, 'publishRefusedRuns'>;
  readonly log: Log;
  /** Rejects if another daemon reads the stream by now. */
  readonly mayRefuse: () => Promise<void>;
}

export class Flood {
  readonly #parts: FloodParts;
  readonly #flooders = new Map<string, Flooder>();

  constructor(parts: FloodParts) {
    this.#parts = parts;
  }

  /** In stream order. */
  read(post: DeliveryHead): Reading {
    const { limits } = this.#parts;
    const waitMs = limits.count(post);
    if (waitMs === 0) {
      const flooder = this.#flooders.get(post.publisher);
      if (flooder) flooder.isRunOver = true;
      return { kind: 'deliver', waitMs };
    }
    const { publisher, position, takenAt, bytes } = post;
    const flooder = this.#flooderOf(publisher, takenAt);
    if (this.#isRefusedAlone(flooder, post)) {
      flooder.isRunOver = true;
      return { kind: 'deliver', waitMs };
    }
    const { stream, sequence } = position;
    const place = { stream, first: sequence, last: sequence, from: takenAt, to: takenAt };
    return { kind: 'refused', kept: this.#refuse(flooder, { publisher, ...place, count: 1, bytes }, waitMs) };
  }

  /** FLOOD-3. False: the posts have to be read. */
  isFlood({ publisher, count, from, to }: UnreadPosts): boolean {
    return to - from <= MINUTE_MS && count >= FAR_OVER * this.#parts.limits.permitted(publisher, to - from);
  }

  /** Refuses unread posts. Resolves as `kept` of a refused post. */
  skip(posts: UnreadPosts): Promise<void> {
    return this.#refuse(this.#flooderOf(posts.publisher, posts.from), posts, 1_000);
  }

  #isRefusedAlone(flooder: Flooder, { takenAt, bytes }: DeliveryHead): boolean {
    if (Math.abs(takenAt - flooder.since) >= MINUTE_MS)
      Object.assign(flooder, { since: takenAt, refused: 0 });
    if (bytes > MAX_ORIGINAL_BYTES) return false; // a letter of its own could not hold it
    flooder.refused += 1;
    return flooder.refused <= ONE_BY_ONE;
  }

  #refuse(flooder: Flooder, posts: UnreadPosts, waitMs: number): Promise<void> {
    if (flooder.batch && flooder.batch.stream !== posts.stream) flooder.batch.store();
    flooder.batch ??= this.#newBatch(flooder, posts);
    const { batch } = flooder;
    const run = batch.runs.at(-1);
    if (run && !flooder.isRunOver) run[1] = posts.last;
    else batch.runs.push([posts.first, posts.last]);
    flooder.isRunOver = false;
    batch.to = posts.to;
    batch.count += posts.count;
    batch.bytes += posts.bytes;
    batch.waitMs = Math.max(batch.waitMs, waitMs);
    if (batch.count >= MOST_POSTS || batch.runs.length >= MOST_RUNS) batch.store();
    return batch.kept;
  }

  #newBatch(flooder: Flooder, { publisher, stream, from }: UnreadPosts): Batch {
    let store = () => {};
    const isDue = new Promise<void>((resolve) => {
      store = () => {
        clearTimeout(timer);
        flooder.batch = null;
        resolve();
      };
    });
    const timer = setTimeout(() => store(), TOGETHER_MS);
    const kept = isDue.then(() => this.#store(publisher, batch));
    const none = { to: from, count: 0, bytes: 0, waitMs: 0 };
    const batch: Batch = { stream, from, ...none, runs: [], kept, store };
    return batch;
  }

  async #store(publisher: string, { kept: _, store: __, waitMs, ...posts }: Batch): Promise<void> {
    const { limits, bus, log, mayRefuse } = this.#parts;
    const refused = limits.tooFast(publisher, waitMs);
    const { count, runs } = posts;
    const fields = { publisher, code: refused.code, count, first: runs[0]?.[0], last: runs.at(-1)?.[1] };
    log.warn(fields, 'posts were refused');
    const message = `${refused.message}: ${count} posts were refused together`;
    await bus.publishRefusedRuns(publisher, posts satisfies RefusedRuns, { ...refused, message }, mayRefuse);
  }

  #flooderOf(publisher: string, takenAt: number): Flooder {
    const known = this.#flooders.get(publisher);
    if (known) return known;
    if (this.#flooders.size >= MANY) this.#forget(takenAt);
    const flooder: Flooder = { since: takenAt, refused: 0, batch: null, isRunOver: false };
    this.#flooders.set(publisher, flooder);
    return flooder;
  }

  #forget(now: number): void {
    for (const [publisher, { since, batch }] of this.#flooders)
      if (batch === null && now - since >= MINUTE_MS) this.#flooders.delete(publisher);
  }
}
