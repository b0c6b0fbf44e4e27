import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import type { Token } from '../../../src/gateway/index.ts';
import { gatewaysWithPosts, messageEntry } from './support.ts';

/** `stopOnDisconnect`, step by step. With a daemon: `test/e2e/http-disconnect.long.test.ts`. */
describe('a client of `/v1` whose token has `stopOnDisconnect`', () => {
  const open = gatewaysWithPosts();

  async function start() {
    const tokens: Token[] = [{ role: 'post', secret: 's', publisher: 'alice', stopOnDisconnect: true }];
    const { daemon, gateway, faults } = await open({ tokens });
    const answers = daemon.answer;
    daemon.append('demo', 'Before');
    const log = () => daemon.logs.get('demo') ?? [];
    const add = (more: object) => {
      const next = { ...messageEntry(log().length, ''), agent: 'pm', turnId: 't', ...more } as Entry;
      log().push(next);
      daemon.publish('demo', { kind: 'entries', entries: [next] });
    };
    /** Resolves before a post is answered. */
    const held = { post: Promise.resolve() };
    daemon.answer = async (request) => {
      if (request.endpoint === 'stop') add({ type: 'agent-stopped' });
      if (request.endpoint === 'stop') add({ type: 'turn-ended', outcome: 'aborted' });
      if (request.endpoint !== 'post') return answers(request);
      const { id } = request.body as { id: string };
      const known = log().find((entry) => entry.id === id);
      const answer = known
        ? ({ ok: true, body: { index: known.index, agents: ['pm'], duplicate: true } } as const)
        : await answers(request);
      await held.post;
      return answer;
    };
    const ask = () => {
      const gone = new AbortController();
      const answer = fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'pm', messages: [{ role: 'user', content: 'Count' }] }),
        headers: {
          ...{ authorization: 'Bearer s', 'content-type': 'application/json' },
          ...{ 'x-parley-conversation': 'demo', 'idempotency-key': 'one' },
        },
        signal: gone.signal,
      }).then(
        () => 'answered',
        () => 'gone',
      );
      return {
        async leave() {
          gone.abort();
          expect(await answer).toBe('gone');
          await setTimeout(50); // until the daemon has noticed
        },
      };
    };
    const asked = (verb: string) => daemon.asked.filter(({ endpoint }) => endpoint === verb).length;
    const begin = () => add({ type: 'turn-started', trigger: [1] });
    return { ask, asked, begin, held, faults, daemon };
  }

  it('ends no turn for which a repetition of its request waits, until that leaves, too', async () => {
    const { ask, asked, begin, daemon } = await start();
    const first = ask();
    await expect.poll(() => asked('post')).toBe(1);
    begin();
    const second = ask();
    await expect.poll(() => daemon.watchers('demo')).toBe(2);
    await first.leave();
    expect(asked('stop')).toBe(0);
    await second.leave();
    await expect.poll(() => [asked('stop'), asked('resume')]).toEqual([1, 1]);
  });

  it('ends its turn also if that begins after the client has left, unless a repetition waits for it', async () => {
    for (const isRepeated of [false, true]) {
      const { ask, asked, begin, daemon } = await start();
      const first = ask();
      await expect.poll(() => asked('post')).toBe(1);
      await first.leave();
      if (isRepeated) ask();
      if (isRepeated) await expect.poll(() => daemon.watchers('demo')).toBe(2);
      begin();
      if (isRepeated) await setTimeout(100);
      await expect.poll(() => asked('stop')).toBe(isRepeated ? 0 : 1);
    }
  });

  it('ends its turn also if the client leaves before the post is answered', async () => {
    const { ask, asked, begin, held, faults } = await start();
    let answer = () => {};
    held.post = new Promise((resolve) => {
      answer = resolve;
    });
    const first = ask();
    await expect.poll(() => asked('post')).toBe(1);
    await first.leave();
    begin();
    answer();
    await expect.poll(() => asked('stop')).toBe(1);
    expect(faults).toEqual([]);
  });
});
