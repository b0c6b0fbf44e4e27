import type { FollowEvent, ParleyClient, PostAnswer, PostMessage } from '../client/index.ts';
import { logLength } from './log-pages.ts';

/**
 * Posts, and gives what happens from that message on.
 *
 * The following begins before the post: a quick agent's first tokens would be gone before one that began after.
 */
export async function postAndFollow(
  client: ParleyClient,
  message: PostMessage,
  signal: AbortSignal,
): Promise<{ answer: PostAnswer; events: AsyncGenerator<FollowEvent, void, undefined> }> {
  const from = await logLength(client, message.conversation);
  const following = client.follow(message.conversation, { from, signal })[Symbol.asyncIterator]();
  const first = following.next();
  first.catch(() => {}); // told when it is awaited below
  try {
    const answer = await client.post(message, { signal });
    if (answer.index >= from) return { answer, events: since(answer.index, following, first) };
    await following.return?.();
    const again = client.follow(message.conversation, { from: answer.index, signal })[Symbol.asyncIterator]();
    return { answer, events: since(answer.index, again, again.next()) }; // the id was posted before
  } catch (error) {
    void following.return?.();
    throw error;
  }
}

async function* since(
  index: number,
  following: AsyncIterator<FollowEvent>,
  first: Promise<IteratorResult<FollowEvent>>,
): AsyncGenerator<FollowEvent, void, undefined> {
  try {
    for (let next = await first; !next.done; next = await following.next()) {
      const event = next.value;
      if (event.kind === 'live' || event.entry.index >= index) yield event;
    }
  } finally {
    await following.return?.();
  }
}
