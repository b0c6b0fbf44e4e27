import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ApiAnswer, ApiRequest } from '../../../src/bus/index.ts';
import type { Reply } from '../../../src/conversation/index.ts';
import type { Answered, OwnerLocation } from '../../../src/daemon/cluster/router.ts';
import { SharedApi, type SharedApiParts } from '../../../src/daemon/cluster/shared-api.ts';
import { SharedPosts, type SharedPostsParts } from '../../../src/daemon/cluster/shared-posts.ts';
import { moved } from '../../../src/daemon/conversations/ownership.ts';
import type { HandedPost } from '../../../src/daemon/ingress/posts.ts';

/** From the daemon that reads the stream to the one that works on the conversation; the daemons are in the test's hands. */
describe('a post that is handed over', () => {
  let leaving: AbortController;
  beforeEach(() => {
    vi.useFakeTimers();
    leaving = new AbortController();
  });
  afterEach(() => void vi.useRealTimers());

  const HERE: OwnerLocation = { kind: 'here' };
  const THERE: OwnerLocation = { kind: 'elsewhere', claim: { daemon: 'b', epoch: 1 } };
  const DONE: Answered<'post'> = { kind: 'answered', body: { outcome: { kind: 'done' } } };
  const NOT_HERE: Answered<'post'> = { kind: 'answered', body: { outcome: null } };
  const SILENT: Answered<'post'> = { kind: 'silent' };
  const POST = {
    id: 'm1',
    content: 'hello',
    delivery: 'steer',
    author: { id: 'alice', name: 'alice' },
  } as const;
  const HANDED: HandedPost = {
    conversation: 'demo',
    publisher: 'alice',
    position: { stream: 's1', sequence: 7 },
    command: { type: 'post', post: POST, ingressSequence: 7 },
  };

  interface Given {
    readonly places?: readonly OwnerLocation[];
    readonly answers?: readonly Answered<'post'>[];
    /** Other daemons that may work on a conversation without an owner. */
    readonly others?: readonly string[];
    readonly holds?: boolean;
    readonly submit?: () => Promise<Reply>;
  }

  function posts({ places = [HERE], answers = [DONE], others = [], holds = false, ...given }: Given = {}) {
    const happened: string[] = [];
    let [place, answer] = [0, 0];
    const parts = {
      daemon: 'a',
      workers: {
        holds: () => holds,
        willHold: async () => holds,
        isBusy: () => true,
        async submit() {
          happened.push('decided');
          return given.submit?.() ?? { kind: 'done' };
        },
      },
      router: {
        locate: async () => places[Math.min(place++, places.length - 1)],
        noteReleased: () => void happened.push('is free'),
        async ask(daemon: string, verb: string) {
          happened.push(`asked ${daemon} to ${verb}`);
          return answers[Math.min(answer++, answers.length - 1)];
        },
      },
      monitor: { responsive: others },
      logs: {
        newest: async () => null,
      },
      runtime: { reach: () => undefined },
      leaving: leaving.signal,
    };
    const shared = new SharedPosts(parts as unknown as SharedPostsParts);
    const handOver = async () => {
      const over = shared.handOver(HANDED);
      over.catch(() => undefined);
      await vi.advanceTimersByTimeAsync(10_000);
      return over;
    };
    return { shared, happened, handOver };
  }

  it('goes to the daemon that works on its conversation', async () => {
    const { handOver, happened } = posts({ places: [THERE] });
    expect(await handOver()).toEqual({ kind: 'done' });
    expect(happened).toEqual(['asked b to post']);
  });

  it('is decided here when that daemon answers that it does not work there', async () => {
    const { handOver, happened } = posts({ places: [THERE, HERE], answers: [NOT_HERE] });
    await handOver();
    expect(happened).toEqual(['asked b to post', 'is free', 'decided']);
  });

  it('is offered to one daemon when its conversation has no owner; if that one declines, it is decided here', async () => {
    const found = ['b', 'c', 'd'].map(async (other) => {
      const { handOver, happened } = posts({ others: [other], answers: [NOT_HERE] });
      await handOver();
      expect(happened.at(-1)).toBe('decided');
      return happened.length;
    });
    expect(new Set(await Promise.all(found))).toEqual(new Set([1, 2])); // some conversations stay here
  });

  it('is decided here when this daemon works on its conversation', async () => {
    const { handOver, happened } = posts({ others: ['b', 'c', 'd'], holds: true });
    await handOver();
    expect(happened).toEqual(['decided']);
  });

  it('follows its conversation when that moves meanwhile', async () => {
    const submit = () => Promise.reject(moved('demo'));
    const { handOver, happened } = posts({ places: [HERE, THERE], submit });
    await handOver();
    expect(happened).toEqual(['decided', 'asked b to post']);
  });

  it('that its owner refuses is refused, and a fault of its owner is one of the hand-over', async () => {
    const refusal = { code: 'UNKNOWN_AGENT', message: 'no' };
    const refused: Answered<'post'> = { kind: 'answered', body: { outcome: { kind: 'refused', refusal } } };
    expect(await posts({ places: [THERE], answers: [refused] }).handOver()).toEqual({
      kind: 'refused',
      refusal,
    });
    const failed: Answered<'post'> = {
      kind: 'answered',
      body: { outcome: { kind: 'failed', refusal: { code: 'LOG_CORRUPT', message: 'damaged' } } },
    };
    await expect(posts({ places: [THERE], answers: [failed] }).handOver()).rejects.toMatchObject({
      code: 'LOG_CORRUPT',
    });
  });

  it('is not sent again if it exceeds a message between daemons', async () => {
    const { handOver } = posts({ places: [THERE], answers: [{ kind: 'too-large', reason: 'no' }] });
    await expect(handOver()).rejects.toMatchObject({ code: 'TOO_LARGE' });
  });

  it('is not decided when the answer of its owner is invalid: that one may work on it', async () => {
    const { handOver, happened } = posts({ places: [THERE], answers: [{ kind: 'invalid', reason: 'no' }] });
    await expect(handOver()).rejects.toMatchObject({ code: 'INVALID_ANSWER' });
    expect(happened).toEqual(['asked b to post']);
  });

  it('whose owner ended is handed over again', async () => {
    const { handOver, happened } = posts({ places: [THERE, HERE], answers: [SILENT] });
    await handOver();
    expect(happened).toEqual(['asked b to post', 'decided']);
  });

  it('stays in the stream when this daemon leaves', async () => {
    const { handOver } = posts({ places: [THERE], answers: [SILENT] });
    leaving.abort();
    await expect(handOver()).rejects.toMatchObject({ code: 'CONVERSATION_MOVED' });
  });

  it('from another daemon is decided here, unless a third one works on its conversation', async () => {
    const message = { conversation: 'demo', publisher: 'alice', position: HANDED.position, post: POST };
    const mine = posts();
    expect(await mine.shared.receive(message)).toEqual({ outcome: { kind: 'done', isAtWork: true } });
    const theirs = posts({ places: [THERE] });
    expect(await theirs.shared.receive(message)).toEqual({ outcome: null });
    const failing = posts({ submit: () => Promise.reject(new Error('no space')) });
    expect(await failing.shared.receive(message)).toMatchObject({
      outcome: { kind: 'failed', refusal: { code: 'INTERNAL', message: 'no space' } },
    });
    expect([mine.happened, theirs.happened]).toEqual([['decided'], []]);
  });

  it('leaves its conversation at work until its log says that nothing is outstanding', async () => {
    const busy: Answered<'post'> = { kind: 'answered', body: { outcome: { kind: 'done', isAtWork: true } } };
    const { shared, handOver } = posts({ places: [THERE], answers: [busy] });
    expect(shared.isAtWork('demo')).toBe(false);
    await handOver();
    expect(shared.isAtWork('demo')).toBe(true); // and reads the log
    await vi.advanceTimersByTimeAsync(0);
    expect(shared.isAtWork('demo')).toBe(false);
  });
});

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
