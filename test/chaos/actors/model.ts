import { type FakeReply, type FakeRequest, startFakeProvider } from '../../support/fake-provider.ts';
import { replyTo, type ScenarioMessage } from '../scenario.ts';

/** A model provider on loopback that answers by the scenario, and fails on demand. */
export interface ModelActor {
  /** For `baseURL`. */
  readonly url: string;
  readonly requests: number;
  misbehave(how: Misbehaviour): void;
  /** Ends the answers that hang. */
  heal(): void;
  close(): Promise<void>;
}

type Misbehaviour = 'hang' | 'error' | 'busy' | 'drop';

const REFUSALS = { error: [500, 'the provider failed'], busy: [429, 'too many requests'] } as const;
/** Between two words. Long enough that kills interrupt answers. */
const WORD_MS = 15;

export async function createModelActor(): Promise<ModelActor> {
  let mood: Misbehaviour | null = null;
  let requests = 0;
  const hanging = new Set<() => void>();
  const reply = async ({ json }: FakeRequest): Promise<FakeReply> => {
    requests += 1;
    if (mood === 'hang') {
      await new Promise<void>((resolve) => hanging.add(resolve));
      return { drop: 'before-headers' };
    }
    if (mood === 'error' || mood === 'busy') {
      const [status, message] = REFUSALS[mood];
      return { status, body: { error: { message, type: 'chaos' } } };
    }
    const { text, calls } = replyTo(json.messages as readonly ScenarioMessage[]);
    return {
      ...(text && { text }),
      // Providers repeat their ids, and so does this one.
      toolCalls: calls.map((call) => ({ name: call.name, arguments: JSON.stringify(call.arguments) })),
      finishReason: calls.length > 0 ? 'tool_calls' : 'stop',
      delayMs: WORD_MS,
      ...(mood === 'drop' && { drop: 'after-text' as const }),
    };
  };
  const provider = await startFakeProvider(reply, 0);
  const heal = () => {
    mood = null;
    for (const end of hanging) end();
    hanging.clear();
  };
  return {
    url: provider.url,
    get requests() {
      return requests;
    },
    misbehave(how) {
      mood = how;
    },
    heal,
    async close() {
      heal();
      await provider.close();
    },
  };
}
