import type { ModelOutcome, ModelRequest, WireMessage } from '../../src/agents/index.ts';
import { type Bus, createSubjects } from '../../src/bus/index.ts';
import { createNatsBus, type NatsConnection, openNats } from '../../src/bus/nats/index.ts';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import { createRemoteModel, type RemoteModel } from '../../src/models/index.ts';

/**
 * Turns offered over a real server: the daemon's model on one side, the client library or a bare NATS client on the
 * other.
 */
export interface RemoteTurns {
  readonly model: RemoteModel;
  readonly client: ParleyClient;
  /** A connection without any code of Parley. */
  readonly program: NatsConnection;
  call(request?: ModelRequest, signal?: AbortSignal): Promise<ModelOutcome>;
  /** A bare NATS client that takes every offer and replies as given. */
  bareAgent(act: (offer: Offer, count: number) => void | Promise<void>): Promise<Offer[]>;
  /** The bare client publishes. */
  say(subject: string, body: object): void;
  close(): Promise<void>;
}

interface Offer {
  turnId: string;
  epoch: number;
  live: string;
  reply: string;
  control: string;
  heartbeatMs: number;
}

export const quiet = () => {};

/** The failure timeout of agents is 600 ms by default. */
export async function openRemoteTurns(url: string, silenceMs = 600, heartbeatMs = 50): Promise<RemoteTurns> {
  const log = { info: quiet, warn: quiet, error: quiet };
  const bus: Bus = await createNatsBus(await openNats({ url }), { subjects: createSubjects(), log });
  const openChannel = (agent: string) => bus.openTurn(agent);
  const model = createRemoteModel({ openChannel, silenceMs, heartbeatMs });
  const client = await connect({ url });
  const program = await openNats({ url });
  return {
    model,
    client,
    program,
    call: (request = requestOf(), signal = new AbortController().signal) =>
      model.call(request, { signal, onDelta: quiet }),
    async bareAgent(act) {
      const offers: Offer[] = [];
      program.subscribe('parley.agent.critic.turn', {
        queue: 'critic',
        callback: (_, message) => {
          const offer: Offer = message.json();
          offers.push(offer);
          message.respond(JSON.stringify({ accepted: true, instance: 'bare' }));
          void act(offer, offers.length);
        },
      });
      await program.flush();
      return offers;
    },
    say: (subject, body) => program.publish(subject, JSON.stringify(body)),
    async close() {
      model.close();
      await client.close();
      await program.close();
      await bus.close();
    },
  };
}

export const question: WireMessage = { role: 'user', content: 'Is it good?' };

export function requestOf(messages: readonly WireMessage[] = [question], turnId = 'turn-1'): ModelRequest {
  return {
    conversation: 'c',
    agent: 'critic',
    turnId,
    messages,
    tools: [],
    body: [new TextEncoder().encode(JSON.stringify({ messages }))],
    hash: 'h',
    headers: { 'x-parley-session': 'session-1' },
  };
}

/** The next request after the calls of an answer, each with its result. */
export function requestAfter(outcome: ModelOutcome, ...more: WireMessage[]): ModelRequest {
  if (outcome.kind !== 'answered') throw new Error(`it was ${outcome.kind}`);
  const calls = outcome.answer.toolCalls.map(({ name, arguments: given }, position) => ({
    id: `c1_${position}`,
    type: 'function' as const,
    function: { name, arguments: given },
  }));
  const results = calls.map(({ id, function: { name } }) => ({
    role: 'tool' as const,
    tool_call_id: id,
    content: `result of ${name}`,
  }));
  const { content } = outcome.answer;
  return requestOf([question, { role: 'assistant', content, tool_calls: calls }, ...results, ...more]);
}

export const answered = (content: string) => ({ kind: 'answered', answer: { content } });
