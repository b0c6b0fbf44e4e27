import { expect, it } from 'vitest';
import { SharedApi, type SharedApiParts } from '../../../src/daemon/cluster/shared-api.ts';

const page = { conversations: [], next: null };

it.each([
  ['silent', { incomplete: ['other'] }],
  ['no-responder', { incomplete: ['other'] }],
  ['suspected', { incomplete: ['other'] }],
  ['answered', {}],
])('a list of conversations names a daemon that shares the work and was %s', async (kind, expected) => {
  const heard = kind === 'answered' ? { kind, body: { answer: { ok: true, body: page } } } : { kind };
  const api = { handle: async () => ({ ok: true, body: page }) };
  const parts = {
    monitor: {
      others: kind === 'suspected' ? [] : ['other'],
      suspected: kind === 'suspected' ? ['other'] : [],
    },
    router: { ask: async () => heard },
  };
  const shared = new SharedApi(api as never, parts as unknown as SharedApiParts);
  const request = { endpoint: 'conversations', body: {}, publisher: null };
  expect(await shared.handle(request)).toEqual({ ok: true, body: { ...page, ...expected } });
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
