import type { Entry } from '../../conversation/index.ts';
import { ask, type Posted } from '../course/ask.ts';
import { readLog } from '../course/log.ts';
import { actingAs, type Identity } from '../guard/access.ts';
import type { Arrival, Door } from '../port.ts';
import type { Picked } from './pick.ts';
import { Reply, type Said } from './reply.ts';

/** Who posts to whom. */
export interface Who {
  readonly identity: Identity;
  readonly publisher: string;
  readonly agent: string | null;
}

export interface ChatPost {
  readonly conversation: string;
  readonly id: string;
  readonly content: string;
  readonly meta: Readonly<Record<string, unknown>>;
}

/**
 * What a new conversation begins with; the words of agents in it are those of the agent that is asked. Refused, with
 * nothing kept, if the post that follows would be.
 */
export async function seed(
  door: Door,
  messages: Picked['seed'],
  { conversation, ...post }: ChatPost,
  { identity, publisher, agent }: Who,
): Promise<void> {
  if (messages.length === 0) return;
  const next = { ...post, ...(agent && { to: [agent] }) };
  const given = { conversation, messages, post: next, ...(agent && { agent }) };
  const body = actingAs(identity, given, publisher);
  await ask(door, 'seed', body, identity.publisher);
}

/**
 * Posts, and passes on what the conversation says to it. `tail`: the end of the log before.
 *
 * Watching begins before the post, so that nothing slips between. What was posted before is read from the log.
 */
export async function converse(
  door: Door,
  { conversation, ...post }: ChatPost,
  { identity, publisher, agent }: Who,
  tail: readonly Entry[],
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
    const body = actingAs(identity, { conversation, ...post, ...(agent && { to: [agent] }) }, publisher);
    const { index, agents, duplicate } = await ask<Posted>(door, 'post', body, identity.publisher);
    reply = new Reply(index, agents, agent, await before(door, conversation, tail, index));
    const known = duplicate ? await readLog(door, conversation, index) : [];
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

/** The log up to the post, as far back as the tail goes: others may have said something since that was read. */
async function before(
  door: Door,
  conversation: string,
  tail: readonly Entry[],
  index: number,
): Promise<readonly Entry[]> {
  const next = (tail.at(-1)?.index ?? index - 1) + 1;
  const between = next < index ? await readLog(door, conversation, next, index) : [];
  return [...tail.filter((entry) => entry.index < index), ...between];
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
