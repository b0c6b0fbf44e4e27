import { afterEach, describe, expect, it } from 'vitest';
import type { Delivery, StreamPosition, Token } from '../../../src/bus/index.ts';
import type { OwnerLocation } from '../../../src/daemon/cluster/router.ts';
import { SharedPosts, type SharedPostsParts } from '../../../src/daemon/cluster/shared-posts.ts';
import { moved } from '../../../src/daemon/conversations/ownership.ts';

/** From a token to durable entries; the daemon around it is in the test's hands. */
describe('a token', () => {
  const leaving = new AbortController();
  const happened: string[] = [];
  let lettersRead = 0;
  afterEach(() => {
    happened.splice(0);
    lettersRead = 0;
  });

  const SUSPECT = {};

  const token = (sequence: number, isRepeated = false): Token => ({
    ...{ stream: 's1', sequence, isRepeated, takenAt: sequence },
    ...{ conversation: 'demo', handle: `ack-${sequence}` },
  });

  interface Given {
    /** Sequences of this conversation in the stream. */
    readonly stream: readonly number[];
    /** The newest post that the log holds. */
    readonly inLog?: number;
    readonly place?: () => OwnerLocation;
    /** Of the other daemon; `invalid`: its answer cannot be read. */
    readonly adopts?: boolean | 'invalid';
    /** By sequence: when a dead letter was kept. */
    readonly letters?: Readonly<Record<number, number>>;
    readonly deliver?: (delivery: Delivery) => Promise<void>;
  }

  function posts({ stream, inLog = 0, place = () => ({ kind: 'here' }), ...given }: Given) {
    const { adopts = true, letters = {}, deliver } = given;
    const names = { conversation: 'demo', publisher: 'alice' };
    const deliveryOf = (sequence: number) => ({
      ...names,
      position: { stream: 's1', sequence },
      takenAt: sequence,
    });
    const ingress = {
      next: async (_: string, after: number, upTo: number) => {
        const sequence = stream.find((one) => one > after && one <= upTo);
        return sequence === undefined ? null : deliveryOf(sequence);
      },
      at: async (sequence: number) => (stream.includes(sequence) ? deliveryOf(sequence) : null),
      refusedFrom: async () => {
        lettersRead += 1;
        return new Map(Object.entries(letters).map(([sequence, at]) => [Number(sequence), at]));
      },
      keep: () => undefined,
      acknowledge: ({ sequence }: Token) => void happened.push(`acknowledged ${sequence}`),
      giveBack: ({ sequence }: Token) => void happened.push(`gave ${sequence} back`),
    };
    const parts = {
      ingress: () => ingress,
      posts: {
        async deliver(delivery: Delivery, suspect: unknown = null) {
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
        locate: async () => place(),
        noteReleased: () => void happened.push('is free'),
        ask: async (daemon: string, verb: string) => {
          happened.push(`asked ${daemon} to ${verb}`);
          if (adopts === 'invalid') return { kind: adopts, reason: 'taken: missing' };
          return { kind: 'answered', body: { taken: adopts } };
        },
      },
      failureTimeoutMs: 1_000,
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      leaving: leaving.signal,
    };
    return new SharedPosts(parts as unknown as SharedPostsParts);
  }

  it('is acknowledged after all posts of its conversation up to it are in the log, in order', async () => {
    await posts({ stream: [3, 5, 8, 9], inLog: 3 }).process(token(8));
    expect(happened).toEqual(['looked up 5', 'kept 5', 'kept 8', 'acknowledged 8']);
  });

  it('is processed before the next token of its conversation', async () => {
    const shared = posts({ stream: [1, 2] });
    await Promise.all([shared.process(token(1)), shared.process(token(2))]);
    expect(happened.filter((one) => one.startsWith('kept'))).toEqual(['kept 1', 'kept 2']);
  });

  it('that is redelivered has its post counted as one that may have crashed a daemon', async () => {
    await posts({ stream: [4] }).process(token(4, true));
    expect(happened).toEqual(['guarded 4', 'kept 4, a suspect', 'acknowledged 4']);
  });

  it('whose post is already in the log is delivered once more without effect and acknowledged', async () => {
    await posts({ stream: [4], inLog: 9 }).process(token(4, true));
    expect(happened).toEqual(['guarded 4', 'kept 4, a suspect', 'acknowledged 4']);
  });

  it('that arrives after a later one of its conversation delivers nothing again, not even a refused post', async () => {
    const shared = posts({ stream: [1, 2] });
    for (const sequence of [2, 1, 2]) await shared.process(token(sequence));
    const kept = ['looked up 1', 'kept 1', 'kept 2'];
    expect(happened).toEqual([...kept, 'acknowledged 2', 'acknowledged 1', 'acknowledged 2']);
  });

  it('of a stream that lost its newest posts and reuses their sequences delivers its post', async () => {
    const stream = [1, 2];
    const shared = posts({ stream, inLog: 2 });
    await shared.process(token(2));
    await shared.process({ ...token(2), takenAt: 7_000 });
    expect(happened).toEqual(['kept 2', 'acknowledged 2', 'kept 2', 'acknowledged 2']);
  });

  it('does not deliver posts that another daemon has refused; their dead letters are read once', async () => {
    const shared = posts({ stream: [2, 3, 4, 5], inLog: 2, letters: { 3: 10, 4: 10 } });
    await Promise.all([shared.process(token(5)), shared.process(token(4, true))]);
    expect(happened).toEqual(['kept 5', 'acknowledged 5', 'acknowledged 4']);
    expect(lettersRead).toBe(1);
  });

  it('that is redelivered for a refused post is acknowledged', async () => {
    await posts({ stream: [4], letters: { 4: 4 } }).process(token(4, true));
    await posts({ stream: [4], inLog: 9, letters: { 4: 4 } }).process(token(4, true));
    expect(happened).toEqual(['acknowledged 4', 'acknowledged 4']);
  });

  it('has its post ingested although an older dead letter names its sequence', async () => {
    await posts({ stream: [4], letters: { 4: 3 } }).process(token(4, true));
    expect(happened).toEqual(['guarded 4', 'kept 4, a suspect', 'acknowledged 4']);
  });

  it('leaves no state before the position up to which everything is settled', async () => {
    const shared = posts({ stream: [1, 2] });
    await shared.process(token(1));
    shared.settledUpTo({ stream: 's1', sequence: 1 });
    await shared.process(token(1));
    expect(happened).toEqual(['kept 1', 'acknowledged 1', 'kept 1', 'acknowledged 1']);
  });

  it('of a post that was purged is acknowledged', async () => {
    await posts({ stream: [], inLog: 9 }).process(token(4));
    expect(happened).toEqual(['acknowledged 4']);
  });

  const THERE: OwnerLocation = { kind: 'there', claim: { daemon: 'b', epoch: 1 } };

  it('goes to the daemon that owns its conversation, which acknowledges it', async () => {
    await posts({ stream: [4], place: () => THERE }).process(token(4));
    expect(happened).toEqual(['asked b to adopt']);
  });

  it('is processed here when that daemon answers that it does not own the conversation', async () => {
    await posts({ stream: [4], place: () => THERE, adopts: false }).process(token(4));
    expect(happened).toEqual(['asked b to adopt', 'is free', 'kept 4', 'acknowledged 4']);
  });

  it('is given back when the answer of the daemon that works on its conversation is invalid', async () => {
    await posts({ stream: [4], place: () => THERE, adopts: 'invalid' }).process(token(4));
    expect(happened).toEqual(['asked b to adopt', 'gave 4 back']);
  });

  it('follows its conversation when that moves meanwhile', async () => {
    let looks = 0;
    const place = (): OwnerLocation => (looks++ === 0 ? { kind: 'here' } : THERE);
    await posts({ stream: [4], place, deliver: () => Promise.reject(moved('demo')) }).process(token(4));
    expect(happened).toEqual(['asked b to adopt']);
  });

  it('is given back, and not acknowledged, when its post could not be stored', async () => {
    await posts({ stream: [4], deliver: () => Promise.reject(new Error('no server')) }).process(token(4));
    expect(happened).toEqual(['gave 4 back']);
  });
});
