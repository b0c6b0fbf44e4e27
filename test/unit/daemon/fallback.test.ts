import { afterEach, describe, expect, it } from 'vitest';
import { ofType } from '../../support/log.ts';
import { createDaemon, postCommand, type TestDaemon, type TestDaemonOptions } from './daemon.ts';

/** A daemon whose models are in the test's hands: who is asked when one fails, and with which request. */

let daemon: TestDaemon;
afterEach(() => daemon.end());

async function asked(options: TestDaemonOptions, ...posts: readonly string[]) {
  daemon = createDaemon(options);
  const worker = await daemon.workers.use('demo');
  for (const [at, content] of posts.entries()) {
    await worker.submit(postCommand(`m${at}`, content));
    await expect.poll(() => daemon.calls.length).toBe(at + 1);
    if (at < posts.length - 1) daemon.calls[at]?.answer(`answer ${at}`);
    if (at < posts.length - 1) await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
  }
  return worker;
}

const bodyOf = (at: number) => JSON.parse(Buffer.concat(daemon.calls[at]?.request.body ?? []).toString());
const typesFrom = (entries: readonly { readonly type: string }[], from: number) =>
  entries.slice(from).map(({ type }) => type);

describe('a turn whose model fails', () => {
  const LONG = 'word '.repeat(240); // 300 tokens
  const POSTS = Array.from({ length: 5 }, (_, at) => `post ${at}: ${LONG}`);

  it('a fallback with less room gets a reduced request, which fits its window', async () => {
    const small = { name: 'small', contextTokens: 2_000, maxOutputTokens: 200 };
    const worker = await asked({ fallbacks: [small] }, ...POSTS);
    const before = worker.entries().length;
    daemon.calls.at(-1)?.fail('TIMEOUT');
    await expect.poll(() => daemon.calls.length).toBe(6);
    daemon.calls[5]?.answer('from the small one');
    await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
    expect(typesFrom(worker.entries(), before)).toEqual([
      'attempt-failed',
      'summary',
      'message',
      'turn-ended',
    ]);
    expect(bodyOf(5).model).toBe('small');
    expect(JSON.stringify(bodyOf(5)).length / 4).toBeLessThan(1_800);
  });

  it('a fallback whose window cannot hold the request is not called, and the next one is asked', async () => {
    const tiny = { name: 'tiny', contextTokens: 300, maxOutputTokens: 200 };
    const worker = await asked({ fallbacks: [tiny, { name: 'big' }] }, LONG);
    daemon.calls[0]?.fail('TIMEOUT');
    await expect.poll(() => daemon.calls.length).toBe(2);
    expect(bodyOf(1).model).toBe('big');
    const [first, second, ...more] = ofType(worker.entries(), 'attempt-failed');
    expect(more).toEqual([]);
    expect(first).toMatchObject({ model: 'default', code: 'TIMEOUT', next: { model: 'tiny' } });
    expect(second).toMatchObject({
      model: 'tiny',
      code: 'CONTEXT_STILL_TOO_LARGE',
      duration: 0,
      next: { model: 'big' },
    });
    expect(second?.requestHash).toBeUndefined();
  });

  it('a fallback is asked within the limit of the conversation, at its own price', async () => {
    const price = { inputPerMillion: 1_000_000, cachedInputPerMillion: 0, outputPerMillion: 1_000_000 };
    const worker = await asked(
      { fallbacks: [{ name: 'dear', price }], limits: { usdPerConversation: 1 } },
      'hello',
    );
    daemon.calls[0]?.fail('TIMEOUT');
    await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
    expect(typesFrom(worker.entries(), 2)).toEqual(['attempt-failed', 'limit-reached', 'turn-ended']);
    expect(daemon.calls).toHaveLength(1);
  });

  it('a turn that a person stops during an attempt asks nobody else', async () => {
    const worker = await asked({ fallbacks: [{ name: 'big' }] }, 'hello');
    daemon.calls[0]?.fail('TIMEOUT');
    const by = { kind: 'person', id: 'ann', name: 'Ann' } as const;
    await worker.submit({ type: 'stop', agent: 'pm', by });
    await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
    expect(worker.entries().at(-1)).toMatchObject({ outcome: 'aborted' });
    expect(ofType(worker.entries(), 'message').filter(({ role }) => role === 'assistant')).toEqual([]);
  });

  it('if all models fail, the turn fails with the last failure; the next turn calls the first of them again', async () => {
    const worker = await asked({ fallbacks: [{ name: 'big' }] }, 'hello');
    daemon.calls[0]?.fail('TIMEOUT');
    await expect.poll(() => daemon.calls.length).toBe(2);
    daemon.calls[1]?.fail('RATE_LIMITED');
    await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
    expect(worker.entries().at(-1)).toMatchObject({ outcome: 'failed' });
    expect(worker.entries().at(-2)).toMatchObject({
      partType: 'error',
      content: expect.stringContaining('RATE_LIMITED'),
    });
    await worker.submit(postCommand('again', 'again'));
    await expect.poll(() => daemon.calls.length).toBe(3);
    expect(bodyOf(2).model).toBe('fake-model');
    expect(ofType(worker.entries(), 'attempt-failed')).toHaveLength(1);
    expect(ofType(worker.entries(), 'turn-ended')).toHaveLength(1);
  });

  it('the time of failed attempts counts for the limit of a turn and for what its agent used', async () => {
    let now = 0;
    const worker = await asked({ fallbacks: [{ name: 'big' }], elapsed: () => now }, 'hello');
    now = 700_000;
    daemon.calls[0]?.fail('TIMEOUT');
    await expect.poll(() => daemon.calls.length).toBe(2);
    const { turn, used, executionMs } = worker.state.agents.pm ?? {};
    expect([turn?.workedMs, used?.calls, executionMs]).toEqual([700_000, 1, 700_000]);
    expect(turn?.candidate).toEqual({ model: 'big' });
  });
});
