import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus, Heard } from '../../../src/bus/index.ts';
import { FreezeWatch, Membership, type MemberWork } from '../../../src/daemon/cluster/membership.ts';
import type { PeerMonitor } from '../../../src/daemon/cluster/peer-monitor.ts';
import { Router } from '../../../src/daemon/cluster/router.ts';
import { SharedApi, type SharedApiParts } from '../../../src/daemon/cluster/shared-api.ts';
import type { NewestAppend, SharedLogs } from '../../../src/persistence/index.ts';
import { refusedWith } from '../../support/error-with.ts';
import { shortenWaits } from '../../support/short-waits.ts';

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
    shortenWaits();
    const { mayAct, newest } = ask(new Error('no server'), new Error('no server'), claimOf('b'));
    expect(await mayAct()).toBe(false);
    expect(newest).toHaveBeenCalledTimes(3);
  });

  it('is read again when the answer took so long that peers may have taken over', async () => {
    const { mayAct, newest } = ask(claimOf('b'));
    const now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now);
    newest.mockImplementationOnce(async () => {
      clock.mockReturnValue(now + TIMEOUT_MS / 2);
      return claimOf('a');
    });
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

const logged: object[] = [];
const lines: string[] = [];
const log = {
  info: () => undefined,
  warn: (fields: object, line: string) => {
    logged.push(fields);
    lines.push(line);
  },
  error: () => undefined,
};
beforeEach(() => {
  logged.splice(0);
  lines.splice(0);
});

/** PEER-CONTRACT-1, PEER-CONTRACT-2 */
describe('a message from another daemon', () => {
  type Hear = (verb: string, body: unknown) => Promise<unknown>;
  const open: Membership[] = [];
  afterEach(async () => {
    vi.restoreAllMocks();
    for (const share of open.splice(0)) {
      share.leave();
      await share.stopIngress();
    }
  });

  async function listen(asked: unknown[] = [], texts: readonly object[] = []): Promise<Hear> {
    let hear: Hear = async () => undefined;
    const peers = {
      listen: async (handler: Hear) => {
        hear = handler;
      },
      tellAll: () => undefined,
      onLost: () => undefined,
    };
    const bus = {
      share: () => ({ peers, startIngress: async () => ({ stop: async () => undefined }) }),
      maxPayload: 65_536,
    };
    const share = new Membership({
      ...{ daemon: 'a', bus: bus as unknown as Bus, failureTimeoutMs: 60_000, fingerprint: {}, log },
      logs: { all: async () => new Map() } as unknown as SharedLogs,
    });
    const willHold = async (id: unknown) => asked.push(id) > 0;
    const work = {
      workers: { held: [], storedRows: async () => [], willHold },
      watchers: { textsOf: () => texts },
      ingress: {},
      leaving: new AbortController().signal,
    };
    await share.join(work as unknown as MemberWork);
    open.push(share);
    return hear;
  }

  it('is processed by a daemon that was frozen only after it has detected the freeze', async () => {
    const hear = await listen();
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + 600_000);
    void hear('alive', { daemon: 'b', isNew: false });
    expect(lines).toEqual([expect.stringMatching(/was frozen/)]);
  });

  const author = { id: 'alice', name: 'alice' };
  const post = { conversation: 'demo', publisher: 'alice', position: { stream: 's', sequence: 1 } };

  it.each([
    [
      'post',
      { ...post, post: { id: 'm1', content: 'hi', delivery: 'later', author } },
      /^post.delivery: expected/,
    ],
    ['holds', { conversations: 'demo' }, /^conversations: expected a list/],
    ['api', { conversation: 'demo', request: 'post' }, /^request: expected an object/],
    ['alive', 'here', /^expected an object/],
    ['later', {}, /^there is no verb later$/],
  ])('is refused and logged when it is invalid: %s', async (verb, body, fault) => {
    const asked: unknown[] = [];
    const hear = await listen(asked);
    const answer = await hear(verb, body);
    expect(answer).toEqual({ invalid: expect.stringMatching(fault) });
    expect(logged).toEqual([{ verb, reason: (answer as { invalid: string }).invalid }]);
    expect(asked).toEqual([]);
  });

  it('gets the text so far of running calls, or none where they exceed a message', async () => {
    const textOf = (delta: string) => {
      const chunk = { turnId: 't', call: 'c', n: 3, from: 0, type: 'text', delta };
      return { agent: 'pm', chunk };
    };
    const asking = async (delta: string) => {
      const hear = await listen([], [{ kind: 'live', ...textOf(delta) }]);
      return hear('texts', { conversation: 'demo' });
    };
    expect(await asking('so far')).toEqual({ texts: [textOf('so far')] });
    expect(await asking('x'.repeat(40_000))).toEqual({ texts: [] });
  });

  it('is handled when it has fields of a later version or lacks fields of this version', async () => {
    const asked: unknown[] = [];
    const hear = await listen(asked);
    expect(await hear('holds', { conversations: ['demo'], since: 'later' })).toEqual({ held: ['demo'] });
    await hear('alive', { daemon: 'b' });
    expect(asked).toEqual(['demo']);
    expect(logged).toEqual([]);
  });
});

