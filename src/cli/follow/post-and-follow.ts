import type {
  ConversationDetail,
  FollowEvent,
  ParleyClient,
  PostAnswer,
  PostMessage,
  PostOptions,
} from '../../client/index.ts';
import type { Context } from '../context.ts';
import { logLength } from './log-pages.ts';

/** Posts, and yields the events from that message on. Follows before it posts, so that no early token is missed. */
export async function postAndFollow(
  client: ParleyClient,
  message: PostMessage,
  { signal, asOperator }: PostOptions & { readonly signal: AbortSignal },
): Promise<{ answer: PostAnswer; events: AsyncGenerator<FollowEvent, void, undefined> }> {
  const { conversation } = message;
  const from = await logLength(client, conversation);
  const early = new AbortController();
  const abort = () => early.abort();
  signal.addEventListener('abort', abort, { once: true });
  const following = client.follow(conversation, { from, signal: early.signal })[Symbol.asyncIterator]();
  const first = following.next();
  first.catch(() => {}); // reported where it is awaited
  try {
    const answer = await client.post(message, { signal, ...(asOperator && { asOperator }) });
    if (answer.index >= from) return { answer, events: since(answer.index, following, first) };
    early.abort(); // the id was posted before: its events are earlier
    const again = client.follow(conversation, { from: answer.index, signal })[Symbol.asyncIterator]();
    return { answer, events: since(answer.index, again, again.next()) };
  } catch (error) {
    early.abort(); // not `return`, which would wait for an event
    throw error;
  }
}

/** The agents that a message was routed to, without stopped ones: waiting for these might never end. */
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
