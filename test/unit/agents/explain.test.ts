import { describe, expect, it } from 'vitest';
import { type AgentSetup, type Explanation, explain } from '../../../src/agents/index.ts';
import type { Entry, ViewReport } from '../../../src/conversation/index.ts';
import { sampleFile } from '../../support/sample-files.ts';
import { Log, PROFILE, sourcesOf } from './support.ts';

const words = (count: number) => 'word '.repeat(count).trim();

function reportOf(log: Log, change: Partial<AgentSetup['profile']> = {}, at?: number): ViewReport {
  const sources = sourcesOf('pm', 'dev');
  const agents = [...sources.agents].map(
    ([slug, setup]) =>
      [slug, { ...setup, profile: { ...setup.profile, maxOutputTokens: 100, ...change } }] as const,
  );
  const outcome = explain(
    log.entries,
    { conversation: 'demo', agent: 'pm', at },
    { live: { ...sources, agents: new Map(agents) } },
  );
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
  it('an explanation names each file that the model was not shown, its entry, and why', () => {
    const log = new Log();
    log.person('Look.');
    const [png, pdf] = [sampleFile('image/png', 0).part, sampleFile('application/pdf', 1).part];
    log.add({ ...log.entries[0], index: 1, id: 'id-1', parts: [png, pdf] });
    const form = { ...PROFILE.form, accepts: ['image' as const] };
    const why = 'its model takes no such files';
    expect(reportOf(log).unseen_files).toEqual([
      { entry: 1, name: png.name, why },
      { entry: 1, name: pdf.name, why },
    ]);
    expect(reportOf(log, { form }).unseen_files).toEqual([{ entry: 1, name: pdf.name, why }]);
    log.answer('pm', log.start('pm', 1), 'I see.');
    log.person('And now?');
    expect(reportOf(log, { form }).unseen_files).toEqual([{ entry: 1, name: pdf.name, why }]);
  });

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

  it('an explanation of a long conversation takes linear time', () => {
    const log = new Log();
    const asked = Array.from({ length: 80_000 }, () => log.person('word'));
    log.answer('pm', log.start('pm', ...asked), words(200));
    log.person('now?');
    // Quadratic work on so many entries exceeds the timeout of the test.
    expect(reportOf(log, { contextTokens: 900 }).left_out_as).toMatchObject([{ from: 0, to: 80_001 }]);
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
    const log = Log.begun('one');
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
    const log = Log.begun('one');
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

  const NONE = {
    ...{ calls: 0, inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
    ...{ outputTokens: 0, usd: 0, unpricedCalls: 0 },
  };

  it('an explanation reports the cost of the call, of its turn with the summary, of the agent and of all agents up to that entry', () => {
    const { log, pm } = spent();
    const two = { ...NONE, calls: 2, inputTokens: 400, cachedInputTokens: 20, outputTokens: 10, usd: 1 };
    const all = { calls: 3, inputTokens: 420, cachedInputTokens: 30, outputTokens: 15, usd: 1.5 };
    expect(reportOf(log, {}, pm).cost).toEqual({
      call: usage(300),
      turn: two,
      agent: two,
      conversation: { ...NONE, ...all },
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
    expect(reportOf(log).cost.agent).toEqual({ ...NONE, calls: 1 });
  });
});

const sources = sourcesOf('pm', 'dev');

function logWithTurns() {
  const log = new Log();
  const first = log.start('pm', log.person('one'));
  const answer = log.answer('pm', first, 'answer one');
  const second = log.start('dev', log.person('two', ['dev']));
  const byDev = log.answer('dev', second, 'answer two');
  return { log, answer, byDev };
}

function explained(log: Log, agent: string, at?: number): Explanation {
  const outcome = explain(log.entries, { conversation: 'demo', agent, at }, { live: sources });
  if (!outcome.ok) throw new Error(outcome.refusal.message);
  return outcome.explanation;
}
const contents = ({ messages }: Explanation) => messages.slice(1).map(({ content }) => content);

describe('an explanation', () => {
  it('an explanation at the start of a resumed turn compares the hash of that start, since the agent may have been edited before it', () => {
    const log = new Log();
    const turnId = log.start('pm', log.person('one'));
    Object.assign(log.entries[1] ?? {}, { requestHash: 'of another definition' });
    const author = { kind: 'agent', id: 'pm', name: 'Pm' };
    const again = { type: 'turn-started', turnId, agent: 'pm', trigger: [0], resumed: true, upTo: 2, author };
    log.add({ ...again, requestHash: explained(log, 'pm', 1).report.requestHash });
    expect(explained(log, 'pm', 2).report.sent).toBe(true);
    expect(explained(log, 'pm', 1).report.sent).toBe(false);
  });

  it('an explanation at an answer is the request that produced it', () => {
    const { log, answer } = logWithTurns();
    const { messages, report } = explained(log, 'pm', answer);
    expect(messages[0]?.content).toContain('Persona of Pm.');
    expect(messages.slice(1)).toEqual([{ role: 'user', content: 'one' }]);
    expect(report).toMatchObject({
      status: 'not_needed',
      included: [0],
      left_out: [],
      model: 'default',
      fault: null,
    });
    expect(report.window).toBe(100_000);
    expect(report.parts).toMatchObject([
      { kind: 'prefix', entries: [] },
      { kind: 'trigger', entries: [0] },
    ]);
  });

  it('an explanation at an entry is the same however many entries follow', () => {
    const { log, answer } = logWithTurns();
    const before = explained(log, 'pm', answer);
    log.person('three');
    log.enterMode('chat');
    expect(explained(log, 'pm', answer)).toEqual(before);
  });

  it('an explanation at another entry is the request that the agent would make if the log ended there', () => {
    const { log, byDev } = logWithTurns();
    expect(contents(explained(log, 'dev', 0))).toEqual(['one']);
    // A message of dev is no answer of pm: pm would answer the newest message of a person, after reading the rest.
    const view = explained(log, 'pm', byDev);
    expect(contents(view).at(-1)).toBe('two');
    expect(contents(view)).toContain('[Dev]: answer two');
    expect(contents(view)).toContain('=== NEW INTERACTION ===');
  });

  it('an explanation without an index uses the whole log, with the open turn if there is one', () => {
    const { log } = logWithTurns();
    const waiting = log.person('three');
    expect(contents(explained(log, 'pm')).at(-1)).toBe('three');
    log.person('four', ['dev']);
    log.start('pm', waiting);
    expect(contents(explained(log, 'pm')).at(-1)).toBe('three');
  });

  it('an explanation in an open turn shows the mode in which the request was made', () => {
    const log = Log.begun('one');
    log.enterMode('chat');
    expect(explained(log, 'pm').messages[0]?.content).toContain('- active: agent');
  });

  it('an explanation reports why a request must not be sent', () => {
    const small = sourcesOf('pm');
    const [setup] = small.agents.values();
    if (!setup) throw new Error('no agent');
    const agents = new Map([['pm', { ...setup, profile: { ...setup.profile, contextTokens: 1_001 } }]]);
    const outcome = explain(
      logWithTurns().log.entries,
      { conversation: 'demo', agent: 'pm', at: 0 },
      { live: { ...small, agents } },
    );
    expect(outcome).toMatchObject({
      ok: true,
      explanation: { report: { fault: { code: 'CONTEXT_STILL_TOO_LARGE' } } },
    });
  });

  it.each<[string, string, number | undefined, string, RegExp]>([
    ['an unknown agent', 'nobody', undefined, 'UNKNOWN_AGENT', /nobody/],
    ['an index beyond the log', 'pm', 99, 'NO_SUCH_ENTRY', /99; it has entries 0 to 7/],
    ['a negative index', 'pm', -1, 'NO_SUCH_ENTRY', /-1/],
    ['half an index', 'pm', 1.5, 'NO_SUCH_ENTRY', /1\.5/],
  ])('an explanation for %s is refused', (_, agent, at, code, message) => {
    const outcome = explain(
      logWithTurns().log.entries,
      { conversation: 'demo', agent, at },
      { live: sources },
    );
    expect(outcome).toMatchObject({ ok: false, refusal: { code, message: expect.stringMatching(message) } });
  });

  it('an explanation of a conversation without a message to answer is refused', () => {
    expect(explain([], { conversation: 'demo', agent: 'pm' }, { live: sources })).toMatchObject({
      refusal: { code: 'NOTHING_TO_EXPLAIN' },
    });
    expect(explain([], { conversation: 'demo', agent: 'pm', at: 0 }, { live: sources })).toMatchObject({
      refusal: { message: expect.stringMatching(/it is empty/) },
    });
    const log = new Log();
    log.enterMode('chat');
    expect(
      explain(log.entries, { conversation: 'demo', agent: 'pm', at: 0 }, { live: sources }),
    ).toMatchObject({
      refusal: { code: 'NOTHING_TO_EXPLAIN' },
    });
  });
});
