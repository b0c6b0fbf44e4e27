import type { Dice } from './dice.ts';
import { WISHES, type Wish, wishText } from './story.ts';

/** What people post: each person numbers the messages of each conversation, and posts them in that order. */
export interface PlannedPost {
  readonly id: string;
  readonly conversation: string;
  readonly publisher: string;
  /** From 0, for this publisher in this conversation. */
  readonly number: number;
  readonly content: string;
  readonly delivery: 'steer' | 'queue' | 'interrupt';
  /** Not before. Milliseconds since the beginning. */
  readonly atMs: number;
  /** Not before so many batches were asked for, the first one being 1; absent: its time alone decides. */
  readonly batch?: number;
  /** By the request API, which answers when it is in the log; or by the stream, which answers when the broker has it. */
  readonly way: 'api' | 'stream';
  /** So long after it was acknowledged it is posted again, with the same id. Milliseconds. */
  readonly again: readonly number[];
}

export const PUBLISHERS = ['ann', 'ben', 'cho'] as const;
export const CONVERSATIONS = ['oak', 'elm', 'ash', 'fir'] as const;

const GAP_MS = [200, 5_500] as const;
/** As often as each stands here. */
const DELIVERIES = ['steer', 'steer', 'steer', 'queue', 'queue', 'queue', 'queue', 'interrupt'] as const;
/** So long people stay with their conversations before they begin new ones. */
const CHAPTER_MS = 60_000;

export function planPosts(endMs: number, roll: Dice): PlannedPost[] {
  const posts: PlannedPost[] = [];
  for (let beginMs = 0, chapter = 1; beginMs < endMs; beginMs += CHAPTER_MS, chapter++) {
    const until = Math.min(endMs, beginMs + CHAPTER_MS);
    for (const conversation of CONVERSATIONS) {
      for (const publisher of PUBLISHERS) {
        posts.push(...planLine(`${conversation}-${chapter}`, publisher, [beginMs, until], roll));
      }
    }
  }
  return posts;
}

/**
 * Posts that somebody asks for, one batch after the other. Each batch holds every wish once, in conversations that nobody
 * has seen before, so that it takes a daemon to every place of its work.
 */
export function planBatches(count: number, roll: Dice): PlannedPost[] {
  const posts: PlannedPost[] = [];
  for (let batch = 1; batch <= count; batch++) {
    const wishes: Wish[] = [...WISHES];
    for (const name of CONVERSATIONS.slice(0, WISHES.length / PUBLISHERS.length)) {
      const conversation = `${name}-${batch}`;
      for (const publisher of PUBLISHERS) {
        const [wish = 'talk'] = wishes.splice(roll.between(0, wishes.length - 1), 1);
        posts.push({
          ...{ id: `${publisher}-${conversation}-0`, conversation, publisher, number: 0 },
          ...{ content: wishText(publisher, 0, wish), delivery: roll.pick(DELIVERIES), atMs: 0, batch },
          way: wishes.length % PUBLISHERS.length === 0 ? 'stream' : 'api',
          again: roll.next() < 0.25 ? [roll.between(0, 4_000)] : [],
        });
      }
    }
  }
  return posts;
}

function planLine(
  conversation: string,
  publisher: string,
  [beginMs, endMs]: readonly [number, number],
  roll: Dice,
): PlannedPost[] {
  const posts: PlannedPost[] = [];
  for (let atMs = beginMs + roll.between(0, GAP_MS[1]); atMs < endMs; atMs += roll.between(...GAP_MS)) {
    const number = posts.length;
    const wish: Wish = roll.pick(WISHES);
    posts.push({
      id: `${publisher}-${conversation}-${number}`,
      conversation,
      publisher,
      number,
      content: wishText(publisher, number, wish),
      delivery: roll.pick(DELIVERIES),
      atMs,
      way: roll.pick(['api', 'stream']),
      again: roll.next() < 0.25 ? [roll.between(0, 4_000)] : [],
    });
  }
  return posts;
}
