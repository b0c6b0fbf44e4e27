import { describe, expect, it } from 'vitest';
import { callWithRetries, LONGEST_WAIT_MS, type RetryOptions } from '../../../src/agents/calls/call.ts';
import type { Model, ModelDelta, ModelOutcome, ModelRequest } from '../../../src/agents/model-port.ts';
import { modelRequest } from './support.ts';

const request = modelRequest({ hash: 'h' });
const partial = { content: '', reasoning: '' };
const answered: ModelOutcome = { kind: 'answered', answer: { content: 'Hi.', toolCalls: [] } };
const failed = { kind: 'failed', code: 'RATE_LIMITED', message: 'Busy.' } as const;
const busy: ModelOutcome = { ...failed, partial, retryable: true };
const refused: ModelOutcome = { ...busy, code: 'UNAUTHORIZED', message: 'No.', retryable: false };

/** Returns these outcomes in order, each after its deltas. */
function modelThat(...outcomes: { outcome: ModelOutcome; deltas?: ModelDelta[] }[]) {
  const requests: ModelRequest[] = [];
  const model: Model = {
    async call(asked, { onDelta }) {
      const next = outcomes[Math.min(requests.length, outcomes.length - 1)]!;
      requests.push(asked);
      next.deltas?.forEach(onDelta);
      return next.outcome;
    },
  };
  return { model, requests };
}

function optionsWith(changes: Partial<RetryOptions> = {}) {
  const waits: number[] = [];
  const attempts: number[] = [];
  const deltas: string[] = [];
  const options: RetryOptions = {
    signal: new AbortController().signal,
    onAttempt: (attempt) => {
      attempts.push(attempt);
      return (delta) => deltas.push(`${attempt}:${delta.delta}`);
    },
    policy: { attempts: 4, baseMs: 500, maxMs: 30_000 },
    sleep: async (milliseconds) => void waits.push(milliseconds),
    random: () => 0.5,
    ...changes,
  };
  return { options, waits, attempts, deltas };
}

describe('a model call with retries', () => {
  it('a model call is repeated with the same request until it is answered', async () => {
    const { model, requests } = modelThat({ outcome: busy }, { outcome: busy }, { outcome: answered });
    const { options, waits, attempts } = optionsWith();
    expect(await callWithRetries(model, request, options)).toBe(answered);
    expect(requests).toEqual([request, request, request]);
    expect(attempts).toEqual([1, 2, 3]);
    expect(waits).toEqual([250, 500]);
  });

  it('each retry is reported before its wait, with the reason, and the last failure is not', async () => {
    const { model } = modelThat({ outcome: busy });
    const events: unknown[] = [];
    const { options } = optionsWith({
      policy: { attempts: 3, baseMs: 500, maxMs: 30_000 },
      onRetry: (retry) => events.push(retry),
      sleep: async () => void events.push('sleep'),
    });
    await callWithRetries(model, request, options);
    const why = { attempts: 3, code: 'RATE_LIMITED', message: 'Busy.' };
    expect(events).toEqual([
      { attempt: 2, waitMs: 250, ...why },
      'sleep',
      { attempt: 3, waitMs: 500, ...why },
      'sleep',
    ]);
  });

  it('a model call fails after the last attempt and reports the number of attempts', async () => {
    const { model, requests } = modelThat({ outcome: busy });
    const { options, waits } = optionsWith();
    const last = { kind: 'failed', code: 'RATE_LIMITED', message: 'Busy. Tried 4 times.' };
    expect(await callWithRetries(model, request, options)).toMatchObject(last);
    expect(requests.length).toBe(4);
    expect(waits).toEqual([250, 500, 1000]);
  });

  it('the reported number of attempts includes those of the adapter', async () => {
    const refused3 = { ...busy, message: 'Busy: "later"', tries: 3 };
    const { model } = modelThat({ outcome: refused3 });
    const { options } = optionsWith({ policy: { attempts: 2, baseMs: 1, maxMs: 1 } });
    expect(await callWithRetries(model, request, options)).toMatchObject({
      message: 'Busy: "later". Tried 6 times.',
    });
  });

  it('a failure that is not retryable is not retried', async () => {
    const { model, requests } = modelThat({ outcome: refused }, { outcome: answered });
    expect(await callWithRetries(model, request, optionsWith().options)).toBe(refused);
    expect(requests.length).toBe(1);
  });

  it('a model call is not retried after a delta, whatever the model reports', async () => {
    const { model, requests } = modelThat({ outcome: busy, deltas: [{ type: 'text', delta: 'Ha' }] });
    const { options, deltas } = optionsWith();
    expect(await callWithRetries(model, request, options)).toBe(busy);
    expect(requests.length).toBe(1);
    expect(deltas).toEqual(['1:Ha']);
  });

  it('the deltas of each attempt go to a separate receiver', async () => {
    const hi: ModelDelta[] = [{ type: 'text', delta: 'Hi' }];
    const { model } = modelThat({ outcome: busy }, { outcome: answered, deltas: hi });
    const { options, deltas } = optionsWith();
    await callWithRetries(model, request, options);
    expect(deltas).toEqual(['2:Hi']);
  });

  it('a retry waits as long as the provider asks for', async () => {
    const { model } = modelThat({ outcome: { ...busy, afterMs: 7000 } }, { outcome: answered });
    const { options, waits } = optionsWith();
    expect(await callWithRetries(model, request, options)).toBe(answered);
    expect(waits).toEqual([7000]);
  });

  it('a model call fails when the provider asks for a longer wait than the limit (RETRY-3)', async () => {
    const long = { ...busy, afterMs: LONGEST_WAIT_MS + 1 };
    const { model } = modelThat({ outcome: long }, { outcome: answered });
    const { options, waits } = optionsWith();
    const outcome = await callWithRetries(model, request, options);
    expect(outcome).toMatchObject({ kind: 'failed', code: 'RATE_LIMITED' });
    expect(outcome.kind === 'failed' && outcome.message).toContain('wants 61 s to pass');
    expect(waits).toEqual([]);
  });

  it('a retry never waits longer than the limit of its policy', async () => {
    const { model } = modelThat({ outcome: busy });
    const policy = { attempts: 8, baseMs: 1000, maxMs: 3000 };
    const { options, waits } = optionsWith({ policy, random: () => 0.999 });
    await callWithRetries(model, request, options);
    expect(waits).toEqual([999, 1998, 2997, 2997, 2997, 2997, 2997]);
  });

  it('a model call can be aborted while it waits for a retry', async () => {
    const controller = new AbortController();
    const { model, requests } = modelThat({ outcome: busy });
    const { options } = optionsWith({ signal: controller.signal, sleep: async () => controller.abort() });
    expect(await callWithRetries(model, request, options)).toEqual({ kind: 'aborted', partial });
    expect(requests.length).toBe(1);
  });

  it('a model call that was aborted during an attempt does not wait for a retry', async () => {
    const controller = new AbortController();
    const { model } = modelThat({ outcome: busy });
    const { options, waits } = optionsWith({
      signal: controller.signal,
      onAttempt: () => {
        controller.abort();
        return () => {};
      },
    });
    expect(await callWithRetries(model, request, options)).toEqual({ kind: 'aborted', partial });
    expect(waits).toEqual([]);
  });
});
