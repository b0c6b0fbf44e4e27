import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Bus, Heard } from '../../../src/bus/index.ts';
import { Membership, type MemberWork } from '../../../src/daemon/cluster/membership.ts';
import type { PeerMonitor } from '../../../src/daemon/cluster/peer-monitor.ts';
import { Router } from '../../../src/daemon/cluster/router.ts';
import { SharedApi, type SharedApiParts } from '../../../src/daemon/cluster/shared-api.ts';
import type { SharedLogs } from '../../../src/persistence/index.ts';

const logged: object[] = [];
const log = {
  info: () => undefined,
  warn: (fields: object) => void logged.push(fields),
  error: () => undefined,
};
beforeEach(() => void logged.splice(0));

/** PEER-CONTRACT-1, PEER-CONTRACT-2 */
describe('a message from another daemon', () => {
  type Hear = (verb: string, body: unknown) => Promise<unknown>;
  const open: Membership[] = [];
  afterEach(async () => {
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
    const work = {
      workers: {
        held: [],
        storedRows: async () => [],
        willHold: async (id: unknown) => asked.push(id) > 0,
      },
      watchers: { textsOf: () => texts },
      ingress: {},
      leaving: new AbortController().signal,
    };
    await share.join(work as unknown as MemberWork);
    open.push(share);
    return hear;
  }

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
    expect(await handle('conversation', { conversation: 'demo' })).toMatchObject({
      ok: false,
      refusal: { code: 'INTERNAL', message: expect.stringMatching(/daemon b.*answer: missing/) },
    });
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
