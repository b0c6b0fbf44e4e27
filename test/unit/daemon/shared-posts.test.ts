import { afterEach, describe, expect, it } from 'vitest';
import type { IngressDelivery, StreamPosition, Token } from '../../../src/bus/index.ts';
import type { Place } from '../../../src/daemon/sharing/router.ts';
import { SharedPosts, type SharedPostsParts } from '../../../src/daemon/sharing/shared-posts.ts';
import { moved } from '../../../src/daemon/sharing/tenure.ts';

/** From a token to durable entries; the daemon around it is in the test's hands. */
describe('a token that a daemon takes', () => {
  const leaving = new AbortController();
  const happened: string[] = [];
  afterEach(() => void happened.splice(0));

  const SUSPECT = {};

  const token = (sequence: number, isRepeated = false): Token => ({
    ...{ stream: 's1', sequence, isRepeated },
    ...{ conversation: 'demo', handle: `ack-${sequence}` },
  });

  interface Given {
    /** Sequences of this conversation in the stream. */
    readonly stream: readonly number[];
    /** The newest post that the log holds. */
    readonly inLog?: number;
    readonly place?: () => Place;
    readonly adopts?: boolean;
    readonly deliver?: (delivery: IngressDelivery) => Promise<void>;
  }

  function posts({ stream, inLog = 0, place = () => ({ kind: 'here' }), adopts = true, deliver }: Given) {
    const deliveryOf = (sequence: number) => ({ position: { stream: 's1', sequence } });
    const ingress = {
      next: async (_: string, after: number, upTo: number) => {
        const sequence = stream.find((one) => one > after && one <= upTo);
        return sequence === undefined ? null : deliveryOf(sequence);
      },
      at: async (sequence: number) => (stream.includes(sequence) ? deliveryOf(sequence) : null),
      keep: () => undefined,
      acknowledge: ({ sequence }: Token) => void happened.push(`acknowledged ${sequence}`),
      giveBack: ({ sequence }: Token) => void happened.push(`gave ${sequence} back`),
    };
    const parts = {
      ingress: () => ingress,
      posts: {
        async deliver(delivery: IngressDelivery, suspect: unknown = null) {
          await deliver?.(delivery);
          happened.push(`kept ${delivery.position.sequence}${suspect === SUSPECT ? ', a suspect' : ''}`);
        },
      },
      suspects: {
        async suspect({ sequence }: StreamPosition, isRepeated: boolean) {
          happened.push(`${isRepeated ? 'guarded' : 'looked up'} ${sequence}`);
          return isRepeated ? SUSPECT : null;
        },
      },
      workers: {
        holds: () => true,
        current: async () => ({ state: { ingress: { stream: 's1', sequence: inLog } } }),
      },
      router: {
        place: async () => place(),
        isFree: () => void happened.push('is free'),
        ask: async (daemon: string, verb: string) => {
          happened.push(`asked ${daemon} to ${verb}`);
          return { kind: 'answered', body: { taken: adopts } };
        },
      },
      silenceMs: 1_000,
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      leaving: leaving.signal,
    };
    return new SharedPosts(parts as unknown as SharedPostsParts);
  }

  it('brings all of its conversation up to it into the log, in order, and is acknowledged then', async () => {
    await posts({ stream: [3, 5, 8, 9], inLog: 3 }).take(token(8));
    expect(happened).toEqual(['looked up 5', 'kept 5', 'kept 8', 'acknowledged 8']);
  });

  it('comes before another of its conversation, one at a time', async () => {
    const shared = posts({ stream: [1, 2] });
    await Promise.all([shared.take(token(1)), shared.take(token(2))]);
    expect(happened.filter((one) => one.startsWith('kept'))).toEqual(['kept 1', 'kept 2']);
  });

  it('that comes again has its post guarded, as one that may have ended a daemon', async () => {
    await posts({ stream: [4] }).take(token(4, true));
    expect(happened).toEqual(['guarded 4', 'kept 4, a suspect', 'acknowledged 4']);
  });

  it('whose post the log has is delivered once more, which changes nothing, and is acknowledged', async () => {
    await posts({ stream: [4], inLog: 9 }).take(token(4, true));
    expect(happened).toEqual(['guarded 4', 'kept 4, a suspect', 'acknowledged 4']);
  });

  it('of a post that was purged is acknowledged', async () => {
    await posts({ stream: [], inLog: 9 }).take(token(4));
    expect(happened).toEqual(['acknowledged 4']);
  });

  const THERE: Place = { kind: 'there', claim: { daemon: 'b', epoch: 1 } };

  it('goes to the daemon that works on its conversation, which acknowledges it', async () => {
    await posts({ stream: [4], place: () => THERE }).take(token(4));
    expect(happened).toEqual(['asked b to adopt']);
  });

  it('is dealt with here when that daemon says that it does not work there', async () => {
    await posts({ stream: [4], place: () => THERE, adopts: false }).take(token(4));
    expect(happened).toEqual(['asked b to adopt', 'is free', 'kept 4', 'acknowledged 4']);
  });

  it('goes after its conversation when that moves meanwhile', async () => {
    let looks = 0;
    const place = (): Place => (looks++ === 0 ? { kind: 'here' } : THERE);
    await posts({ stream: [4], place, deliver: () => Promise.reject(moved('demo')) }).take(token(4));
    expect(happened).toEqual(['asked b to adopt']);
  });

  it('is given back, and not acknowledged, when its post could not be kept', async () => {
    await posts({ stream: [4], deliver: () => Promise.reject(new Error('no server')) }).take(token(4));
    expect(happened).toEqual(['gave 4 back']);
  });
});
