import { describe, expect, it } from 'vitest';
import { type AgentSetup, explain } from '../../../src/agents/index.ts';
import type { Entry, ViewReport } from '../../../src/conversation/index.ts';
import { Log, sourcesOf } from './support.ts';

const words = (count: number) => 'word '.repeat(count).trim();

function reportOf(log: Log, change: Partial<AgentSetup['profile']> = {}, at?: number): ViewReport {
  const sources = sourcesOf('pm', 'dev');
  const agents = [...sources.agents].map(
    ([slug, setup]) =>
      [slug, { ...setup, profile: { ...setup.profile, maxOutputTokens: 100, ...change } }] as const,
  );
  const outcome = explain(log.entries, 'demo', 'pm', at, { ...sources, agents: new Map(agents) });
  if (!outcome.ok) throw new Error(outcome.refusal.message);
  return outcome.explanation.report;
}

/** Two long exchanges with pm, then a short question that waits. */
function longLog(): { log: Log; first: number; last: number } {
  const log = new Log();
  const first = log.answer('pm', log.start('pm', log.person(words(200))), words(200));
  const last = log.answer('pm', log.start('pm', log.person('and then?')), words(200));
  log.person('now?');
  return { log, first, last };
}

describe('an explanation of a view', () => {
  it.each<[string, number, ViewReport['status'], boolean]>([
    ['far below its limit', 100_000, 'not_needed', false],
    ['above its limit', 900, 'reduced', true],
    ['too large for any reduction', 170, 'failed', false],
  ])('an explanation reports the status of a view %s', (_, contextTokens, status, isCut) => {
    const { log } = longLog();
    const report = reportOf(log, { contextTokens });
    expect(report.status).toBe(status);
    expect(report.left_out.length > 0).toBe(isCut);
    expect(report.fault?.code).toBe(status === 'failed' ? 'CONTEXT_STILL_TOO_LARGE' : undefined);
  });

  it('an explanation reports that a view over its limit cannot be reduced', () => {
    const log = new Log();
    log.person(words(120)); // The trigger is never taken.
    expect(reportOf(log, { contextTokens: 320 })).toMatchObject({
      status: 'no_effect',
      fault: null,
      next_reduction: { due: true, would: null },
    });
  });

  it('an explanation names the summarised entries, the summary, and how to recall them', () => {
    const { log } = longLog();
    const report = reportOf(log, { contextTokens: 900 });
    const turnStarted = log.entries.length; // Neither it nor the summary after it is in the log.
    expect(report.left_out).toEqual([0, 2, 4, 6]);
    expect(report.left_out_as).toEqual([
      { from: 0, to: 6, how: 'summed_up', by: turnStarted + 1, recall: { from: 0, to: 6 } },
    ]);
    expect(report.included.every((index) => index < log.entries.length)).toBe(true);
    expect(report.note).toContain(`entry ${turnStarted + 1}, which is not in the log`);
    expect(report.next_reduction).toMatchObject({ above: 640, target: 400, due: false });
  });

  it('an explanation names an answer without text that the provider does not accept', () => {
    const log = new Log();
    log.answer('pm', log.start('pm', log.person('one')), '');
    log.person('two');
    const form = { ...[...sourcesOf('pm').agents.values()][0]?.profile.form, emptyAnswers: 'left-out' };
    const report = reportOf(log, { form: form as AgentSetup['profile']['form'] });
    expect(report.left_out_as).toEqual([{ from: 2, to: 2, how: 'empty', recall: { from: 2, to: 2 } }]);
  });

  it('an explanation lists entries that wait for a later call separately from omitted ones', () => {
    const log = new Log();
    log.start('pm', log.person('one'));
    const queued = log.person('two');
    const meanwhile = log.person('to dev', ['dev']);
    expect(reportOf(log)).toMatchObject({ included: [0], left_out: [], waiting: [queued, meanwhile] });
  });

  it('an explanation of an old answer cuts only what was cut at that time', () => {
    const { log, last } = longLog();
    const report = reportOf(log, { contextTokens: 680 }, last);
    expect(report).toMatchObject({ status: 'not_needed', left_out: [], next_reduction: { due: true } });
    expect(report.note).toBeUndefined();
  });

  it('the tokens of parts and of groups in an explanation have the same sum', () => {
    const report = reportOf(longLog().log, { contextTokens: 900 });
    const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
    expect(sum(report.parts.map(({ tokens }) => tokens))).toBe(report.tokens);
    expect(sum(Object.values(report.tokens_by_group))).toBe(report.tokens);
    expect(Object.keys(report.tokens_by_group)).toEqual(['prefix', 'summary', 'trigger']);
  });
});

