import type { Bus, DeletedPosts, Delivery } from '../../../src/bus/index.ts';
import type { DaemonFacts } from '../../../src/daemon/api/status.ts';
import type { Refusal } from '../../../src/kernel/index.ts';
import { createMemoryBus } from '../../../src/testing/simulation.ts';

interface Refused {
  readonly publisher: string;
  readonly conversation: string;
  readonly refused: Refusal;
}

export const FACTS: DaemonFacts = {
  ...{ daemon: null, version: '0.0.0', pid: 1, startedAt: '2026-11-22T05:00:00.000Z', store: 'file' },
  ...{ data: '/data', nats: 'nats://127.0.0.1:1', http: null },
};

/** The bus in memory, whose parts can fail. */
export function handBus({
  now = Date.now,
  maxPayload = 1_000_000,
}: {
  readonly now?: () => number;
  readonly maxPayload?: number;
}) {
  const memory = createMemoryBus({ now, maxPayload, stream: 's1' });
  const dead: Refused[] = [];
  const erased: DeletedPosts[] = [];
  const control: { removing?: Error | undefined; erasing?: Error } = {};
  const delivery = (
    publisher: string,
    conversation: string,
    body: string | object | Uint8Array,
    more: Partial<Delivery> = {},
  ): Delivery => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return memory.delivery(publisher, conversation, body instanceof Uint8Array ? body : Buffer.from(text), {
      ...more,
    });
  };
  const bus: Bus = {
    ...memory.bus,
    async publishDead(post, refused, id, mayStore) {
      dead.push({ publisher: post.publisher, conversation: post.conversation, refused });
      return memory.bus.publishDead(post, refused, id, mayStore);
    },
    deadLetters: {
      ...memory.bus.deadLetters,
      async remove(at) {
        if (control.removing) throw control.removing;
        await memory.bus.deadLetters.remove(at);
      },
    },
    eraser: {
      ...memory.bus.eraser,
      async erase(deleted, isSettled) {
        erased.push(deleted);
        if (control.erasing) throw control.erasing;
        return { posts: 1, deadLetters: 0, isWhole: isSettled(deleted) };
      },
    },
  };
  return { bus, dead, letters: memory.letters, erased, control, delivery };
}
