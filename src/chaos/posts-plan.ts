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

/** Where many talk at once: so many messages a second, of all of them. */
const CROWD_PER_SECOND = 6;

/** `crowd`: so many conversations, all of them at once and for the whole time; else a few, and new ones each minute. */
export function planPosts(endMs: number, roll: Rng, crowd?: number): PlannedPost[] {
  if (crowd !== undefined) return planCrowd(endMs, roll, crowd);
  const posts: PlannedPost[] = [];
  for (let beginMs = 0, chapter = 1; beginMs < endMs; beginMs += CHAPTER_MS, chapter++) {
    const until = Math.min(endMs, beginMs + CHAPTER_MS);
    for (const conversation of CONVERSATIONS) {
      for (const publisher of PUBLISHERS) {
        posts.push(...planLine(`${conversation}-${chapter}`, publisher, [beginMs, until], GAP_MS, roll));
      }
    }
  }
  return posts;
}

/**
 * Posts that somebody asks for, one batch after the other. Each batch holds every wish once, in conversations that nobody
 * has seen before, so that it takes a daemon to every place of its work.
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

/** One person to each conversation: there are enough of them. */
function planCrowd(endMs: number, roll: Rng, crowd: number): PlannedPost[] {
  const meanMs = Math.round((crowd / CROWD_PER_SECOND) * 1_000);
  const gapMs = [Math.round(meanMs * 0.1), Math.round(meanMs * 1.9)] as const;
  return Array.from({ length: crowd }, (_, place) => {
    const name = `${CONVERSATIONS[place % CONVERSATIONS.length]}-${Math.floor(place / CONVERSATIONS.length)}`;
    const publisher = PUBLISHERS[place % PUBLISHERS.length] ?? PUBLISHERS[0];
    return planLine(name, publisher, [0, endMs], gapMs, roll);
  }).flat();
}

function planLine(
  conversation: string,
  publisher: string,
  [beginMs, endMs]: readonly [number, number],
  gapMs: readonly [number, number],
  roll: Rng,
): PlannedPost[] {
  const posts: PlannedPost[] = [];
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
      way: roll.pick(['api', 'stream']),
      again: roll.next() < 0.25 ? [roll.between(0, 4_000)] : [],
    });
  }
  return posts;
}
