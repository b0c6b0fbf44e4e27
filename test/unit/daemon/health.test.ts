import { describe, expect, it } from 'vitest';
import type { Model } from '../../../src/agents/index.ts';
import type { CallOutcome } from '../../../src/conversation/index.ts';
import { ModelHealth } from '../../../src/daemon/team/health.ts';

const REPORT = { agent: 'pm', turnId: 't', duration: 1, requestHash: 'h', upTo: 1 };
const failed = (code: string, afterMs?: number): CallOutcome => ({
  ...{ type: 'model-failed', ...REPORT, code, message: 'x', partial: '', afterMs },
});
const ANSWERED: CallOutcome = { type: 'model-answered', ...REPORT, answer: { content: 'x', toolCalls: [] } };
const client = (): Model => ({ call: () => Promise.reject(new Error('not called')) });

describe('the health of models and keys', () => {
  it('a model backs off longer after each failure, until it answers (HEALTH-1)', () => {
    let now = 0;
    const health = new ModelHealth(() => now);
    const model = client();
    const leftAfter = (outcome: CallOutcome) => {
      health.observe(model, outcome);
      return health.backingOff(model)?.leftMs;
    };
    expect(health.backingOff(model)).toBeNull();
    expect(leftAfter(failed('TIMEOUT'))).toBe(15_000);
    expect(leftAfter(failed('RATE_LIMITED'))).toBe(30_000);
    now = 29_999;
    expect(health.backingOff(model)).toEqual({ code: 'RATE_LIMITED', failures: 2, leftMs: 1 });
    now = 30_000;
    expect(health.backingOff(model)).toBeNull();
    const further = Array.from({ length: 9 }, () => leftAfter(failed('TIMEOUT')));
    expect(further.slice(0, 5)).toEqual([60_000, 120_000, 240_000, 480_000, 600_000]);
    expect(further.at(-1)).toBe(600_000);
    expect(leftAfter(failed('QUOTA_EXHAUSTED', 3_600_000))).toBe(3_600_000);
    expect(leftAfter(ANSWERED)).toBeUndefined();
    expect(leftAfter(failed('TIMEOUT'))).toBe(15_000);
  });

  it('a failure of the request itself, an abort and another client change nothing', () => {
    const health = new ModelHealth(() => 0);
    const model = client();
    health.observe(model, failed('BAD_REQUEST'));
    health.observe(model, failed('CONTEXT_TOO_LONG'));
    health.observe(model, { type: 'model-aborted', ...REPORT, partial: '' });
    health.observe(client(), failed('TIMEOUT'));
    expect(health.backingOff(model)).toBeNull();
  });
});
