import { describe, expect, it } from 'vitest';
import { mergeAgents } from '../../../src/daemon/api/agents.ts';
import { mergedApprovals } from '../../../src/daemon/api/approvals.ts';
import { SharedApi, type SharedApiParts } from '../../../src/daemon/cluster/shared-api.ts';
import { mergeConversations } from '../../../src/daemon/conversations/projections.ts';

describe('merged answers of several daemons', () => {
  it('show an agent as running if it runs at any daemon', () => {
    const agent = (slug: string, status: string) => ({ slug, name: slug, status });
    const own = { agents: [agent('pm', 'idle'), agent('dev', 'idle')] };
    const other = { agents: [agent('pm', 'running'), agent('dev', 'idle')] };
    const merged = { agents: [agent('pm', 'running'), agent('dev', 'idle')] };
    expect(mergeAgents([own, other])).toEqual(merged);
    expect(mergeAgents([other, own])).toEqual(merged);
    expect(mergeAgents([])).toEqual({ agents: [] });
  });

  it('keep the models and the default agent of the own answer', () => {
    const own = { agents: [], models: ['default'], default: 'lead' };
    expect(mergeAgents([own, own])).toEqual(own);
  });

  describe('list conversations', () => {
    const row = (id: string, length: number) => ({ id, length });
    const page = (next: string | null, ...conversations: { id: string; length: number }[]) => ({
      conversations,
      next,
    });

    it('contains each conversation once, by id, as the daemon with the longest log reports it', () => {
      const merged = mergeConversations(
        [page(null, row('b', 3), row('c', 1)), page(null, row('a', 2), row('b', 9))],
        {},
      );
      expect(merged).toEqual(page(null, row('a', 2), row('b', 9), row('c', 1)));
    });

    it('names a running turn also where the stored row, which has none, is as long', () => {
      const stored = { ...row('a', 5), activity: [{ for: 'approval' }] };
      const owned = { ...row('a', 5), activity: [{ status: 'running' }, { for: 'approval' }] };
      const [here, there] = [page(null, stored), page(null, owned)];
      expect(mergeConversations([here, there], {})).toEqual(there);
      expect(mergeConversations([there, here], {})).toEqual(there);
    });

    it('ends where the page of any daemon ends', () => {
      const merged = mergeConversations(
        [page('b', row('a', 1), row('b', 1)), page('d', row('c', 1), row('d', 1))],
        {},
      );
      expect(merged).toEqual(page('b', row('a', 1), row('b', 1)));
    });

    it('contains as many as requested, with the next cursor', () => {
      const pages = [page(null, row('a', 1), row('c', 1)), page(null, row('b', 1))];
      expect(mergeConversations(pages, { limit: 2 })).toEqual(page('b', row('a', 1), row('b', 1)));
      expect(mergeConversations(pages, { limit: 3 })).toMatchObject({ next: null });
    });

    it('contains as many as fit a message, with the next cursor', () => {
      const pages = [page(null, row('a', 1), row('c', 1)), page(null, row('b', 1))];
      const room = 2 * JSON.stringify(row('a', 1)).length + 2;
      expect(mergeConversations(pages, {}, room)).toEqual(page('b', row('a', 1), row('b', 1)));
    });
  });

  describe('list approvals', () => {
    const approval = (id: string, bytes = 10) => ({ approvalId: id, arguments: 'x'.repeat(bytes) });
    const sizeOf = (value: object) => Buffer.byteLength(JSON.stringify(value));

    it('contains each approval once and sums up what was left out', () => {
      const pages = [
        { approvals: [approval('1'), approval('2')], more: 3 },
        { approvals: [approval('2'), approval('3')] },
      ];
      const merged = { approvals: [approval('1'), approval('2'), approval('3')], more: 3 };
      expect(mergedApprovals(pages, 10_000)).toEqual(merged);
    });

    it('counts an approval that does not fit, and still shows a smaller one', () => {
      const pages = [
        { approvals: [approval('a', 4_000)] },
        { approvals: [approval('b', 4_000), approval('c')] },
      ];
      const merged = mergedApprovals(pages, 6_000);
      expect(merged).toEqual({ approvals: [approval('a', 4_000), approval('c')], more: 1 });
    });

    it('contains as many as fit, and at least one', () => {
      const pages = ['a', 'b', 'c'].map((name) => ({
        approvals: Array.from({ length: 20 }, (_, n) => approval(`${name}${n}`, 1_000)),
        more: 1,
      }));
      const merged = mergedApprovals(pages, 4_000);
      expect(sizeOf(merged.approvals)).toBeLessThanOrEqual(4_000);
      expect(merged.approvals.length).toBeGreaterThan(1);
      expect(merged.more).toBe(63 - merged.approvals.length);
      expect(mergedApprovals(pages, 10).approvals).toHaveLength(1);
    });
  });
});

