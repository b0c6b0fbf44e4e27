import { afterEach, describe, expect, it } from 'vitest';
import type { Model, ModelOutcome, ModelRequest, Summariser } from '../../../src/agents/index.ts';
import { type Entry, expand } from '../../../src/conversation/index.ts';
import type { TelemetryEvent } from '../../../src/daemon/observe/telemetry.ts';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { PROFILE } from '../agents/support.ts';
import { createDaemon, postCommand, type TestDaemon, type TestDaemonOptions } from './daemon.ts';

/** A daemon whose model has a small window: what is too large is reduced before it is asked. */

const LONG = 'word '.repeat(240); // 300 tokens
const WINDOW = { contextTokens: 2_000, maxOutputTokens: 200 };

let daemon: TestDaemon;
afterEach(() => daemon.end());

/** A summarising model in the test's hands. */
function handSummariser(more: Partial<Summariser> = {}) {
  const asked: { request: ModelRequest; signal: AbortSignal; settle(outcome: ModelOutcome): void }[] = [];
  const model: Model = {
    call: (request, { signal }) =>
      new Promise((settle) => {
        asked.push({ request, signal, settle });
        const partial = { content: '', reasoning: '' };
        signal.addEventListener('abort', () => settle({ kind: 'aborted', partial }));
      }),
  };
  const price = { inputPerMillion: 1_000_000, cachedInputPerMillion: 0, outputPerMillion: 1_000_000 };
  const profile = { ...PROFILE, name: 'small', contextTokens: 20_000, price };
  return { asked, summariser: { model, profile, timeoutMs: 60_000, ...more } satisfies Summariser };
}

const usage = { inputTokens: 7, outputTokens: 3 };
const told = (content: string, finishReason = 'stop'): ModelOutcome => ({
  kind: 'answered',
  answer: { content, toolCalls: [], usage, model: 'small-1', finishReason },
});

const EXTRACT_INSTEAD = 'warn the summary model returned no summary; an extract replaces it';

const summaries = (entries: readonly Entry[]) => entries.filter((entry) => entry.type === 'summary');

/** Exchanges until the next request is too large; answers the worker. */
async function fill(options: TestDaemonOptions = {}, count = 3) {
  daemon = createDaemon({ window: WINDOW, ...options });
  const worker = await daemon.workers.use('demo');
  for (let at = 0; at < count; at++) {
    await worker.submit(postCommand(`m${at}`, `post ${at}: ${LONG}`));
    await expect.poll(() => daemon.calls.length).toBe(at + 1);
    daemon.calls[at]?.answer(`answer ${at}`);
    await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
  }
  return worker;
}

async function fillAndAsk(options: TestDaemonOptions = {}) {
  const worker = await fill(options, 4);
  await worker.submit(postCommand('last', `the last: ${LONG}`));
  return worker;
}

