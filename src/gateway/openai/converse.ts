import type { Entry } from '../../conversation/index.ts';
import { messageOf, ParleyError, type Refusal, refusal } from '../../kernel/index.ts';
import { actingAs, type Identity } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';
import { Arrivals } from '../progress/arrivals.ts';
import { ask, stoppedOf } from '../progress/ask.ts';
import { readLog } from '../progress/log.ts';
import type { Picked } from './pick.ts';
import { Reply, type Said } from './reply.ts';

/** The caller and the addressed agent. */
export interface ChatCaller {
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
 * Seeds a new conversation with its history, which the caller quotes. Refused without effect if the post that follows would
 * be refused.
 */
export async function seed(
  daemon: GatewayPort,
  messages: Picked['seed'],
  { conversation, ...post }: ChatPost,
  { identity, publisher, agent }: ChatCaller,
): Promise<void> {
  if (messages.length === 0) return;
  const next = { ...post, ...(agent && { to: [agent] }) };
  const given = { conversation, messages, post: next };
  const body = actingAs(identity, given, publisher);
  await ask(daemon, 'seed', body, identity);
}

/** Posts, and passes on the reply. `tail`: the end of the log before the post. */
export async function converse(
  daemon: GatewayPort,
  { conversation, ...post }: ChatPost,
  { identity, publisher, agent }: ChatCaller,
  tail: readonly Entry[],
  onSaid: (said: Said) => void,
): Promise<() => void> {
  const arrivals = new Arrivals(daemon, conversation);
  try {
    const body = actingAs(identity, { conversation, ...post, ...(agent && { to: [agent] }) }, publisher);
    const { index, agents } = await ask(daemon, 'post', body, identity);
    const known = await before(daemon, conversation, tail, index);
    const reply = new Reply(index, agents, agent, known, await stoppedOf(daemon, conversation, agents));
    arrivals.begin(index);
    passOn(arrivals, reply, onSaid).catch((error: unknown) =>
      onSaid({ kind: 'failed', refusal: refusalOf(error) }),
    );
    return () => arrivals.close();
  } catch (error) {
    arrivals.close();
    throw error;
  }
}

async function passOn(arrivals: Arrivals, reply: Reply, onSaid: (said: Said) => void): Promise<void> {
  try {
    const read: Entry[] = [];
    for (const said of reply.drain()) onSaid(said);
    while (!reply.isOver) {
      const received = await arrivals.take();
      if (received === null) return;
      if (received.kind === 'entries') read.push(...received.entries);
      if (received.kind === 'entries' && !received.isCurrent) continue; // later entries may close what these leave open
      const arrival = received.kind === 'live' ? received : { kind: received.kind, entries: read.splice(0) };
      for (const said of reply.accept(arrival)) onSaid(said);
    }
  } finally {
    arrivals.close();
  }
}

function refusalOf(error: unknown): Refusal {
  return error instanceof ParleyError ? error : refusal('INTERNAL', messageOf(error));
}

/** The tail up to the post, with entries appended since it was read. */
async function before(
  daemon: GatewayPort,
  conversation: string,
  tail: readonly Entry[],
  index: number,
): Promise<readonly Entry[]> {
  const next = (tail.at(-1)?.index ?? index - 1) + 1;
  const between = next < index ? await readLog(daemon, conversation, next, index) : [];
  return [...tail.filter((entry) => entry.index < index), ...between];
}
