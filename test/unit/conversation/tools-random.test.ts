import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { type Entry, pendingApprovals, wireCallId } from '../../../src/conversation/index.ts';
import { runs } from '../../support/runs.ts';
import { type Called, PERSON } from './team.ts';
import { type AnswerWord, ToolTeam } from './tool-life.ts';
import { messagesOf, type RunTool } from './world.ts';

// Work that is bounded by its runs, not by a clock: a busy machine may take its time.
vi.setConfig({ testTimeout: 120_000 });

const AGENTS = ['pm', 'dev', 'qa'] as const;
const CALLS: readonly Called[] = [
  ['safe1'],
  ['safe2'],
  ['risky'],
  ['gated'],
  ['safe1', 'wrong'],
  ['unknown'],
  ['delegate', { to: 'dev', request: 'look' }],
  ['delegate', { to: 'qa', request: 'look' }],
  ['ask', { question: 'why?' }],
  ['handoff', { to: 'dev', summary: 'yours' }],
];
const WORDS: readonly AnswerWord[] = ['approve', 'deny', 'rerun', 'result', 'failed'];

const pick = fc.nat({ max: 9 });
const stepArbitrary = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('post' as const), pick }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      pick,
      calls: fc.array(fc.constantFrom(...CALLS), { maxLength: 5 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('finish' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('repeat' as const), pick: fc.nat() }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('word' as const), pick, word: fc.constantFrom(...WORDS) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('crash' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('policy' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const), pick }) },
);
type Step = typeof stepArbitrary extends fc.Arbitrary<infer T> ? T : never;

function at<T>(items: readonly T[], pick: number): T | undefined {
  return items[pick % Math.max(1, items.length)];
}

function take(team: ToolTeam, seen: Map<string, RunTool>, step: Step): void {
  for (const tool of team.tools) seen.set(wireCallId(tool.call), tool);
  if (step.do === 'post') team.post('go on', { to: [at(AGENTS, step.pick) ?? 'pm'] });
  else if (step.do === 'answer') {
    const call = at(team.calls, step.pick);
    if (call) team.actOn(call, 'words', step.calls);
  } else if (step.do === 'finish') {
    const tool = at(team.tools, step.pick);
    if (tool) team.finish(tool);
  } else if (step.do === 'repeat') repeat(team, at([...seen.values()], step.pick));
  else if (step.do === 'word') {
    const approval = at(pendingApprovals(team.conversation.state), step.pick);
    if (approval) team.answerTo(approval.approvalId, step.word);
  } else if (step.do === 'crash') crash(team, step.pick);
  else if (step.do === 'policy') team.judge.policy = step.pick % 2 ? 'run everything' : 'by name';
  else team.do({ type: step.pick % 3 ? 'resume' : 'stop', agent: null, by: PERSON });
}

/** A result that comes again, or after its turn, or from before a crash. */
function repeat(team: ToolTeam, tool: RunTool | undefined): void {
  if (!tool || team.running().length === 0) return;
  if (team.tools.some((other) => wireCallId(other.call) === wireCallId(tool.call))) return;
  const decision = team.finish(tool, 'late');
  expect([decision.reply.kind, decision.entries]).toEqual(['stale', []]);
}

/** Sometimes the last batch is lost, sometimes the runner had seen a result. */
function crash(team: ToolTeam, pick: number): void {
  const [tool] = team.tools;
  const audited = tool && pick % 3 === 0 ? [{ ...tool.call, content: 'audited' }] : [];
  team.crash(pick % 4 === 1 ? 1 : 0, audited);
}

/** Never twice without a person's word; never more than one result. */
function expectOnce(entries: readonly Entry[]): void {
  const starts = new Map<string, number>();
  const words = new Map<string, number>();
  const results = new Set<string>();
  for (const entry of entries) {
    if (!('call' in entry) || !entry.call) continue;
    const place = wireCallId(entry.call);
    if (entry.type === 'approval-requested') words.set(place, 0);
    else if (entry.type === 'approval-answered' && ['approve', 'rerun'].includes(entry.answer))
      words.set(place, (words.get(place) ?? 0) + 1);
    else if (entry.type === 'tool-started') {
      const before = starts.get(place) ?? 0;
      const granted = words.get(place);
      const allowed = granted === undefined ? before < (entry.risk === 'risky' ? 1 : 2) : granted === 1;
      expect([entry.index, allowed]).toEqual([entry.index, true]);
      expect([entry.index, results.has(place)]).toEqual([entry.index, false]);
      if (granted !== undefined) words.set(place, 0);
      starts.set(place, before + 1);
    } else if (entry.type === 'message' && entry.role === 'tool') {
      expect([entry.index, results.has(place)]).toEqual([entry.index, false]);
      results.add(place);
    }
  }
}

function look(team: ToolTeam) {
  return [team.pending(), ...AGENTS.map((agent) => messagesOf(team.view(agent)))];
}

describe('any interleaving of calls, results, answers and crashes', () => {
  it('L10 to L13: every request passes the guard, a call has one result, and what is risky starts once per word', () => {
    const reached = { starts: 0, asked: 0, again: 0 };
    fc.assert(
      fc.property(fc.array(stepArbitrary, { minLength: 25, maxLength: 60 }), (steps) => {
        const team = new ToolTeam(AGENTS);
        const seen = new Map<string, RunTool>();
        team.post('go');
        for (const step of steps) take(team, seen, step);
        expectOnce(team.entries);
        for (const entry of team.entries) {
          if (entry.type === 'tool-started') reached.starts++;
          if (entry.type === 'approval-requested') reached[entry.mayHaveRun ? 'again' : 'asked']++;
        }
        // Repair is idempotent once nothing runs that it could take up.
        for (let crashes = 0; team.crash() && team.tools.length > 0; crashes++)
          expect(crashes).toBeLessThan(100);
        const before = look(team);
        team.crash();
        expect(look(team)).toEqual(before);
        // And every conversation comes to its end, whatever was asked.
        team.do({ type: 'resume', agent: null, by: PERSON });
        for (let rounds = 0; rounds < 200; rounds++) {
          team.drain();
          const [approval] = pendingApprovals(team.conversation.state);
          if (!approval) break;
          team.answerTo(approval.approvalId, approval.mayHaveRun ? 'failed' : 'approve');
        }
        expect(team.pending()).toEqual([]);
        expectOnce(team.entries);
      }),
      { numRuns: runs(100) },
    );
    expect(Math.min(reached.starts, reached.asked, reached.again)).toBeGreaterThan(0);
  });
});
