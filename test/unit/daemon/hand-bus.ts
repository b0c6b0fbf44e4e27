import type { Bus, DeletedPosts, Delivery } from '../../../src/bus/index.ts';
import { createMemoryBus } from '../../../src/bus/memory/index.ts';
import type { DaemonFacts } from '../../../src/daemon/api/status.ts';
import type { Posts } from '../../../src/daemon/ingress/posts.ts';
import type { Refusal } from '../../../src/kernel/index.ts';

interface Refused {
  readonly publisher: string;
  readonly conversation: string;
  readonly refused: Refusal;
}

export const FACTS: DaemonFacts = {
  ...{ daemon: null, version: '0.0.0', pid: 1, startedAt: '2026-11-22T05:00:00.000Z', store: 'file' },
  ...{ data: '/data', nats: 'nats://127.0.0.1:1', http: null },
};

/** The bus in memory, which delivers what is posted at once, or when the test does; its parts can fail. */
export function handBus(
  { now = Date.now, maxPayload = 1_000_000 }: { readonly now?: () => number; readonly maxPayload?: number },
  posts: () => Posts,
) {
  const memory = createMemoryBus({ now, maxPayload, stream: 's1' });
  const dead: Refused[] = [];
  const erased: DeletedPosts[] = [];
  const held: Delivery[] = [];
  const control: { holding: boolean; removing?: Error | undefined; erasing?: Error } = { holding: false };
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
    async post(publisher, conversation, body, { origin: _, ...marks } = {}) {
      const made = delivery(publisher, conversation, body, marks);
      if (control.holding) held.push(made);
      else await posts().deliver(made); // delivered even before the stream has said where it is
      return made.position;
    },
    async publishDead(post, refused, id) {
      dead.push({ publisher: post.publisher, conversation: post.conversation, refused });
      return memory.bus.publishDead(post, refused, id);
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
  return { bus, dead, letters: memory.letters, erased, held, control, delivery };
}
