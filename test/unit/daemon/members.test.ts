import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Heard, Peers } from '../../../src/bus/index.ts';
import { PeerMonitor } from '../../../src/daemon/cluster/peer-monitor.ts';
import { Router } from '../../../src/daemon/cluster/router.ts';

/** What a daemon makes of hearing the others, and of not hearing them. */
describe('the other daemons', () => {
  const SILENCE_MS = 1_000;
  const running: PeerMonitor[] = [];
  afterEach(() => {
    for (const members of running.splice(0)) members.stop();
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  function meet(heard: Heard = { kind: 'nobody' }) {
    vi.useFakeTimers();
    const gone: [string, boolean][] = [];
    /** What is said to all comes back, as long as the line is up. */
    const line = { isUp: true, lose: () => {}, answersAfterMs: 0 };
    const peers: Peers = {
      async ask() {
        if (line.answersAfterMs === Number.POSITIVE_INFINITY) return new Promise(() => {});
        await vi.advanceTimersByTimeAsync(line.answersAfterMs);
        return heard;
      },
      tell() {},
      tellAll(_, body) {
        if (line.isUp) members.heard((body as { daemon: string }).daemon, false);
      },
      listen: async () => {},
      onLost(listener) {
        line.lose = listener;
      },
    };
    const onGone = (daemon: string, handedOver: boolean) => void gone.push([daemon, handedOver]);
    const onBack = vi.fn();
    const onUnlike = vi.fn();
    const told = { likeness: { agents: '1', tools: '2' }, onUnlike };
    const members: PeerMonitor = new PeerMonitor({
      ...{ daemon: 'a', peers, silenceMs: SILENCE_MS, onGone, onBack },
      ...told,
    });
    members.start();
    running.push(members);
    const router = new Router('a', { members, peers } as never, SILENCE_MS);
    return { members, router, gone, line, onBack, onUnlike };
  }

  it('are said, once each, to have been told something else, in which parts; older ones say nothing of it', () => {
    const { members, onUnlike } = meet();
    members.heard('same', true, { agents: '1', tools: '2', new: '3' });
    members.heard('older', true);
    for (let n = 0; n < 3; n++) members.heard('other', n === 0, { agents: '1', tools: '9' });
    expect(onUnlike.mock.calls).toEqual([['other', ['tools']]]);
  });

  it.each<Heard>([{ kind: 'nobody' }, { kind: 'silent' }])(
    'are there again as soon as they are heard, though an answer was %o: they may have been connecting again',
    async (heard) => {
      const { members, router, gone, line } = meet(heard);
      members.heard('b', false);
      line.answersAfterMs = SILENCE_MS / 2;
      await router.ask('b', 'holds', { conversations: [] });
      expect([members.isSilent('b'), router.mayTakeOver('demo', { daemon: 'b', epoch: 1 })]).toEqual([
        true,
        true,
      ]);
      members.heard('b', false);
      expect([members.isSilent('b'), router.mayTakeOver('demo', { daemon: 'b', epoch: 1 })]).toEqual([
        false,
        false,
      ]);
      expect(members.others).toEqual(['b']);
      expect(gone).toEqual([]);
    },
  );

  it('are not waited for any longer when they fall silent while they are asked', async () => {
    const { members, router, gone, line } = meet();
    members.heard('b', false);
    line.answersAfterMs = Number.POSITIVE_INFINITY;
    const heard = router.ask('b', 'holds', { conversations: [] });
    await vi.advanceTimersByTimeAsync(SILENCE_MS * 1.5);
    expect(await Promise.race([heard, Promise.resolve('still waiting')])).toEqual({ kind: 'silent' });
    expect([members.isSilent('b'), gone]).toEqual([true, [['b', false]]]);
  });

  it('are not waited for when they leave while they are asked', async () => {
    const { members, router, line } = meet();
    members.heard('b', false);
    line.answersAfterMs = Number.POSITIVE_INFINITY;
    const heard = router.ask('b', 'holds', { conversations: [] });
    members.left('b');
    expect(await heard).toEqual({ kind: 'silent' });
  });

  it('are gone for good when they say that they leave, whatever comes late', () => {
    const { members, gone } = meet();
    members.heard('b', false);
    members.left('b');
    members.heard('b', false);
    expect([members.others, members.isSilent('b'), gone]).toEqual([[], true, [['b', true]]]);
  });

  it('are gone for now after half a silence, when the server knows nobody of that name', async () => {
    const { members, gone } = meet({ kind: 'nobody' });
    members.heard('b', false);
    await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.4);
    expect(gone).toEqual([]);
    await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.4);
    expect([members.others, members.isSilent('b'), gone]).toEqual([[], true, [['b', false]]]);
  });

  it.each([true, false])(
    'stay silent until they are heard again, for however long (heard before: %s)',
    async (isKnown) => {
      const { members, router } = meet({ kind: 'nobody' });
      if (isKnown) members.heard('b', false);
      else await router.ask('b', 'holds', { conversations: [] });
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 20);
      expect(router.mayTakeOver('demo', { daemon: 'b', epoch: 1 })).toBe(true);
      members.heard('b', false);
      expect(members.isSilent('b')).toBe(false);
    },
  );

  it('are not gone before a silence is over, when they are connected', async () => {
    for (const heard of [{ kind: 'silent' }, { kind: 'answered', body: {} }] as const) {
      const { members, gone } = meet(heard);
      members.heard('b', false);
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.9);
      expect([members.others, gone]).toEqual([['b'], []]);
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.6);
      expect([members.others, gone]).toEqual([[], [['b', false]]]);
    }
  });

  it('are not counted on any more after half a silence, though they may be there', () => {
    const { members, gone } = meet({ kind: 'silent' });
    members.heard('b', false);
    members.heard('c', false);
    vi.advanceTimersByTime(SILENCE_MS * 0.4);
    expect(members.awake).toEqual(['b', 'c']);
    members.heard('c', false);
    vi.advanceTimersByTime(SILENCE_MS * 0.2);
    expect([members.others, members.awake, gone]).toEqual([['b', 'c'], ['c'], []]);
    members.left('c');
    expect(members.awake).toEqual([]);
  });

  it('are gone for now after a silence', () => {
    const { members, gone } = meet({ kind: 'silent' });
    members.heard('b', false);
    vi.advanceTimersByTime(SILENCE_MS * 1.5);
    expect([members.others, gone]).toEqual([[], [['b', false]]]);
    members.heard('b', false);
    expect(members.others).toEqual(['b']);
  });

  describe('while the line of this daemon is down', () => {
    it('are not taken for gone, nor for a silence after a long outage is over', () => {
      const { members, gone, line, onBack } = meet();
      members.heard('b', false);
      line.isUp = false;
      vi.advanceTimersByTime(SILENCE_MS * 5);
      expect(members.others).toEqual(['b']);
      expect(onBack).not.toHaveBeenCalled();
      line.isUp = true;
      vi.advanceTimersByTime(SILENCE_MS);
      expect(onBack).toHaveBeenCalledTimes(1);
      expect([members.others, gone]).toEqual([['b'], []]);
    });

    it('are not taken for gone behind a long outage that was found out at its end', async () => {
      const { members, gone, line } = meet({ kind: 'silent' });
      members.heard('b', false);
      line.isUp = false;
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 1.4);
      line.lose();
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.05);
      line.isUp = true;
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.5);
      expect([members.others, gone]).toEqual([['b'], []]);
    });

    it('are gone a silence after they were heard, though it was down for a moment just before', async () => {
      const { members, gone, line } = meet({ kind: 'silent' });
      members.heard('b', false);
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.8);
      line.lose();
      line.isUp = false;
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.4);
      expect(gone).toEqual([]);
      line.isUp = true;
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.25);
      expect([members.others, gone]).toEqual([[], [['b', false]]]);
    });

    it('are gone when they are silent all the while, though one short outage follows the other', () => {
      const { members, gone, line } = meet({ kind: 'silent' });
      members.heard('b', false);
      for (let outage = 0; outage < 3; outage++) {
        line.lose();
        vi.advanceTimersByTime(SILENCE_MS * 0.7);
      }
      expect([members.others, gone]).toEqual([[], [['b', false]]]);
    });

    it('are gone when they are not heard for a silence after it is back', () => {
      const { members, gone, line } = meet();
      members.heard('b', false);
      members.heard('c', false);
      line.isUp = false;
      vi.advanceTimersByTime(SILENCE_MS * 5);
      line.isUp = true;
      vi.advanceTimersByTime(SILENCE_MS / 2);
      members.heard('c', false);
      vi.advanceTimersByTime(SILENCE_MS * 0.9);
      expect([members.others, gone]).toEqual([['c'], [['b', false]]]);
    });

    it('are not suspected for an answer that does not come', async () => {
      const { members, router, line } = meet({ kind: 'silent' });
      members.heard('b', false);
      line.isUp = false;
      line.answersAfterMs = SILENCE_MS / 2;
      await router.ask('b', 'holds', { conversations: [] });
      expect(members.isSilent('b')).toBe(false);
    });

    it('are not suspected because nobody answers for them yet, however short it was down', async () => {
      const { members, router, line } = meet({ kind: 'nobody' });
      members.heard('b', false);
      line.lose();
      await router.ask('b', 'holds', { conversations: [] });
      vi.advanceTimersByTime(SILENCE_MS / 4); // it hears itself again
      await router.ask('b', 'holds', { conversations: [] });
      expect(members.isSilent('b')).toBe(false);
      vi.advanceTimersByTime(SILENCE_MS);
      await router.ask('b', 'holds', { conversations: [] });
      expect(members.isSilent('b')).toBe(true);
    });
  });

  describe('when this daemon was frozen', () => {
    /** Nothing runs for a while; then what has come is read, before any timer. */
    function freeze(members: PeerMonitor, milliseconds: number) {
      const ran = performance.now.bind(performance);
      vi.spyOn(performance, 'now').mockImplementation(() => ran() + milliseconds);
      members.thawed(milliseconds);
    }

    it.each<Heard>([{ kind: 'silent' }, { kind: 'nobody' }])(
      'have more than half a silence to be heard in, and no whole one, where they answer %o',
      async (heard) => {
        const { members, gone, onBack } = meet(heard);
        members.heard('b', false);
        members.heard('c', false);
        freeze(members, SILENCE_MS * 10);
        await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.55);
        expect([members.others, gone]).toEqual([['b', 'c'], []]);
        members.heard('c', false);
        await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.35);
        expect([members.others, gone]).toEqual([['c'], [['b', false]]]);
        expect(onBack).toHaveBeenCalledTimes(1);
      },
    );

    it('are not believed gone at once, though nobody answers for them: they may be connecting again', async () => {
      const { members, router } = meet({ kind: 'nobody' });
      freeze(members, SILENCE_MS * 10);
      await router.ask('b', 'holds', { conversations: [] });
      expect(members.isSilent('b')).toBe(false);
    });

    it('are not taken for gone while its line carries nothing, found out or not', async () => {
      for (const isFoundOut of [false, true]) {
        const { members, gone, line } = meet({ kind: 'silent' });
        members.heard('b', false);
        freeze(members, SILENCE_MS * 10);
        line.isUp = false;
        if (isFoundOut) line.lose();
        await vi.advanceTimersByTimeAsync(SILENCE_MS * 3);
        expect([members.others, gone]).toEqual([['b'], []]);
      }
    });

    it('have that time again when its line turns out to be down behind the freeze', async () => {
      const { members, gone, line } = meet({ kind: 'nobody' });
      members.heard('b', false);
      freeze(members, SILENCE_MS * 10);
      line.isUp = false;
      line.lose();
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.3);
      line.isUp = true;
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.6);
      expect([members.others, gone]).toEqual([['b'], []]);
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.4);
      expect([members.others, gone]).toEqual([[], [['b', false]]]);
    });

    it('are given the time to come back that they have after a long outage, when that was before', async () => {
      const { members, gone, line } = meet({ kind: 'nobody' });
      members.heard('b', false);
      line.lose();
      line.isUp = false;
      freeze(members, SILENCE_MS * 10);
      line.isUp = true;
      await vi.advanceTimersByTimeAsync(SILENCE_MS * 0.9);
      expect([members.others, gone]).toEqual([['b'], []]);
    });
  });

  it('work on nothing whose newest append names no claimant: it was moved here from another store', () => {
    const { router } = meet({ kind: 'nobody' });
    const claimant = { daemon: 'b', epoch: 1 };
    const mayTakeOver = () => router.mayTakeOver('demo', claimant);
    expect(mayTakeOver()).toBe(false);
    router.seen('demo', { status: null, sequence: 3, length: 3 });
    expect(mayTakeOver()).toBe(true);
    router.seen('demo', { status: { claim: claimant, hasOutstandingWork: false }, sequence: 4, length: 4 });
    expect(mayTakeOver()).toBe(false);
  });
});