/** PEER-CONTRACT-1 */
describe('the answer of another daemon', () => {
  function routerThat(hears: Heard) {
    const suspected: string[] = [];
    const monitor = {
      onFailure: () => () => undefined,
      suspect: (daemon: string) => void suspected.push(daemon),
    } as unknown as PeerMonitor;
    const parts = { monitor, peers: { ask: async () => hears }, log };
    return { router: new Router('a', parts as never, 1_000), suspected };
  }

  it.each([
    [{ held: 'all' }, /^held: expected a list/],
    [{ invalid: 'conversations: missing' }, /^it refused the request: conversations: missing$/],
    [null, /^expected an object/],
  ])(
    'is not used when it is invalid (%j): it is logged, and that daemon does not count as failed',
    async (body, reason) => {
      const { router, suspected } = routerThat({ kind: 'answered', body });
      const answer = await router.ask('b', 'holds', { conversations: ['demo'] });
      expect(answer).toEqual({ kind: 'invalid', reason: expect.stringMatching(reason) });
      expect(logged).toMatchObject([{ daemon: 'b', verb: 'holds' }]);
      expect(suspected).toEqual([]);
    },
  );

  it('may have fields of a later version', async () => {
    const { router } = routerThat({ kind: 'answered', body: { held: ['demo'], since: 'later' } });
    expect(await router.ask('b', 'holds', { conversations: ['demo'] })).toMatchObject({
      kind: 'answered',
      body: { held: ['demo'] },
    });
  });

  function apiBeside(heard: object, body: unknown = null) {
    const released: string[] = [];
    const router = {
      ask: async () => heard,
      locate: async () => ({ kind: 'elsewhere', claim: { daemon: 'b', epoch: 1 } }),
      noteReleased: (conversation: string) => void released.push(conversation),
    };
    const parts = { router, monitor: { others: ['b'], suspected: [] }, log } as unknown as SharedApiParts;
    const api = new SharedApi({ handle: async () => ({ ok: true, body }) } as never, parts);
    return {
      released,
      handle: (endpoint: string, asked: object) => api.handle({ endpoint, publisher: null, body: asked }),
    };
  }

  it('is an error when it is invalid and about a conversation of that daemon: this daemon does not act instead', async () => {
    const { handle, released } = apiBeside({ kind: 'invalid', reason: 'answer: missing' });
    expect(await handle('conversation', { conversation: 'demo' })).toMatchObject(
      refusedWith('INTERNAL', /daemon b.*answer: missing/),
    );
    expect(released).toEqual([]);
  });

  it('is left out of a list when it is invalid, and the list names that daemon', async () => {
    const own = { conversations: [{ id: 'one', length: 1 }], next: null };
    const page = { conversations: [{ id: 7 }], next: null };
    const { handle } = apiBeside({ kind: 'answered', body: { answer: { ok: true, body: page } } }, own);
    expect(await handle('conversations', {})).toEqual({ ok: true, body: { ...own, incomplete: ['b'] } });
    expect(logged).toMatchObject([{ daemon: 'b', verb: 'conversations' }]);
  });

  it('is merged into a list unchanged when an older daemon sends rows with fewer fields', async () => {
    const own = { conversations: [], next: null };
    const older = { conversations: [{ id: 'one', length: 3, title: 'Hello' }], next: null };
    const { handle } = apiBeside({ kind: 'answered', body: { answer: { ok: true, body: older } } }, own);
    expect(await handle('conversations', {})).toEqual({ ok: true, body: older });
  });
});

describe('the freeze watch', () => {
  const LONGEST_GAP_MS = 1_000;
  let watch: FreezeWatch | undefined;
  afterEach(() => {
    watch?.stop();
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  function startWatch() {
    vi.useFakeTimers();
    const ran = performance.now.bind(performance);
    let frozenMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => ran() + frozenMs);
    const freezes: number[] = [];
    watch = new FreezeWatch(LONGEST_GAP_MS, (milliseconds) => void freezes.push(milliseconds));
    const freeze = (milliseconds: number) => {
      frozenMs += milliseconds;
    };
    return { watch, freezes, freeze };
  }

  it('reports a freeze once, with its duration', () => {
    const { freezes, freeze } = startWatch();
    vi.advanceTimersByTime(5 * LONGEST_GAP_MS);
    expect(freezes).toEqual([]);
    freeze(30_000);
    vi.advanceTimersByTime(5 * LONGEST_GAP_MS);
    expect(freezes).toEqual([expect.closeTo(30_000, -3)]);
  });

  it('ignores a shorter gap', () => {
    const { freezes, freeze } = startWatch();
    freeze(LONGEST_GAP_MS / 2);
    vi.advanceTimersByTime(LONGEST_GAP_MS);
    expect(freezes).toEqual([]);
  });

  it('detects a freeze before any timer runs when it is checked', () => {
    const { watch, freezes, freeze } = startWatch();
    freeze(30_000);
    watch.check();
    watch.check();
    expect(freezes).toHaveLength(1);
  });
});
