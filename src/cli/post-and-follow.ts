import type {
  ConversationDetail,
  FollowEvent,
  ParleyClient,
  PostAnswer,
  PostMessage,
} from '../client/index.ts';
import type { Context } from './context.ts';
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
  const { conversation } = message;
  const from = await logLength(client, conversation);
  const early = new AbortController();
  const abort = () => early.abort();
  signal.addEventListener('abort', abort, { once: true });
  const following = client.follow(conversation, { from, signal: early.signal })[Symbol.asyncIterator]();
  const first = following.next();
  first.catch(() => {}); // told when it is awaited
  try {
    const answer = await client.post(message, { signal });
    if (answer.index >= from) return { answer, events: since(answer.index, following, first) };
    early.abort(); // the id was posted before: what followed is further back
    const again = client.follow(conversation, { from: answer.index, signal })[Symbol.asyncIterator]();
    return { answer, events: since(answer.index, again, again.next()) };
  } catch (error) {
    early.abort(); // not `return`, which would wait for an event
    throw error;
  }
}

/**
 * The agents that a message was routed to, without those that are stopped: they answer some day, and waiting for that would
 * be waiting for ever.
 */
export function thoseThatMayAnswer(
  context: Context,
  { conversation, agents: routed }: PostAnswer,
  agents: ConversationDetail['agents'],
  note: (text: string) => void,
): readonly string[] {
  const stopped = routed.filter((slug) => agents[slug]?.status === 'stopped');
  for (const slug of stopped) {
    note(`${slug} is stopped: it answers after \`${context.command(`resume ${conversation}`)}\``);
  }
  return routed.filter((slug) => !stopped.includes(slug));
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
