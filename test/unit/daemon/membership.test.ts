import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '../../../src/bus/index.ts';
import { Membership, type MemberWork } from '../../../src/daemon/cluster/membership.ts';
import type { NewestAppend, SharedLogs } from '../../../src/persistence/index.ts';

/** TOOL-FILES-1: what a daemon finds out right before it does something that no log can refuse. */
describe('whether a daemon may still act in a conversation', () => {
  const TIMEOUT_MS = 1_000;
  const shares: Membership[] = [];
  afterEach(() => {
    for (const share of shares.splice(0)) share.leave();
    vi.restoreAllMocks();
  });

  const claimOf = (daemon: string): NewestAppend => ({
    status: { claim: { daemon, epoch: 1 }, hasOutstandingWork: true },
    sequence: 1,
    length: 1,
  });

  /** `a`, whose log gives these answers one after the other; the last one again and again. */
  function ask(...answers: (NewestAppend | null | Error)[]) {
    let looks = 0;
    const newest = vi.fn(async () => {
      const answer = answers[Math.min(looks++, answers.length - 1)] ?? null;
      if (answer instanceof Error) throw answer;
      return answer;
    });
    const bus = { share: () => ({ peers: { tellAll: () => undefined } }) } as unknown as Bus;
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const share = new Membership({
      ...{ daemon: 'a', bus, failureTimeoutMs: TIMEOUT_MS, fingerprint: {}, log },
      logs: { newest } as unknown as SharedLogs,
    });
    shares.push(share);
    const stop = new AbortController();
    return { newest, stop, mayAct: () => share.ownership.mayAct('demo', stop.signal) };
  }

  it.each<[string, NewestAppend | null, boolean]>([
    ['while its own claim is the newest', claimOf('a'), true],
    ['but not after the claim of another daemon', claimOf('b'), false],
    ['but not in a log that was deleted', null, false],
  ])('is read from the log: it may %s', async (_, newest, may) => {
    expect(await ask(newest).mayAct()).toBe(may);
  });

  it('waits until the log can be read', async () => {
    const { mayAct, newest } = ask(new Error('no server'), new Error('no server'), claimOf('b'));
    expect(await mayAct()).toBe(false);
    expect(newest).toHaveBeenCalledTimes(3);
  });

  it('is read again when the answer took so long that peers may have taken over', async () => {
    const { mayAct, newest } = ask(claimOf('a'), claimOf('b'));
    const now = performance.now();
    vi.spyOn(performance, 'now')
      .mockReturnValueOnce(now)
      .mockReturnValue(now + TIMEOUT_MS / 2);
    expect(await mayAct()).toBe(false);
    expect(newest).toHaveBeenCalledTimes(2);
  });

  it('is not checked after an abort, which also ends the wait', async () => {
    const { mayAct, stop } = ask(new Error('no server'));
    const waiting = mayAct();
    stop.abort();
    expect(await waiting).toBe(true);
  });
});

describe('a daemon that was frozen', () => {
  it('detects the freeze before it processes the messages that arrived meanwhile', async () => {
    type Hear = (verb: string, body: unknown) => Promise<unknown>;
    let hear: Hear = async () => undefined;
    const peers = {
      listen: async (handler: Hear) => {
        hear = handler;
      },
      tellAll: () => undefined,
      onLost: () => undefined,
    };
    const bus = { share: () => ({ peers, startIngress: async () => ({ stop: async () => undefined }) }) };
    const said: string[] = [];
    const say = (_: object, line: string) => void said.push(line);
    const share = new Membership({
      ...{ daemon: 'a', bus: bus as unknown as Bus, failureTimeoutMs: 60_000, fingerprint: {} },
      log: { info: say, warn: say, error: say },
      logs: { all: async () => new Map() } as unknown as SharedLogs,
    });
    const work = {
      workers: { held: [], storedRows: async () => [] },
      ingress: {},
      leaving: new AbortController().signal,
    };
    await share.join(work as unknown as MemberWork);
    const now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 600_000);
    void hear('alive', { daemon: 'b', isNew: false });
    expect(said).toEqual([expect.stringMatching(/was frozen/)]);
    clock.mockRestore();
    share.leave();
    await share.stopIngress();
  });
});