describe('a view that outgrows its window', () => {
  it('is reduced before the next call, and the summary names the request that follows', async () => {
    const worker = await fillAndAsk();
    await expect.poll(() => daemon.calls.length).toBe(5);
    const [summary] = summaries(worker.entries());
    expect(summary).toMatchObject({
      agent: 'pm',
      writtenBy: 'extract',
      requestHash: daemon.calls[4]?.request.hash,
    });
    const texts = daemon.calls[4]?.request.messages.map(({ content }) => content ?? '') ?? [];
    expect(texts[1]).toMatch(/^=== SUMMARY OF ENTRIES 0 TO \d+ ===\nPeople said:/);
    expect(texts.at(-1)).toContain('the last');
  });

  it('is summarised by the summary model, whose tokens and cost count', async () => {
    const { asked, summariser } = handSummariser();
    const worker = await fillAndAsk({ summariser });
    await expect.poll(() => asked.length).toBe(1);
    expect(asked[0]?.request.messages.at(-1)?.content).toContain('[0] Alice: post 0');
    asked[0]?.settle(told('Alice posted a lot (entry 0).'));
    await expect.poll(() => daemon.calls.length).toBe(5);
    expect(summaries(worker.entries())).toMatchObject([
      { writtenBy: 'model', model: 'small-1', usage: { usd: 10 } },
    ]);
    expect(daemon.calls[4]?.request.messages[1]?.content).toContain('- Alice posted a lot (entry 0).');
    expect(worker.state).toMatchObject({ tokens: 10, usd: 10 });
  });

  it('is reported to telemetry with the call of the summary model, which has no ordinal in the turn', async () => {
    const calls: TelemetryEvent[] = [];
    const telemetry = (event: TelemetryEvent) => event.type === 'model_call' && calls.push(event);
    const { asked, summariser } = handSummariser();
    await fillAndAsk({ summariser, telemetry });
    await expect.poll(() => asked.length).toBe(1);
    asked[0]?.settle(told('Alice posted a lot (entry 0).'));
    await expect.poll(() => daemon.calls.length).toBe(5);
    expect(calls.slice(4)).toEqual([
      {
        ...{ type: 'model_call', ts: expect.any(String), conversation: 'demo', agent: 'pm', model: 'small' },
        ...{ turnId: daemon.calls[4]?.request.turnId, outcome: 'answered', finishReason: 'stop' },
        ...{ usage: { ...usage, usd: 10 }, requestHash: asked[0]?.request.hash },
        durationMs: expect.any(Number),
      },
    ]);
  });

  it.each([
    [
      'fails',
      'X: x',
      { kind: 'failed', code: 'X', message: 'x', partial: { content: '', reasoning: '' }, retryable: false },
    ],
    ['throws', 'INTERNAL: a bug', null],
    ['says nothing', 'its answer has no text', told(' ')],
    ['is cut', 'its answer was cut: length', told('The first half', 'length')],
  ] as const)(
    'gets an extract when the summary model %s, and the log has the reason',
    async (_, reason, outcome) => {
      const { asked, summariser } = handSummariser();
      const broken: Model = { call: () => Promise.reject(new Error('a bug')) };
      const worker = await fillAndAsk({
        summariser: outcome ? summariser : { ...summariser, model: broken },
      });
      if (outcome) {
        await expect.poll(() => asked.length).toBe(1);
        asked[0]?.settle(outcome);
      }
      await expect.poll(() => daemon.calls.length).toBe(5);
      expect(summaries(worker.entries())).toMatchObject([{ writtenBy: 'extract' }]);
      const fields = { conversation: 'demo', agent: 'pm', model: 'small', reason };
      expect(daemon.lines).toEqual([`${EXTRACT_INSTEAD} ${JSON.stringify(fields)}`]);
      // An answer without words was paid for, too.
      expect(worker.state.tokens).toBe(outcome?.kind === 'answered' ? 10 : 0);
    },
  );

  it('waits for the summary model no longer than its timeout or the remaining time of the turn', async () => {
    for (const options of [{ timeoutMs: 20 }, {}]) {
      const { asked, summariser } = handSummariser(options);
      const limits = options.timeoutMs ? {} : { turnSeconds: 1 };
      const worker = await fillAndAsk({ summariser, limits });
      await expect.poll(() => asked[0]?.signal.aborted).toBe(true);
      await expect.poll(() => summaries(worker.entries()).length).toBe(1);
      expect(summaries(worker.entries())).toMatchObject([{ writtenBy: 'extract' }]);
      expect(daemon.lines).toMatchObject([
        expect.stringMatching(/^warn .*"reason":"no answer within \d+ ms"/),
      ]);
      if (options.timeoutMs) await daemon.end();
    }
  });

  it('L15: does not call a summary model that would exceed the limits of the conversation', async () => {
    const { asked, summariser } = handSummariser();
    const worker = await fillAndAsk({ summariser, limits: { usdPerConversation: 5 } });
    await expect.poll(() => daemon.calls.length).toBe(5);
    expect(asked).toEqual([]);
    expect(summaries(worker.entries())).toMatchObject([{ writtenBy: 'extract' }]);
    expect(daemon.lines).toEqual([]);
  });

  it('is not sent when prefix and trigger alone are too large, and costs nothing', async () => {
    const { asked, summariser } = handSummariser();
    daemon = createDaemon({ window: { contextTokens: 300, maxOutputTokens: 100 }, summariser });
    const worker = await daemon.workers.use('demo');
    await worker.submit(postCommand('m', LONG));
    await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
    expect(JSON.stringify(worker.entries())).toContain('CONTEXT_STILL_TOO_LARGE');
    expect([asked.length, daemon.calls.length]).toEqual([0, 0]);
  });

  it('has a summary that fits the broker payload, even with many more bytes than tokens', async () => {
    const maxPayload = 20_000;
    daemon = createDaemon({ window: { contextTokens: 10_000, maxOutputTokens: 100 }, maxPayload });
    const worker = await daemon.workers.use('demo');
    for (let at = 0; at < 8; at++) {
      await worker.submit(postCommand(`m${at}`, `post ${at}: ${'\u0001'.repeat(2_900)}`)); // six bytes each in the log
      await expect.poll(() => daemon.calls.length).toBe(at + 1);
      daemon.calls[at]?.answer(`answer ${at} ${'\u0001'.repeat(2_900)}`);
      await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
    }
    expect(summaries(worker.entries()).length).toBeGreaterThan(0);
    for (const entry of summaries(worker.entries())) {
      expect(Buffer.byteLength(JSON.stringify(entry))).toBeLessThan(maxPayload);
      expect(entry.type === 'summary' && entry.content).toContain('People said:');
    }
  });

  it('respects the hard limits, whatever the window', async () => {
    const historyLimits = { maxMessages: 4, maxChars: null };
    await fill({ historyLimits, window: { contextTokens: 100_000 } }, 5);
    for (const { request } of daemon.calls) expect(request.messages.length).toBeLessThanOrEqual(1 + 4);
    expect(summaries((await daemon.entries()) ?? []).length).toBeGreaterThan(0);
  });
});

