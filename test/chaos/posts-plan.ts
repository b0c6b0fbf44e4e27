import type { Rng } from './rng.ts';
import { INTENTS, type Intent, intentText } from './scenario.ts';

/** The posts of a run: each publisher numbers its messages in each conversation and posts them in that order. */
export interface PlannedPost {
  readonly id: string;
  readonly conversation: string;
  readonly publisher: string;
  /** From 0, for this publisher in this conversation. */
  readonly number: number;
  readonly content: string;
  readonly delivery: 'steer' | 'queue' | 'interrupt';
  /** Not before this time, in milliseconds since the beginning. */
  readonly atMs: number;
  /** Not before this many batches were requested, counted from 1; absent: only the time decides. */
  readonly batch?: number;
  /**
   * By the request API, which answers when the post is in the log, or by the stream, which answers when the server
   * has it. Posts of one publisher into one conversation take one way, since the two have no common order.
   */
  readonly way: 'api' | 'stream';
  /** Delay of a repeated post with the same id after its acknowledgement, in milliseconds. */
  readonly again: readonly number[];
}

const PUBLISHERS = ['ann', 'ben', 'cho'] as const;
const CONVERSATIONS = ['oak', 'elm', 'ash', 'fir'] as const;

const GAP_MS = [200, 5_500] as const;
/** Weighted by repetition. */
const DELIVERIES = ['steer', 'steer', 'steer', 'queue', 'queue', 'queue', 'queue', 'interrupt'] as const;
/** How long people use their conversations before they begin new ones. */
const CONVERSATION_MS = 60_000;

/** The rate of messages per second in total, with many conversations. */
const POSTS_PER_SECOND = 6;

/** `conversations`: this many conversations, all of them for the whole run; otherwise a few, and new ones each minute. */
export function planPosts(endMs: number, roll: Rng, conversations?: number): PlannedPost[] {
  if (conversations !== undefined) return planMany(endMs, roll, conversations);
  const posts: PlannedPost[] = [];
  for (let beginMs = 0, chapter = 1; beginMs < endMs; beginMs += CONVERSATION_MS, chapter++) {
    const until = Math.min(endMs, beginMs + CONVERSATION_MS);
    for (const conversation of CONVERSATIONS) {
      for (const publisher of PUBLISHERS) {
        posts.push(
          ...planConversation(`${conversation}-${chapter}`, publisher, [beginMs, until], GAP_MS, roll),
        );
      }
    }
  }
  return posts;
}

/**
 * Posts in batches, one batch per request. Each batch has every request once, in new conversations, so that it
 * takes a daemon through each step of its work.
 */
export function planBatches(count: number, roll: Rng): PlannedPost[] {
  const posts: PlannedPost[] = [];
  for (let batch = 1; batch <= count; batch++) {
    const wishes: Intent[] = [...INTENTS];
    for (const name of CONVERSATIONS.slice(0, INTENTS.length / PUBLISHERS.length)) {
      const conversation = `${name}-${batch}`;
      for (const publisher of PUBLISHERS) {
        const [wish = 'talk'] = wishes.splice(roll.between(0, wishes.length - 1), 1);
        posts.push({
          ...{ id: `${publisher}-${conversation}-0`, conversation, publisher, number: 0 },
          ...{ content: intentText(publisher, 0, wish), delivery: roll.pick(DELIVERIES), atMs: 0, batch },
          way: wishes.length % PUBLISHERS.length === 0 ? 'stream' : 'api',
          again: roll.next() < 0.25 ? [roll.between(0, 4_000)] : [],
        });
      }
    }
  }
  return posts;
}

/** One person for each conversation; there are enough. */
function planMany(endMs: number, roll: Rng, conversations: number): PlannedPost[] {
  const meanMs = Math.round((conversations / POSTS_PER_SECOND) * 1_000);
  const gapMs = [Math.round(meanMs * 0.1), Math.round(meanMs * 1.9)] as const;
  return Array.from({ length: conversations }, (_, place) => {
    const name = `${CONVERSATIONS[place % CONVERSATIONS.length]}-${Math.floor(place / CONVERSATIONS.length)}`;
    const publisher = PUBLISHERS[place % PUBLISHERS.length] ?? PUBLISHERS[0];
    return planConversation(name, publisher, [0, endMs], gapMs, roll);
  }).flat();
}

function planConversation(
  conversation: string,
  publisher: string,
  [beginMs, endMs]: readonly [number, number],
  gapMs: readonly [number, number],
  roll: Rng,
): PlannedPost[] {
  const posts: PlannedPost[] = [];
  const way = roll.pick(['api', 'stream'] as const);
  for (let atMs = beginMs + roll.between(0, gapMs[1]); atMs < endMs; atMs += roll.between(...gapMs)) {
    const number = posts.length;
    const wish: Intent = roll.pick(INTENTS);
    posts.push({
      id: `${publisher}-${conversation}-${number}`,
      conversation,
      publisher,
      number,
      content: intentText(publisher, number, wish),
      delivery: roll.pick(DELIVERIES),
      atMs,
      way,
      again: roll.next() < 0.25 ? [roll.between(0, 4_000)] : [],
    });
  }
  return posts;
}
