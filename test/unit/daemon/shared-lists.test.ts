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
