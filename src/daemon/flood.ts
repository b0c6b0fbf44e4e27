import type { Bus, Reading, ReadPost, RefusedRuns } from '../bus/index.ts';
import type { PublisherLimits } from './publisher-limits.ts';
import type { Log } from './runtime.ts';

/**
 * Decides on the rate of each post when it is read, so that a flood that is refused does not delay other publishers.
 *
 * FLOOD-1  Of the posts of one publisher over its rate, `ONE_BY_ONE` a minute are refused one by one. The others share a
 *          dead letter and a log line for each `TOGETHER_MS`.
 * FLOOD-2  A post is settled once the letter that names it is stored.
 * FLOOD-3  A post over the rate is delivered if its id is known, or if a caller of the request API waits for it.
 * FLOOD-4  Memory does not grow with the number of refused posts: only their runs are kept, for `TOGETHER_MS`.
 */
const ONE_BY_ONE = 20;
const MINUTE_MS = 60_000;
const TOGETHER_MS = 1_000;
/** With as many the letter is stored at once: it fits the broker's payload, and posts are settled soon. */
const MOST_RUNS = 2_000;
const MOST_POSTS = 50_000;
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

export interface FloodParts {
  readonly limits: PublisherLimits;
  readonly bus: Pick<Bus, 'publishRefusedRuns'>;
  readonly log: Log;
  /** FLOOD-3 */
  readonly isExpected: (post: ReadPost) => boolean;
}

export class Flood {
  readonly #parts: FloodParts;
  readonly #flooders = new Map<string, Flooder>();

  constructor(parts: FloodParts) {
    this.#parts = parts;
  }

  /** In stream order. */
  read(post: ReadPost): Reading {
    const { limits } = this.#parts;
    const waitMs = limits.count(post);
    if (waitMs === 0) {
      const flooder = this.#flooders.get(post.publisher);
      if (flooder) flooder.isRunOver = true;
      return { kind: 'deliver', waitMs };
    }
    const flooder = this.#flooderOf(post);
    if (this.#isRefusedAlone(flooder, post) || this.#parts.isExpected(post)) {
      flooder.isRunOver = true;
      return { kind: 'deliver', waitMs };
    }
    return { kind: 'refused', kept: this.#refuse(flooder, post, waitMs) };
  }

  /** FLOOD-1 */
  #isRefusedAlone(flooder: Flooder, { takenAt }: ReadPost): boolean {
    if (Math.abs(takenAt - flooder.since) >= MINUTE_MS)
      Object.assign(flooder, { since: takenAt, refused: 0 });
    flooder.refused += 1;
    return flooder.refused <= ONE_BY_ONE;
  }

  #refuse(flooder: Flooder, post: ReadPost, waitMs: number): Promise<void> {
    const { position, takenAt, bytes } = post;
    if (flooder.batch && flooder.batch.stream !== position.stream) flooder.batch.store();
    flooder.batch ??= this.#newBatch(flooder, post);
    const { batch } = flooder;
    const run = batch.runs.at(-1);
    if (run && !flooder.isRunOver) run[1] = position.sequence;
    else batch.runs.push([position.sequence, position.sequence]);
    flooder.isRunOver = false;
    batch.to = takenAt;
    batch.count += 1;
    batch.bytes += bytes;
    batch.waitMs = Math.max(batch.waitMs, waitMs);
    if (batch.count >= MOST_POSTS || batch.runs.length >= MOST_RUNS) batch.store();
    return batch.kept;
  }

  #newBatch(flooder: Flooder, { publisher, position, takenAt }: ReadPost): Batch {
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
    const none = { to: takenAt, count: 0, bytes: 0, waitMs: 0 };
    const batch: Batch = { stream: position.stream, from: takenAt, ...none, runs: [], kept, store };
    return batch;
  }

  /** FLOOD-2 */
  async #store(publisher: string, { kept: _, store: __, waitMs, ...posts }: Batch): Promise<void> {
    const { limits, bus, log } = this.#parts;
    const refused = limits.tooFast(publisher, waitMs);
    const { count, runs } = posts;
    const fields = { publisher, code: refused.code, count, first: runs[0]?.[0], last: runs.at(-1)?.[1] };
    log.warn(fields, 'posts were refused');
    const message = `${refused.message}: ${count} posts were refused together`;
    await bus.publishRefusedRuns(publisher, posts satisfies RefusedRuns, { ...refused, message });
  }

  #flooderOf({ publisher, takenAt }: ReadPost): Flooder {
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
