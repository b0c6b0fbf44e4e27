import {
  type AddressedPost,
  type Bus,
  type DeliveryHead,
  MAX_ORIGINAL_BYTES,
  type Reading,
  type RefusedRuns,
  type StreamPosition,
  type UnreadPosts,
} from '../../bus/index.ts';
import type { PublisherConfig, PublishersConfig } from '../../config/index.ts';
import { refusalOfWorkflow } from '../../conversation/index.ts';
import { type Log, type Refusal, refusal } from '../../kernel/index.ts';

const MINUTE_MS = 60_000;
/** With more publishers than this, those without outstanding posts, and those that were refused nothing for a minute, are forgotten. */
const MANY = 1_000;

/** PUBLISHER-LIMITS-4: bytes that count as one post. */
export const BYTES_OF_ONE = 16 * 1_024;

interface Rate {
  /** The rest of the burst, in posts. */
  tokens: number;
  /** When they were counted, in milliseconds. */
  countedAt: number;
}

interface PublisherState {
  /** By the clock of the stream, and by that of this machine (PUBLISHER-LIMITS-2). */
  readonly stream: Rate;
  readonly requests: Rate;
  /** By conversation: posts that are not in its log yet. */
  readonly open: Map<string, number>;
}

export interface PostSize {
  readonly publisher: string;
  readonly conversation: string;
  readonly bytes: number;
  /** When the stream or this daemon took it, in milliseconds since the epoch. */
  readonly takenAt: number;
  /** Absent: it is of a request. */
  readonly position?: StreamPosition;
}

/**
 * The limits of each publisher of a daemon.
 *
 * PUBLISHER-LIMITS-1  Checked before any part of a post is stored. The rate is checked in stream order, when a post is read; the
 *                     other limits when it is delivered.
 * PUBLISHER-LIMITS-2  The rate counts the times at which the stream took the posts, so posts that waited while no daemon ran are
 *                     not refused. A clock that was set back does not lower the rate. A post of a request is counted by the
 *                     clock of this machine, and charged to the rate of the stream without its time: two clocks in one rate
 *                     would raise it.
 * PUBLISHER-LIMITS-3  Memory does not grow with the number of posts. A publisher that was forgotten has its full burst.
 * PUBLISHER-LIMITS-4  A long post counts as several, so that the rate limits bytes too, but never as more than the burst.
 */
export class PublisherLimits {
  readonly #publishers = new Map<string, PublisherState>();
  readonly #config: () => PublishersConfig;
  /** The conversation is in memory and has outstanding work. */
  readonly #isAtWork: (conversation: string) => boolean;

  constructor(config: () => PublishersConfig, isAtWork: (conversation: string) => boolean = () => false) {
    this.#config = config;
    this.#isAtWork = isAtWork;
  }

  /** The publishers that are remembered. */
  get size(): number {
    return this.#publishers.size;
  }

  /** Counts a post. Returns the milliseconds that its publisher should have waited; 0: within the rate. */
  count(post: Omit<PostSize, 'conversation'>): number {
    const { postsPerMinute } = this.#limitsOf(post.publisher);
    const state = this.#stateOf(post);
    const { stream, requests } = state;
    const { position, takenAt } = post;
    const rate = position ? stream : requests;
    rate.tokens = tokensAt(rate, postsPerMinute, takenAt);
    rate.countedAt = takenAt;
    const wait = waitOf(state, postsPerMinute, post);
    const cost = costOf(post, postsPerMinute);
    if (rate.tokens >= cost) rate.tokens -= cost;
    if (!position && wait === 0) stream.tokens -= cost;
    return wait;
  }

  /** Null: it is admitted, and `settled` must follow. `waitMs`: the result of `count` when the post was read. */
  refusalOrEnter(post: PostSize, waitMs = this.count(post)): Refusal | null {
    const beyond = this.#refusalFor(post, waitMs);
    if (beyond === null) this.#enter(this.#stateOf(post), post.conversation);
    return beyond;
  }

  /** The most posts that this publisher may send in that time. */
  permitted(publisher: string, milliseconds: number): number {
    const { postsPerMinute } = this.#limitsOf(publisher);
    return postsPerMinute === null
      ? Number.POSITIVE_INFINITY
      : postsPerMinute * (1 + milliseconds / MINUTE_MS);
  }

  tooFast(publisher: string, waitMs: number): Refusal {
    return tooFast(publisher, this.#limitsOf(publisher).postsPerMinute, waitMs);
  }

  /** The result that `refusalOrEnter` would have, without counting. */
  refusalOf(post: PostSize): Refusal | null {
    const { postsPerMinute } = this.#limitsOf(post.publisher);
    return this.#refusalFor(post, waitOf(this.#stateOf(post), postsPerMinute, post));
  }

  #refusalFor(post: PostSize, wait: number): Refusal | null {
    const limits = this.#limitsOf(post.publisher);
    const state = this.#stateOf(post);
    if (limits.maxBytes !== null && post.bytes > limits.maxBytes) return tooLarge(post, limits.maxBytes);
    if (wait > 0) return tooFast(post.publisher, limits.postsPerMinute, wait);
    if (limits.openConversations !== null && !state.open.has(post.conversation)) {
      this.#forgetFinished(state, limits.openConversations);
      if (state.open.size >= limits.openConversations) return tooMany(post, limits.openConversations);
    }
    return null;
  }

  /** A known post continues, although it was not admitted. */
  enterKnown(publisher: string, conversation: string): void {
    const state = this.#publishers.get(publisher);
    if (state) this.#enter(state, conversation);
  }

