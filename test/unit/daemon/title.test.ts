import { afterEach, describe, expect, it } from 'vitest';
import type { Model, ModelOutcome, ModelRequest } from '../../../src/agents/index.ts';
import { checkLaws } from '../../../src/conversation/index.ts';
import { PROFILE } from '../agents/support.ts';
import { createDaemon, postCommand, type TestDaemon } from './daemon.ts';

/** A model writes the title of a conversation beside its turns (`titleModel`). */

let daemon: TestDaemon;
afterEach(() => daemon.end());

const price = { inputPerMillion: 1_000_000, cachedInputPerMillion: 0, outputPerMillion: 1_000_000 };
const usage = { inputTokens: 7, outputTokens: 3 };
const told = (content: string, finishReason = 'stop'): ModelOutcome => ({
  kind: 'answered',
  answer: { content, toolCalls: [], usage, model: 'small-1', finishReason },
});
const partial = { content: '', reasoning: '' };
const FAILED: ModelOutcome = {
  ...{ kind: 'failed', code: 'RATE_LIMITED', message: 'Too many.', partial, retryable: true },
};

/** The first exchange, after which the title model is asked. `usd`, `tokens`: the limits of the conversation. */
async function exchange(usd: number | null = null, tokens: number | null = null) {
  daemon = createDaemon();
  const asked: { request: ModelRequest; settle(outcome: ModelOutcome): void }[] = [];
  const model: Model = {
    call: (request, { signal }) =>
      new Promise((settle) => {
        asked.push({ request, settle });
        signal.addEventListener('abort', () => settle({ kind: 'aborted', partial }));
      }),
  };
  const profile = { ...PROFILE, name: 'small', price };
  daemon.replaceTeam({
    titler: { model, profile, timeoutMs: 60_000 },
    limits: { turnSeconds: 900, tokensPerConversation: tokens, usdPerConversation: usd },
  });
  const worker = await daemon.workers.use('demo');
  await worker.submit(postCommand('m0', 'my invoice from May is wrong'));
  await expect.poll(() => daemon.calls.length).toBe(1);
  daemon.calls[0]?.answer('I look at it.');
  await expect.poll(() => worker.state.title).toBe('my invoice from May is wrong');
  return { worker, asked };
}

describe('the title of a conversation', () => {
  it('is written by the title model after the first answer, once, and its cost counts', async () => {
    const { worker, asked } = await exchange();
    await expect.poll(() => asked.length).toBe(1);
    expect(asked[0]?.request.messages.at(-1)?.content).toBe(
      'person: my invoice from May is wrong\n\nagent: I look at it.',
    );
    await worker.submit(postCommand('m1', 'thanks')); // the turn does not wait for the title
    await expect.poll(() => daemon.calls.length).toBe(2);
    daemon.calls[1]?.answer('You are welcome.');
    asked[0]?.settle(told('  "Wrong invoice of May."\nMore text'));
    await expect.poll(() => worker.state.title).toBe('Wrong invoice of May');
    expect(worker.entries().findLast(({ type }) => type === 'title-set')).toMatchObject({
      writtenBy: 'model',
      model: 'small-1',
      usage: { ...usage, usd: 10 },
    });
    expect(worker.state).toMatchObject({ tokens: 10, usd: 10 });
    expect(asked).toHaveLength(1);
    expect(checkLaws(worker.entries())).toEqual([]);
  });

  it('is read in a moment from an answer of any length, and without half of a character', async () => {
    const { worker, asked } = await exchange();
    await expect.poll(() => asked.length).toBe(1);
    asked[0]?.settle(told(`"x${' '.repeat(10)}${'👋'.repeat(900)}${'.'.repeat(200_000)}!`));
    await expect.poll(() => worker.state.title).toBe(`x ${'👋'.repeat(78)}`);
  });

  it.each([
    ['fails', FAILED, 'RATE_LIMITED: Too many.'],
    ['is cut', told('A tit', 'length'), 'its answer was cut: length'],
    ['has no text', told(' "" '), undefined],
  ])(
    'stays the first words if the answer of that model %s; nothing is tried again',
    async (_, outcome, reason) => {
      const { worker, asked } = await exchange();
      await expect.poll(() => asked.length).toBe(1);
      asked[0]?.settle(outcome);
      await worker.idle();
      expect(worker.state.title).toBe('my invoice from May is wrong');
      expect(asked).toHaveLength(1);
      await expect.poll(() => worker.state.tokens).toBe(outcome === FAILED ? 0 : 10); // what was paid is recorded
      const warned = daemon.lines.filter((line) => line.includes('title model'));
      expect(warned).toEqual(reason === undefined ? [] : [expect.stringContaining(reason)]);
    },
  );

  it('stays what a person has called the conversation meanwhile', async () => {
    const { worker, asked } = await exchange();
    await expect.poll(() => asked.length).toBe(1);
    const by = { kind: 'person', id: 'alice', name: 'Alice' } as const;
    await worker.submit({ type: 'label', title: 'Invoices', by });
    asked[0]?.settle(told('Wrong invoice'));
    await expect.poll(() => worker.state.tokens).toBe(10);
    expect(worker.state.title).toBe('Invoices');
  });

  it('is not waited for by a conversation that is deleted', async () => {
    const { worker, asked } = await exchange();
    await expect.poll(() => asked.length).toBe(1);
    await worker.abandon(); // the model has not answered
    expect(worker.state.title).toBe('my invoice from May is wrong');
  });

  it('is not written if the call could exceed the limit of the conversation', async () => {
    const { worker, asked } = await exchange(0.000_1);
    await worker.idle();
    expect(asked).toEqual([]);
    expect(worker.state.title).toBe('my invoice from May is wrong');
  });

  it('is counted while it is written: a turn that starts beside it stays within the limit', async () => {
    const { worker, asked } = await exchange(null, 2_000); // one call may use a little more than 1,000
    await expect.poll(() => asked.length).toBe(1);
    await worker.submit(postCommand('m1', 'thanks'));
    await expect
      .poll(() => worker.entries().at(-1))
      .toMatchObject({ type: 'turn-ended', outcome: 'limited' });
    expect(daemon.calls).toHaveLength(1);
  });
});