describe('whether a request was sent', () => {
  function answered(requestHash: string | undefined): ViewReport {
    const log = new Log();
    const answer = log.answer('pm', log.start('pm', log.person('one')), 'yes');
    log.entries[answer] = { ...log.entries[answer], requestHash, partType: 'error' } as Entry;
    return reportOf(log, {}, answer);
  }

  it('an explanation reports whether a request was sent if the log has its hash', () => {
    const { requestHash, sent } = answered(undefined);
    expect(sent).toBe('unknown');
    expect(answered(requestHash).sent).toBe(true);
    expect(answered('another').sent).toBe(false);
  });

  it('an explanation reports that a refused request was not sent', () => {
    expect(answered('')).toMatchObject({ sent: 'unknown', note: expect.stringContaining('never sent it') });
  });

  it('at the start of a turn, an explanation reports whether the request was sent, until the turn has another entry', () => {
    const log = new Log();
    log.start('pm', log.person('one'));
    const { requestHash } = reportOf(log);
    log.entries[1] = { ...log.entries[1], requestHash } as Entry;
    expect(reportOf(log).sent).toBe(true);
    log.entries[1] = { ...log.entries[1], requestHash: 'another' } as Entry;
    expect(reportOf(log, {}, 1).sent).toBe(false);
  });
});

describe('what a request cost', () => {
  const usage = (inputTokens: number) => ({ inputTokens, cachedInputTokens: 10, outputTokens: 5, usd: 0.5 });

  function spent(): { log: Log; pm: number; dev: number } {
    const log = new Log();
    const dev = log.answer('dev', log.start('dev', log.person('one', ['dev'])), 'yes');
    const turnId = log.start('pm', log.person('two'));
    const more = { type: 'summary', turnId, agent: 'pm', entries: [[0, 0]], fromIndex: 0, toIndex: 0 };
    const index = log.entries.length;
    const author = { kind: 'system', id: 'parley', name: 'Parley' };
    const at = { index, id: `id-${index}`, createdAt: '', author, content: 'sum', writtenBy: 'model' };
    log.entries.push({ ...at, ...more, usage: usage(100) } as unknown as Entry);
    const pm = log.answer('pm', turnId, 'no');
    log.entries[dev] = { ...log.entries[dev], usage: usage(20) } as Entry;
    log.entries[pm] = { ...log.entries[pm], usage: usage(300) } as Entry;
    return { log, pm, dev };
  }

  it('an explanation reports the cost of the call, of its turn with the summary, of the agent and of all agents up to that entry', () => {
    const { log, pm } = spent();
    const two = {
      calls: 2,
      inputTokens: 400,
      cachedInputTokens: 20,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      outputTokens: 10,
      usd: 1,
      unpricedCalls: 0,
    };
    expect(reportOf(log, {}, pm).cost).toEqual({
      call: usage(300),
      turn: two,
      agent: two,
      conversation: {
        calls: 3,
        inputTokens: 420,
        cachedInputTokens: 30,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
        outputTokens: 15,
        usd: 1.5,
        unpricedCalls: 0,
      },
    });
    expect(reportOf(log, {}, pm - 1).cost).toMatchObject({
      call: null,
      turn: { calls: 1, inputTokens: 100 },
      conversation: { calls: 2 },
    });
  });

  it('the reported cost includes failed calls that were sent, but no imported answers and no refused requests', () => {
    const log = new Log();
    for (const requestHash of ['sent', '', undefined]) {
      const answer = log.answer('pm', log.start('pm', log.person('one')), 'LLM_ERROR {}');
      log.entries[answer] = { ...log.entries[answer], requestHash, partType: 'error' } as Entry;
    }
    log.person('more');
    expect(reportOf(log).cost.agent).toEqual({
      calls: 1,
      inputTokens: 0,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      outputTokens: 0,
      usd: 0,
      unpricedCalls: 0,
    });
  });
});
