import { decodeDeadLetter, encodeDeadLetter } from '../../../src/bus/dead-letter.ts';
import type { Bus, DeadLetter, DeletedPosts, Delivery } from '../../../src/bus/index.ts';
import type { Posts } from '../../../src/daemon/ingress/posts.ts';
import type { Refusal } from '../../../src/kernel/index.ts';

interface Refused {
  readonly publisher: string;
  readonly conversation: string;
  readonly refused: Refusal;
}

/** A stream that delivers what is posted at once, or when `release` is called. */
export function handBus(
  options: { readonly now?: () => number; readonly maxPayload?: number },
  posts: () => Posts,
) {
  const maxPayload = options.maxPayload ?? 1_000_000;
  let sequence = 0;
  const newest = new Map<string, number>();
  const dead: Refused[] = [];
  const erased: DeletedPosts[] = [];
  const held: Delivery[] = [];
  const letters = new Map<number, DeadLetter>();
  const control: { holding: boolean; removing?: Error | undefined; erasing?: Error } = { holding: false };
  const delivery = (
    publisher: string,
    conversation: string,
    body: string | object | Uint8Array,
    more: Partial<Delivery> = {},
  ): Delivery => {
    sequence += 1;
    newest.set(conversation, sequence);
    const bytes =
      body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    return {
      position: { stream: 's1', sequence },
      takenAt: (options.now ?? Date.now)(),
      fallbackId: `in-${sequence}`,
      ...{ publisher, conversation, body: bytes, messageId: null },
      ...more,
    };
  };
  const bus: Bus = {
    url: 'nats://127.0.0.1:1',
    maxPayload,
    isConnected: true,
    startIngress: async () => undefined,
    stopIngress: async () => undefined,
    ingressLag: async () => null,
    async post(publisher, conversation, body, { isNameBound } = {}) {
      const made = delivery(publisher, conversation, body, isNameBound === undefined ? {} : { isNameBound });
      if (control.holding) held.push(made);
      else await posts().deliver(made); // delivered even before the stream has said where it is
      return made.position;
    },
    lastPost: async (conversation) => ({ stream: 's1', sequence: newest.get(conversation) ?? 0 }),
    ingressEnd: async () => ({ stream: 's1', sequence }),
    publishEntries: () => undefined,
    publishLive: () => undefined,
    publishAudit: () => undefined,
    async publishDead({ publisher, conversation, position, body, fallbackId, isNameBound }, refused, id) {
      const at = dead.push({ publisher, conversation, refused });
      const place = { sequence: at, at: '2026-11-22T05:00:00.000Z', publisher, conversation };
      const origin = {
        ...{ id: id || fallbackId, ingress: position },
        ...(isNameBound !== undefined && { isNameBound }),
      };
      letters.set(at, decodeDeadLetter(place, encodeDeadLetter(refused, body, origin, maxPayload)));
      return at;
    },
    publishRefusedRuns: async () => undefined,
    deadLetters: {
      ingressStream: 'PARLEY_IN',
      async page({ before = Number.POSITIVE_INFINITY, limit, code }) {
        const older = [...letters.values()].reverse().filter(({ sequence }) => sequence < before);
        const found = older.filter((letter) => code === undefined || letter.code === code);
        const page = found.slice(0, limit);
        return { letters: page, next: found.length > limit ? (page.at(-1)?.sequence ?? null) : null };
      },
      get: async (at) => letters.get(at) ?? null,
      async remove(at) {
        if (control.removing) throw control.removing;
        letters.delete(at);
      },
    },
    eraser: {
      leftOf: async () => [],
      async erase(deleted, isSettled) {
        erased.push(deleted);
        if (control.erasing) throw control.erasing;
        return { posts: 1, deadLetters: 0, isWhole: isSettled(deleted) };
      },
      expireDeadLetters: async () => 0,
    },
    claim: async () => undefined,
    serve: async () => undefined,
    share: () => {
      throw new Error('there are no other daemons here');
    },
    isAgentConnected: async () => true,
    openTurn: () => {
      throw new Error('no agent lives elsewhere here');
    },
    close: async () => undefined,
  };
  return { bus, dead, letters, erased, held, control, delivery };
}