describe('while a summary is written', () => {
  async function writing(more: TestDaemonOptions = {}) {
    const { asked, summariser } = handSummariser();
    const worker = await fillAndAsk({ summariser, ...more });
    await expect.poll(() => asked.length).toBe(1);
    return { worker, asked };
  }

  it('a stop ends the turn: no summary is written, and no call is made', async () => {
    const { worker, asked } = await writing();
    await worker.submit({ type: 'stop', agent: null, by: { kind: 'person', id: 'alice', name: 'Alice' } });
    await expect
      .poll(() => worker.entries().at(-1))
      .toMatchObject({ type: 'turn-ended', outcome: 'aborted' });
    expect(asked[0]?.signal.aborted).toBe(true);
    expect([summaries(worker.entries()).length, daemon.calls.length]).toEqual([0, 4]);
  });

  it('a message that interrupts ends the turn and starts a new one, which is reduced first', async () => {
    const { worker, asked } = await writing();
    const post = postCommand('now', 'at once');
    await worker.submit({
      ...post,
      post: { ...(post as { post: object }).post, delivery: 'interrupt' },
    } as never);
    await expect.poll(() => asked.length).toBe(2);
    asked[1]?.settle(told('Summed up.'));
    await expect.poll(() => daemon.calls.length).toBe(5);
    expect(daemon.calls[4]?.request.messages.at(-1)?.content).toContain('at once');
    expect(summaries(worker.entries())).toHaveLength(1);
  });

  it.each(['steer', 'queue'] as const)(
    'a message in mode %s waits and is not part of the summary',
    async (delivery) => {
      const { worker, asked } = await writing();
      const post = postCommand('more', 'one thing more');
      await worker.submit({ ...post, post: { ...(post as { post: object }).post, delivery } } as never);
      const index = worker.entries().find((entry) => entry.id === 'more')?.index ?? -1;
      asked[0]?.settle(told('Summed up.'));
      await expect.poll(() => daemon.calls.length).toBe(5);
      expect(JSON.stringify(daemon.calls[4]?.request.messages)).not.toContain('one thing more');
      for (const entry of summaries(worker.entries()))
        expect(entry.type === 'summary' && expand(entry.entries)).not.toContain(index);
      daemon.calls[4]?.answer('first answer');
      await expect.poll(() => daemon.calls.length).toBe(6);
      expect(daemon.calls[5]?.request.messages.at(-1)?.content).toContain('one thing more');
    },
  );

  it('a shutdown leaves the turn outstanding: the next daemon continues it, and summarises once', async () => {
    const disk = createMemoryDisk();
    await writing({ disk });
    await daemon.end();
    const { asked, summariser } = handSummariser();
    daemon = createDaemon({ window: WINDOW, disk, summariser });
    const worker = await daemon.workers.use('demo');
    await expect.poll(() => asked.length).toBe(1);
    asked[0]?.settle(told('Summed up.'));
    await expect.poll(() => daemon.calls.length).toBe(1);
    daemon.calls[0]?.answer('here');
    await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
    expect(summaries(worker.entries())).toHaveLength(1);
  });
});

describe('a request that the provider refuses as too long', () => {
  it.each([
    'CONTEXT_TOO_LONG',
    'BAD_REQUEST', // in words that no rule knows
  ])('is reduced once, with a corrected estimate, and the turn continues: %s', async (code) => {
    const worker = await fill();
    await worker.submit(postCommand('last', 'short'));
    await expect.poll(() => daemon.calls.length).toBe(4);
    daemon.calls[3]?.fail(code);
    await expect.poll(() => daemon.calls.length).toBe(5);
    const [before = '', after = ''] = [3, 4].map((at) => JSON.stringify(daemon.calls[at]?.request.messages));
    expect(after.length).toBeLessThan(before.length * 0.8);
    expect(summaries(worker.entries())).toMatchObject([{ tokenRatio: expect.any(Number) }]);
    daemon.calls[4]?.fail(code);
    await expect.poll(() => worker.entries().at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'failed' });
    expect(daemon.calls).toHaveLength(5);
    expect(JSON.stringify(worker.entries().at(-2))).toContain(code);
  });

  it('is not reduced if the reason is unknown and the window is far away', async () => {
    const worker = await fill({ window: { contextTokens: 100_000 } });
    await worker.submit(postCommand('last', 'short'));
    await expect.poll(() => daemon.calls.length).toBe(4);
    daemon.calls[3]?.fail('BAD_REQUEST');
    await expect.poll(() => worker.entries().at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'failed' });
    expect(daemon.calls).toHaveLength(4);
  });

  it('has no effect on the next turn, which is estimated as before', async () => {
    const worker = await fill({ window: { contextTokens: 100_000 } });
    await worker.submit(postCommand('last', 'short'));
    await expect.poll(() => daemon.calls.length).toBe(4);
    daemon.calls[3]?.fail('CONTEXT_TOO_LONG'); // of a thousand tokens, in a window of a hundred thousand
    await expect.poll(() => daemon.calls.length).toBe(5);
    daemon.calls[4]?.answer('fine');
    await expect.poll(() => worker.entries().at(-1)?.type).toBe('turn-ended');
    await worker.submit(postCommand('long', LONG.repeat(10)));
    await expect.poll(() => daemon.calls.length).toBe(6);
    expect(worker.state.agents.pm?.tokenRatio).toBe(1);
  });
});
