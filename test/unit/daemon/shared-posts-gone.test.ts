import { describe, expect, it } from 'vitest';
import type { SharedIngress, Token } from '../../../src/bus/index.ts';
import { SharedPosts, type SharedPostsParts } from '../../../src/daemon/cluster/shared-posts.ts';

const TOKEN: Token = {
  stream: 's',
  sequence: 7,
  conversation: 'demo',
  handle: 'reply',
  isRepeated: false,
  takenAt: 1,
};
const POST = { position: { stream: 's', sequence: 7 } };

/** One token; `next` and `at` are what the stream answers when it is asked for posts. */
async function take(next: (typeof POST | null)[], at: typeof POST | null) {
  const done: string[] = [];
  const ingress = {
    next: async () => next.shift() ?? null,
    at: async () => at,
    keep: () => undefined,
    acknowledge: () => done.push('acknowledged'),
    giveBack: (_: Token, afterMs: number) => done.push(`given back for ${afterMs} ms`),
  };
  const parts = {
    ingress: () => ingress as unknown as SharedIngress,
    posts: { deliver: async () => void done.push('delivered') },
    workers: {
      holds: () => true,
      current: async () => ({ state: { ingress: { stream: 's', sequence: 3 } } }),
    },
    router: { locate: async () => ({ kind: 'here' }) },
    failureTimeoutMs: 1_000,
    log: {
      info: () => undefined,
      warn: (fields: object) => done.push(JSON.stringify(fields)),
      error: () => undefined,
    },
    leaving: new AbortController().signal,
  };
  await new SharedPosts(parts as unknown as SharedPostsParts).process(TOKEN);
  return done;
}

describe('a token whose post may be gone', () => {
  it('is acknowledged when the post is durable (SHARED-POSTS-3)', async () => {
    expect(await take([POST], POST)).toEqual(['delivered', 'acknowledged']);
  });

  it('is given back when the server has the post, but does not deliver it (SHARED-POSTS-3)', async () => {
    const [warned, ...done] = await take([null], POST);
    expect(warned).toContain('the server has post 7, but did not deliver it');
    expect(done).toEqual(['given back for 1000 ms']);
  });

  it('is acknowledged when the post was removed from the stream', async () => {
    expect(await take([null], null)).toEqual(['acknowledged']);
  });
});
