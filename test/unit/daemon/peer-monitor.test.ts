import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Heard, Peers } from '../../../src/bus/index.ts';
import { PeerMonitor } from '../../../src/daemon/cluster/peer-monitor.ts';
import { NO_ANSWER, Router } from '../../../src/daemon/cluster/router.ts';

/** The failure detector. */
describe('peers', () => {
  const TIMEOUT_MS = 1_000;
  const running: PeerMonitor[] = [];
  afterEach(() => {
    for (const monitor of running.splice(0)) monitor.stop();
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  function meet(heard: Heard = { kind: 'no-responder' }) {
    vi.useFakeTimers();
    const gone: [string, boolean][] = [];
    /** Broadcasts return to their sender while the connection is up. */
    const line = { isUp: true, lose: () => {}, answersAfterMs: 0 };
    const peers: Peers = {
      async ask() {
        if (line.answersAfterMs === Number.POSITIVE_INFINITY) return new Promise(() => {});
        await vi.advanceTimersByTimeAsync(line.answersAfterMs);
        return heard;
      },
      tell() {},
      tellAll(_, body) {
        if (line.isUp) monitor.noteHeartbeat((body as { daemon: string }).daemon, false);
      },
      listen: async () => {},
      onLost(listener) {
        line.lose = listener;
      },
    };
    const onGone = (daemon: string, handedOver: boolean) => void gone.push([daemon, handedOver]);
    const onBack = vi.fn();
    const onConfigDifference = vi.fn();
    const told = { fingerprint: { agents: '1', tools: '2' }, onConfigDifference };
    const monitor: PeerMonitor = new PeerMonitor({
      ...{ daemon: 'a', peers, failureTimeoutMs: TIMEOUT_MS, onGone, onBack },
      ...told,
    });
    monitor.start();
    running.push(monitor);
    const log = { warn: vi.fn() };
    const router = new Router('a', { monitor, peers, log } as never, TIMEOUT_MS);
    return { monitor, router, log, gone, line, onBack, onConfigDifference };
  }

  /** A daemon beside b, whose heartbeat has come. */
  function besideB(heard?: Heard) {
    const met = meet(heard);
    met.monitor.noteHeartbeat('b', false);
    return met;
  }

  it('with a different configuration are reported once with the parts that differ; an older version sends none', () => {
    const { monitor, onConfigDifference } = meet();
    monitor.noteHeartbeat('same', true, { agents: '1', tools: '2', new: '3' });
    monitor.noteHeartbeat('older', true);
    for (let n = 0; n < 3; n++) monitor.noteHeartbeat('other', n === 0, { agents: '1', tools: '9' });
    expect(onConfigDifference.mock.calls).toEqual([['other', ['tools']]]);
  });

  it.each<Heard>([{ kind: 'no-responder' }, { kind: 'silent' }])(
    'are alive again at the next heartbeat after the answer %o, since they may have been reconnecting',
    async (heard) => {
      const { monitor, router, log, gone, line } = besideB(heard);
      line.answersAfterMs = TIMEOUT_MS / 2;
      await router.ask('b', 'holds', { conversations: [] });
      expect(log.warn.mock.calls).toEqual([[{ daemon: 'b', verb: 'holds', answer: heard.kind }, NO_ANSWER]]);
      expect([monitor.isFailed('b'), router.mayTakeOver('demo', { daemon: 'b', epoch: 1 })]).toEqual([
        true,
        true,
      ]);
      expect([monitor.others, monitor.suspected]).toEqual([[], ['b']]);
      monitor.noteHeartbeat('b', false);
      expect([monitor.isFailed('b'), router.mayTakeOver('demo', { daemon: 'b', epoch: 1 })]).toEqual([
        false,
        false,
      ]);
      expect([monitor.others, monitor.suspected]).toEqual([['b'], []]);
      expect(gone).toEqual([]);
    },
  );

  it('that fail during a request end the request at once', async () => {
    const { monitor, router, gone, line } = besideB();
    line.answersAfterMs = Number.POSITIVE_INFINITY;
    const heard = router.ask('b', 'holds', { conversations: [] });
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 1.5);
    expect(await Promise.race([heard, Promise.resolve('still waiting')])).toEqual({ kind: 'silent' });
    expect([monitor.isFailed('b'), gone]).toEqual([true, [['b', false]]]);
  });

  it('that leave during a request end the request at once', async () => {
    const { monitor, router, line } = besideB();
    line.answersAfterMs = Number.POSITIVE_INFINITY;
    const heard = router.ask('b', 'holds', { conversations: [] });
    monitor.noteLeft('b');
    expect(await heard).toEqual({ kind: 'silent' });
  });

  it('that announce their leave are gone for good, also after a late heartbeat', () => {
    const { monitor, gone } = besideB();
    monitor.noteLeft('b');
    monitor.noteHeartbeat('b', false);
    expect([monitor.others, monitor.isFailed('b'), gone]).toEqual([[], true, [['b', true]]]);
  });

  it('are gone after half the failure timeout when the server does not know them', async () => {
    const { monitor, gone } = besideB({ kind: 'no-responder' });
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.4);
    expect(gone).toEqual([]);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.4);
    expect([monitor.others, monitor.isFailed('b'), gone]).toEqual([[], true, [['b', false]]]);
  });

  it.each([true, false])('stay failed until their next heartbeat (known before: %s)', async (isKnown) => {
    const { monitor, router } = meet({ kind: 'no-responder' });
    if (isKnown) monitor.noteHeartbeat('b', false);
    else await router.ask('b', 'holds', { conversations: [] });
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 20);
    expect(router.mayTakeOver('demo', { daemon: 'b', epoch: 1 })).toBe(true);
    monitor.noteHeartbeat('b', false);
    expect(monitor.isFailed('b')).toBe(false);
  });

  it('that are connected are not gone before the failure timeout is over', async () => {
    for (const heard of [{ kind: 'silent' }, { kind: 'answered', body: {} }] as const) {
      const { monitor, gone } = besideB(heard);
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.9);
      expect([monitor.others, gone]).toEqual([['b'], []]);
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.6);
      expect([monitor.others, gone]).toEqual([[], [['b', false]]]);
    }
  });

  it('are not responsive after half the failure timeout, although they count as alive', () => {
    const { monitor, gone } = besideB({ kind: 'silent' });
    monitor.noteHeartbeat('c', false);
    vi.advanceTimersByTime(TIMEOUT_MS * 0.4);
    expect(monitor.responsive).toEqual(['b', 'c']);
    monitor.noteHeartbeat('c', false);
    vi.advanceTimersByTime(TIMEOUT_MS * 0.2);
    expect([monitor.others, monitor.responsive, gone]).toEqual([['b', 'c'], ['c'], []]);
    monitor.noteLeft('c');
    expect(monitor.responsive).toEqual([]);
  });

  it('are gone after the failure timeout, until their next heartbeat', () => {
    const { monitor, gone } = besideB({ kind: 'silent' });
    vi.advanceTimersByTime(TIMEOUT_MS * 1.5);
    expect([monitor.others, gone]).toEqual([[], [['b', false]]]);
    monitor.noteHeartbeat('b', false);
    expect(monitor.others).toEqual(['b']);
  });

  describe('while this daemon is disconnected', () => {
    it('are not declared gone, nor for one failure timeout after a long outage', () => {
      const { monitor, gone, line, onBack } = besideB();
      line.isUp = false;
      vi.advanceTimersByTime(TIMEOUT_MS * 5);
      expect(monitor.others).toEqual(['b']);
      expect(onBack).not.toHaveBeenCalled();
      line.isUp = true;
      vi.advanceTimersByTime(TIMEOUT_MS);
      expect(onBack).toHaveBeenCalledTimes(1);
      expect([monitor.others, gone]).toEqual([['b'], []]);
    });

    it('are not declared gone after a long outage that was noticed at its end', async () => {
      const { monitor, gone, line } = besideB({ kind: 'silent' });
      line.isUp = false;
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 1.4);
      line.lose();
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.05);
      line.isUp = true;
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.5);
      expect([monitor.others, gone]).toEqual([['b'], []]);
    });

    it('are gone one failure timeout after their heartbeat, in spite of a short outage just before', async () => {
      const { monitor, gone, line } = besideB({ kind: 'silent' });
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.8);
      line.lose();
      line.isUp = false;
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.4);
      expect(gone).toEqual([]);
      line.isUp = true;
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.25);
      expect([monitor.others, gone]).toEqual([[], [['b', false]]]);
    });

    it('are gone when they send no heartbeat during several short outages', () => {
      const { monitor, gone, line } = besideB({ kind: 'silent' });
      for (let outage = 0; outage < 3; outage++) {
        line.lose();
        vi.advanceTimersByTime(TIMEOUT_MS * 0.7);
      }
      expect([monitor.others, gone]).toEqual([[], [['b', false]]]);
    });

    it('are gone without a heartbeat for one failure timeout after the reconnection', () => {
      const { monitor, gone, line } = besideB();
      monitor.noteHeartbeat('c', false);
      line.isUp = false;
      vi.advanceTimersByTime(TIMEOUT_MS * 5);
      line.isUp = true;
      vi.advanceTimersByTime(TIMEOUT_MS / 2);
      monitor.noteHeartbeat('c', false);
      vi.advanceTimersByTime(TIMEOUT_MS * 0.9);
      expect([monitor.others, gone]).toEqual([['c'], [['b', false]]]);
    });

    it('are not suspected for a missing answer', async () => {
      const { monitor, router, line } = besideB({ kind: 'silent' });
      line.isUp = false;
      line.answersAfterMs = TIMEOUT_MS / 2;
      await router.ask('b', 'holds', { conversations: [] });
      expect(monitor.isFailed('b')).toBe(false);
    });

    it('are not suspected because the server does not know them yet, even after a short outage', async () => {
      const { monitor, router, line } = besideB({ kind: 'no-responder' });
      line.lose();
      await router.ask('b', 'holds', { conversations: [] });
      vi.advanceTimersByTime(TIMEOUT_MS / 4); // it hears itself again
      await router.ask('b', 'holds', { conversations: [] });
      expect(monitor.isFailed('b')).toBe(false);
      vi.advanceTimersByTime(TIMEOUT_MS);
      await router.ask('b', 'holds', { conversations: [] });
      expect(monitor.isFailed('b')).toBe(true);
    });
  });

  describe('when this daemon was frozen', () => {
    /** Nothing runs for a while; then what has come is read, before any timer. */
    function freeze(monitor: PeerMonitor, milliseconds: number) {
      const ran = performance.now.bind(performance);
      vi.spyOn(performance, 'now').mockImplementation(() => ran() + milliseconds);
      monitor.resumed(milliseconds);
    }

    it.each<Heard>([{ kind: 'silent' }, { kind: 'no-responder' }])(
      'have more than half the failure timeout for a heartbeat, and less than all of it, when they answer %o',
      async (heard) => {
        const { monitor, gone, onBack } = besideB(heard);
        monitor.noteHeartbeat('c', false);
        freeze(monitor, TIMEOUT_MS * 10);
        await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.55);
        expect([monitor.others, gone]).toEqual([['b', 'c'], []]);
        monitor.noteHeartbeat('c', false);
        await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.35);
        expect([monitor.others, gone]).toEqual([['c'], [['b', false]]]);
        expect(onBack).toHaveBeenCalledTimes(1);
      },
    );

    it('are not declared gone at once when the server does not know them, since they may be reconnecting', async () => {
      const { monitor, router } = meet({ kind: 'no-responder' });
      freeze(monitor, TIMEOUT_MS * 10);
      await router.ask('b', 'holds', { conversations: [] });
      expect(monitor.isFailed('b')).toBe(false);
    });

    it('are not declared gone while the connection is dead, noticed or not', async () => {
      for (const isFoundOut of [false, true]) {
        const { monitor, gone, line } = besideB({ kind: 'silent' });
        freeze(monitor, TIMEOUT_MS * 10);
        line.isUp = false;
        if (isFoundOut) line.lose();
        await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 3);
        expect([monitor.others, gone]).toEqual([['b'], []]);
      }
    });

    it('have that time again when the connection turns out to be lost after the freeze', async () => {
      const { monitor, gone, line } = besideB({ kind: 'no-responder' });
      freeze(monitor, TIMEOUT_MS * 10);
      line.isUp = false;
      line.lose();
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.3);
      line.isUp = true;
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.6);
      expect([monitor.others, gone]).toEqual([['b'], []]);
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.4);
      expect([monitor.others, gone]).toEqual([[], [['b', false]]]);
    });

    it('have the time to reconnect of a long outage when that was before the freeze', async () => {
      const { monitor, gone, line } = besideB({ kind: 'no-responder' });
      line.lose();
      line.isUp = false;
      freeze(monitor, TIMEOUT_MS * 10);
      line.isUp = true;
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.9);
      expect([monitor.others, gone]).toEqual([['b'], []]);
    });
  });

  it('do not own a log whose newest append names no claimant, since it was copied from another store', () => {
    const { router } = meet({ kind: 'no-responder' });
    const claimant = { daemon: 'b', epoch: 1 };
    const mayTakeOver = () => router.mayTakeOver('demo', claimant);
    expect(mayTakeOver()).toBe(false);
    router.noteNewest('demo', { status: null, sequence: 3, length: 3 });
    expect(mayTakeOver()).toBe(true);
    router.noteNewest('demo', {
      status: { claim: claimant, hasOutstandingWork: false },
      sequence: 4,
      length: 4,
    });
    expect(mayTakeOver()).toBe(false);
  });
});
