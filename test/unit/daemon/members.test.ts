import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Heard, Peers } from '../../../src/bus/index.ts';
import { Members } from '../../../src/daemon/sharing/members.ts';
import { Router } from '../../../src/daemon/sharing/router.ts';

/** What a daemon makes of hearing the others, and of not hearing them. */
describe('the other daemons', () => {
  const SILENCE_MS = 1_000;
  const running: Members[] = [];
  afterEach(() => {
    for (const members of running.splice(0)) members.stop();
    vi.useRealTimers();
  });

  function meet(heard: Heard = { kind: 'nobody' }) {
    vi.useFakeTimers();
    const gone: [string, boolean][] = [];
    const peers: Peers = { ask: async () => heard, tell() {}, tellAll() {}, listen: async () => {} };
    const onGone = (daemon: string, handedOver: boolean) => void gone.push([daemon, handedOver]);
    const members = new Members({ daemon: 'a', peers, silenceMs: SILENCE_MS, onGone });
    members.start();
    running.push(members);
    const unused = undefined as never;
    const router = new Router('a', { logs: unused, workers: unused, members, peers }, SILENCE_MS);
    return { members, router, gone };
  }

  it.each<Heard>([{ kind: 'nobody' }, { kind: 'silent' }])(
    'are there again as soon as they are heard, though an answer was %o: they may have been connecting again',
    async (heard) => {
      const { members, router, gone } = meet(heard);
      members.heard('b', false);
      await router.ask('b', 'holds', {});
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

  it('are gone for good when they say that they leave, whatever comes late', () => {
    const { members, gone } = meet();
    members.heard('b', false);
    members.left('b');
    members.heard('b', false);
    expect([members.others, members.isSilent('b'), gone]).toEqual([[], true, [['b', true]]]);
  });

  it('are gone for now after a silence', () => {
    const { members, gone } = meet();
    members.heard('b', false);
    vi.advanceTimersByTime(SILENCE_MS * 1.5);
    expect([members.others, gone]).toEqual([[], [['b', false]]]);
    members.heard('b', false);
    expect(members.others).toEqual(['b']);
  });
});
