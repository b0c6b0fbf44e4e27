import type { Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { actingAs, type Identity } from '../guard/access.ts';
import type { Arrival, Door } from '../port.ts';
import { Reply, type Said } from './reply.ts';
import type { ChatRequest } from './request.ts';

/**
 * Posts, and passes on what the conversation says to it.
 *
 * Watching begins before the post, so that nothing slips between. What was posted before is read from the log.
 */
export async function converse(
  door: Door,
  { conversation, content, postId, model }: ChatRequest,
  { identity, publisher, agent }: { identity: Identity; publisher: string; agent: string | null },
  onSaid: (said: Said) => void,
): Promise<() => void> {
  let missed: Arrival[] | null = [];
  let reply: Reply | null = null;
  const pass = (arrival: Arrival) => {
    if (missed) missed.push(arrival);
    else for (const said of reply?.accept(arrival) ?? []) onSaid(said);
    if (reply?.isOver) unsubscribe();
  };
  const unsubscribe = door.subscribe(conversation, pass);
  try {
    const post = { conversation, content, id: postId, meta: { model }, ...(agent && { to: [agent] }) };
    const body = actingAs(identity, post, publisher);
    const answer = await door.request({ endpoint: 'post', publisher: identity.publisher, body });
    if (!answer.ok) throw new ParleyError(answer.refusal.code, answer.refusal.message, answer.refusal);
    const { index, agents, duplicate } = answer.body as Posted;
    reply = new Reply(index, agents, agent);
    const known = duplicate ? await logFrom(door, conversation, index) : [];
    const next = known.at(-1)?.index ?? -1;
    const arrivals: Arrival[] = [{ kind: 'entries', entries: known }, ...since(missed, next)];
    for (const said of reply.drain()) onSaid(said);
    missed = null;
    for (const arrival of arrivals) pass(arrival);
    if (reply.isOver) unsubscribe();
    return unsubscribe;
  } catch (error) {
    unsubscribe();
    throw error;
  }
}

interface Posted {
  readonly index: number;
  readonly agents: readonly string[];
  readonly duplicate: boolean;
}

/** What came behind the entry with that index. Live text that came before it is in the log by now, or lost. */
function since(arrivals: readonly Arrival[], last: number): Arrival[] {
  const place = arrivals.findLastIndex(
    (arrival) => arrival.kind === 'entries' && arrival.entries.some(({ index }) => index <= last),
  );
  const later = arrivals.slice(Math.max(place, 0));
  return later.flatMap((arrival): Arrival[] => {
    if (arrival.kind === 'live') return [arrival];
    return [{ kind: 'entries', entries: arrival.entries.filter(({ index }) => index > last) }];
  });
}

async function logFrom(door: Door, conversation: string, from: number): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (;;) {
    const body = { conversation, from: from + entries.length };
    const answer = await door.request({ endpoint: 'entries', publisher: null, body });
    if (!answer.ok) throw new ParleyError(answer.refusal.code, answer.refusal.message, answer.refusal);
    const page = answer.body as { readonly length: number; readonly entries: readonly Entry[] };
    entries.push(...page.entries);
    if (page.entries.length === 0 || from + entries.length >= page.length) return entries;
  }
}
