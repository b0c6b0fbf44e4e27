import type { AddressedPost, StreamPosition } from '../../bus/index.ts';
import type { PublisherConfig, PublishersConfig } from '../../config/index.ts';
import { refusalOfWorkflow } from '../../conversation/index.ts';
import { type Refusal, refusal } from '../../kernel/index.ts';

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

const MINUTE_MS = 60_000;
/** PUBLISHER-LIMITS-4: bytes that count as one post. */
export const BYTES_OF_ONE = 16 * 1_024;
/** With more publishers, those without outstanding posts are forgotten. */
const MANY = 1_000;

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

export class PublisherLimits {
  readonly #publishers = new Map<string, PublisherState>();
  readonly #config: () => PublishersConfig;
  /** The conversation is in memory and has outstanding work. */
  readonly #isAtWork: (conversation: string) => boolean;

  constructor(config: () => PublishersConfig, isAtWork: (conversation: string) => boolean) {
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

  /** Null: admitted, and `settled` must follow. `waitMs`: the result of `count` when the post was read. */
  admit(post: PostSize, waitMs = this.count(post)): Refusal | null {
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

  /** The refusal of a post that is over the rate. */
  tooFast(publisher: string, waitMs: number): Refusal {
    return tooFast(publisher, this.#limitsOf(publisher).postsPerMinute, waitMs);
  }

  /** The result that `admit` would have, without counting. */
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