const LISTS = [
  ['conversations', { conversations: [], next: null }],
  ['approvals', { approvals: [] }],
] as const;

it.each([
  ['silent', { incomplete: ['other'] }],
  ['no-responder', { incomplete: ['other'] }],
  ['suspected', { incomplete: ['other'] }],
  ['answered', {}],
])('a list names a daemon that shares the work and was %s', async (kind, expected) => {
  for (const [endpoint, page] of LISTS) {
    const heard = kind === 'answered' ? { kind, body: { answer: { ok: true, body: page } } } : { kind };
    const api = { handle: async () => ({ ok: true, body: page }), room: 1_000 };
    const parts = {
      monitor: {
        others: kind === 'suspected' ? [] : ['other'],
        suspected: kind === 'suspected' ? ['other'] : [],
      },
      router: { ask: async () => heard },
    };
    const shared = new SharedApi(api as never, parts as unknown as SharedApiParts);
    const request = { endpoint, body: {}, publisher: null };
    expect(await shared.handle(request)).toEqual({ ok: true, body: { ...page, ...expected } });
  }
});

it('a request that exceeds a message between daemons, or its answer, is refused as too large', async () => {
  const heard = { kind: 'too-large', reason: 'the request has 2 bytes; the broker carries 1' };
  const router = {
    locate: async () => ({ kind: 'elsewhere', claim: { daemon: 'b', epoch: 1 } }),
    ask: async () => heard,
  };
  const api = { handle: () => Promise.reject(new Error('not asked')) };
  const shared = new SharedApi(api as never, { router } as unknown as SharedApiParts);
  const request = { endpoint: 'seed', body: { conversation: 'demo' }, publisher: null };
  const refusal = { code: 'TOO_LARGE', message: heard.reason };
  expect(await shared.handle(request)).toMatchObject({ ok: false, refusal });
});

it('an answer to an approval goes to the owner of the conversation that its id names, and to no other daemon', async () => {
  const asked: unknown[] = [];
  const router = {
    locate: async (conversation: string) => ({
      kind: 'elsewhere',
      claim: { daemon: `owner of ${conversation}` },
    }),
    ask: async (daemon: string, verb: string) => {
      asked.push([daemon, verb]);
      return { kind: 'answered', body: { answer: { ok: true, body: { accepted: true } } } };
    },
  };
  const api = { handle: async () => ({ ok: false, refusal: { code: 'NOT_FOUND', message: 'none' } }) };
  const shared = new SharedApi(api as never, { router } as unknown as SharedApiParts);
  const answer = (approvalId: string) =>
    shared.handle({ endpoint: 'answer', body: { approvalId, answer: 'approve' }, publisher: null });
  expect(await answer('demo.4.0123456789abcdef')).toMatchObject({ ok: true });
  expect(asked).toEqual([['owner of demo', 'api']]);
  expect(await answer('nobody-asked')).toMatchObject({ ok: false });
  expect(asked).toHaveLength(1);
});
