import { describe, expect, it } from 'vitest';
import type { ApiAnswer, ApiRequest } from '../../../src/bus/index.ts';
import { SharedApi, type SharedApiParts } from '../../../src/daemon/cluster/shared-api.ts';

const MOVED: ApiAnswer = { ok: false, refusal: { code: 'CONVERSATION_MOVED', message: 'elsewhere' } };
const POSTED: ApiAnswer = { ok: true, body: { index: 0 } };

/** A daemon beside `b`. `heard`: the answers of `b`, in order; then it is silent, and this daemon may take over. */
function beside(owner: 'here' | 'elsewhere', heard: readonly ApiAnswer[], own: ApiAnswer) {
  const sent: { conversation: string | null; request: ApiRequest }[] = [];
  const handled: ApiRequest[] = [];
  const leaving = new AbortController();
  let left = [...heard];
  const claim = { daemon: 'b', epoch: 1 };
  const parts = {
    router: {
      locate: async () =>
        owner === 'elsewhere' && sent.length === 0 ? { kind: 'elsewhere', claim } : { kind: 'here' },
      async ask(_: string, __: string, body: (typeof sent)[number]) {
        sent.push(body);
        const [answer, ...rest] = left;
        left = rest;
        return answer ? { kind: 'answered', body: { answer } } : { kind: 'silent' };
      },
      noteReleased: () => undefined,
    },
    monitor: { responsive: ['b'] },
    bus: { deadLetters: { get: async () => ({ conversation: 'demo' }) } },
    leaving: leaving.signal,
  } as unknown as SharedApiParts;
  const handle = async (request: ApiRequest) => {
    handled.push(request);
    return own;
  };
  const api = new SharedApi({ handle, room: 1_000, daemon: { newId: () => 'new' } } as never, parts);
  const ask = (endpoint: string, body: object) => api.handle({ endpoint, publisher: 'alice', body });
  return { ask, sent, handled, leaving };
}

const post = { conversation: 'demo', content: 'hello' };

describe('a post by request, where several daemons share the work', () => {
  it('goes to the owner with an id, and is repeated with that id when the owner does not answer (SHARED-API-5)', async () => {
    const { ask, sent, handled } = beside('elsewhere', [], POSTED);
    expect(await ask('post', post)).toEqual(POSTED);
    expect(sent.map(({ request }) => request.body)).toEqual([{ ...post, id: 'new' }]);
    expect(handled.map(({ body }) => body)).toEqual([{ ...post, id: 'new' }]);
  });

  it('keeps the id that it has', async () => {
    const { ask, sent } = beside('elsewhere', [POSTED], MOVED);
    expect(await ask('post', { ...post, id: 'mine' })).toEqual(POSTED);
    expect(sent.map(({ request }) => request.body)).toEqual([{ ...post, id: 'mine' }]);
  });

  it('that fits no message is refused here, and the owner does not count as silent', async () => {
    const { ask, sent } = beside('elsewhere', [], POSTED);
    await ask('post', { ...post, content: 'x'.repeat(2_000) });
    expect(sent).toEqual([]);
  });

  it('of a dead letter goes to the owner of its conversation', async () => {
    const { ask, sent } = beside('elsewhere', [POSTED], MOVED);
    expect(await ask('dead-retry', { sequence: 7 })).toEqual(POSTED);
    expect(sent).toMatchObject([{ conversation: 'demo', request: { endpoint: 'dead-retry' } }]);
  });

  it('into a conversation without an owner is passed on by a daemon that leaves (SHARED-API-7)', async () => {
    const { ask, sent, leaving } = beside('here', [POSTED], MOVED);
    leaving.abort();
    expect(await ask('post', { ...post, id: 'mine' })).toEqual(POSTED);
    expect(sent).toMatchObject([{ conversation: null, request: { endpoint: 'post' } }]);
  });
});
