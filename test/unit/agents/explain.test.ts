import { describe, expect, it } from 'vitest';
import { type Explanation, explain } from '../../../src/agents/index.ts';
import { Log, sourcesOf } from './support.ts';

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
  const outcome = explain(log.entries, 'demo', agent, at, sources);
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
    const log = new Log();
    log.start('pm', log.person('one'));
    log.enterMode('chat');
    expect(explained(log, 'pm').messages[0]?.content).toContain('- active: agent');
  });

  it('an explanation reports why a request must not be sent', () => {
    const small = sourcesOf('pm');
    const [setup] = small.agents.values();
    if (!setup) throw new Error('no agent');
    const agents = new Map([['pm', { ...setup, profile: { ...setup.profile, contextTokens: 1_001 } }]]);
    const outcome = explain(logWithTurns().log.entries, 'demo', 'pm', 0, { ...small, agents });
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
    const outcome = explain(logWithTurns().log.entries, 'demo', agent, at, sources);
    expect(outcome).toMatchObject({ ok: false, refusal: { code, message: expect.stringMatching(message) } });
  });

  it('an explanation of a conversation without a message to answer is refused', () => {
    expect(explain([], 'demo', 'pm', undefined, sources)).toMatchObject({
      refusal: { code: 'NOTHING_TO_EXPLAIN' },
    });
    expect(explain([], 'demo', 'pm', 0, sources)).toMatchObject({
      refusal: { message: expect.stringMatching(/it is empty/) },
    });
    const log = new Log();
    log.enterMode('chat');
    expect(explain(log.entries, 'demo', 'pm', 0, sources)).toMatchObject({
      refusal: { code: 'NOTHING_TO_EXPLAIN' },
    });
  });
});
