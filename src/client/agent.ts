import { ANY, decodeOffer, type Subjects, type TurnOffer } from '../bus/index.ts';
import type { NatsConnection } from '../bus/nats/index.ts';
import { createIdSource, messageOf, ParleyError } from '../kernel/index.ts';
import type { AgentConnection, AgentHandler, RunningAgent } from './agent-turn.ts';
import { OfferedTurn } from './offered-turn.ts';

/**
 * Runs an agent: a function receives each turn that the daemon offers, and returns its answer.
 *
 * CLIENT-AGENT-1 One instance of a slug takes a turn: the instances share a queue group.
 * CLIENT-AGENT-2 Every offer that was taken ends with a final or a failure, unless the daemon withdraws it.
 * CLIENT-AGENT-3 A new offer of a turn that still runs here replaces the older one, whose signal aborts.
 */

export async function runAgent(
  at: AgentConnection,
  slug: string,
  handler: AgentHandler,
): Promise<RunningAgent> {
  const subject = subjectOf(at.subjects, slug);
  const newId = createIdSource();
  const instance = newId();
  const turns = new Map<string, OfferedTurn>();
  const running = new Set<Promise<void>>();

  const take = (offer: TurnOffer, traceparent: string | undefined): void => {
    turns.get(offer.turnId)?.abort('the turn was offered again'); // CLIENT-AGENT-3
    const turn = new OfferedTurn(at, offer, newId, traceparent);
    turns.set(offer.turnId, turn);
    const work: Promise<void> = turn.run(handler).finally(() => {
      running.delete(work);
      if (turns.get(offer.turnId) === turn) turns.delete(offer.turnId);
    });
    running.add(work);
  };
  const subscription = at.connection.subscribe(subject, {
    queue: slug, // CLIENT-AGENT-1
    callback: (error, message) => {
      if (error) return;
      const decoded = decodeOffer(message.data);
      // Before the answer: the daemon may withdraw the offer as soon as it has that.
      if (decoded.ok) take(decoded.offer, message.headers?.get('traceparent') || undefined);
      const answer = decoded.ok ? { accepted: true, instance } : { accepted: false, reason: decoded.reason };
      message.respond(JSON.stringify(answer));
    },
  });
  const abortAll = () => {
    for (const turn of turns.values()) turn.abort('the client was closed');
  };
  at.closing.addEventListener('abort', abortAll, { once: true });
  await flush(at.connection);
  return {
    instance,
    async stop() {
      if (!at.connection.isClosed()) await subscription.drain();
      await Promise.all(running);
      at.closing.removeEventListener('abort', abortAll);
    },
  };
}

function subjectOf(subjects: Subjects, slug: string): string {
  if (slug === ANY) {
    throw new ParleyError('INVALID_NAME', 'an agent cannot be every agent', { hint: 'name one slug' });
  }
  return subjects.turn(slug);
}

async function flush(connection: NatsConnection): Promise<void> {
  try {
    await connection.flush();
  } catch (cause) {
    throw new ParleyError('NATS_DISCONNECTED', `cannot listen for turns: ${messageOf(cause)}`, {
      hint: 'check the connection to the NATS server',
      cause,
    });
  }
}