  /** The post is in the log, or refused. */
  settled(publisher: string, conversation: string): void {
    const open = this.#publishers.get(publisher)?.open;
    const left = (open?.get(conversation) ?? 1) - 1;
    if (left > 0 || this.#isAtWork(conversation)) open?.set(conversation, left);
    else open?.delete(conversation);
  }

  #enter({ open }: PublisherState, conversation: string): void {
    open.set(conversation, (open.get(conversation) ?? 0) + 1);
  }

  /** PERSON-6. Null: this publisher may start the workflow of the post, or the post has none. */
  refusalOfStart({ publisher, workflow }: AddressedPost): Refusal | null {
    return workflow === undefined
      ? null
      : refusalOfWorkflow(publisher, workflow, this.#limitsOf(publisher).workflows ?? []);
  }

  /** PERSON-7. */
  maySetSession(publisher: string): boolean {
    return this.#limitsOf(publisher).sessions === true;
  }

  #limitsOf(publisher: string): PublisherConfig {
    const { named, others } = this.#config();
    return (Object.hasOwn(named, publisher) && named[publisher]) || others;
  }

  #stateOf({ publisher, takenAt: now }: Pick<PostSize, 'publisher' | 'takenAt'>): PublisherState {
    const known = this.#publishers.get(publisher);
    if (known) return known;
    if (this.#publishers.size >= MANY) this.#forgetIdle(now);
    const { postsPerMinute } = this.#limitsOf(publisher);
    const full = { tokens: tokensAt(null, postsPerMinute, now), countedAt: now };
    const state = { stream: { ...full }, requests: { ...full }, open: new Map() };
    this.#publishers.set(publisher, state);
    return state;
  }

  /** PUBLISHER-LIMITS-3: after a minute without a post the burst is full again, as for an unknown publisher. */
  #forgetIdle(now: number): void {
    for (const [publisher, state] of this.#publishers) {
      this.#forgetFinished(state, 0);
      const countedAt = Math.max(state.stream.countedAt, state.requests.countedAt);
      if (state.open.size === 0 && now - countedAt >= MINUTE_MS) this.#publishers.delete(publisher);
    }
  }

  /** Only at the limit: the search costs more than the memory. */
  #forgetFinished({ open }: PublisherState, most: number): void {
    if (open.size < most) return;
    for (const [conversation, onTheirWay] of open) {
      if (onTheirWay === 0 && !this.#isAtWork(conversation)) open.delete(conversation);
    }
  }
}

/** Milliseconds until this post is within the rates (PUBLISHER-LIMITS-2). */
function waitOf(
  { stream, requests }: PublisherState,
  perMinute: number | null,
  post: Omit<PostSize, 'conversation'>,
): number {
  // A time before the last count means that the clocks differ.
  const ofStream = !post.position && post.takenAt < stream.countedAt ? 0 : waitFor(stream, perMinute, post);
  return post.position ? ofStream : Math.max(ofStream, waitFor(requests, perMinute, post));
}

/** The burst at that time, in posts. */
function tokensAt(state: Rate | null, perMinute: number | null, now: number): number {
  if (perMinute === null) return Number.POSITIVE_INFINITY;
  if (state === null) return perMinute;
  const passed = Math.max(0, now - state.countedAt); // PUBLISHER-LIMITS-2
  return Math.min(perMinute, state.tokens + (passed * perMinute) / MINUTE_MS);
}

/** PUBLISHER-LIMITS-4 */
function costOf({ bytes }: Pick<PostSize, 'bytes'>, perMinute: number | null): number {
  return Math.min(Math.max(1, Math.ceil(bytes / BYTES_OF_ONE)), perMinute ?? 1);
}

/** Milliseconds until this post is within the rate; 0: now. */
function waitFor(state: Rate, perMinute: number | null, post: Pick<PostSize, 'bytes' | 'takenAt'>): number {
  const missing = costOf(post, perMinute) - tokensAt(state, perMinute, post.takenAt);
  return missing <= 0 || perMinute === null ? 0 : Math.ceil((missing * MINUTE_MS) / perMinute);
}

function tooLarge({ publisher, bytes }: PostSize, most: number): Refusal {
  return refusal(
    'TOO_LARGE',
    `this post has ${bytes} bytes; ${publisher} may send ${most}`,
    'post a shorter text, or put it in a file and name the file; publishers.maxBytes in parley.yaml is the limit',
  );
}

function tooFast(publisher: string, most: number | null, waitMs: number): Refusal {
  const seconds = Math.ceil(waitMs / 1_000);
  return refusal(
    'RATE_LIMITED',
    `${publisher} has posted more than ${most} messages a minute (a long one counts once for each 16 KiB)`,
    `nothing of this one was kept: post it again in ${seconds} s; publishers.postsPerMinute in parley.yaml is the limit`,
    seconds,
  );
}

function tooMany({ publisher }: PostSize, most: number): Refusal {
  return refusal(
    'TOO_MANY_CONVERSATIONS',
    `agents are at work for ${publisher} in ${most} conversations`,
    'post it again when one of them is answered, or post to one of them; publishers.openConversations in parley.yaml is the limit',
  );
}

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
const TOGETHER_MS = 1_000;
/** With as many the letter is stored at once: it fits the broker's payload, and posts are settled soon. */
const MOST_RUNS = 2_000;
const MOST_POSTS = 200_000;
/** A flood has this many times the posts that a publisher may send in that time, a minute's burst included (FLOOD-3). */
const FAR_OVER = 2;

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
