import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  checkLaws,
  createTurnWatch,
  type Entry,
  isStopped,
  type Judgement,
  pendingApprovals,
  wireCallId,
} from '../../../src/conversation/index.ts';
import { size } from '../../support/runs.ts';
import { messagesOf, type RunTool } from './core.ts';
import { typed } from './life.ts';
import { type Called, PERSON } from './team-core.ts';
import { type AnswerWord, POLICIES, type Policy, ToolCore } from './tool-core.ts';

// The number of runs bounds the work, so a slow machine may take long.
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
  { weight: 2, arbitrary: fc.record({ do: fc.constant('policy' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('expire' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('ask' as const), pick }) },
);
type Step = typeof stepArbitrary extends fc.Arbitrary<infer T> ? T : never;

function at<T>(items: readonly T[], pick: number): T | undefined {
  return items[pick % Math.max(1, items.length)];
}

/** What happened outside the log, to compare the log with. */
class Observations {
  readonly runs = new Map<string, RunTool>();
  /** By position: the decision of the policy when the call was requested. */
  readonly judgements = new Map<string, Judgement>();

  see(core: ToolCore): void {
    for (const tool of core.tools) this.runs.set(wireCallId(tool.call), tool);
    for (const entry of typed(core.entries, 'message'))
      for (const [position, { function: tool }] of (entry.tool_calls ?? []).entries()) {
        const place = wireCallId({ index: entry.index, position });
        if (!this.judgements.has(place)) this.judgements.set(place, core.judge.judge(tool));
      }
  }

  /** A lost batch frees its positions. */
  forget(length: number): void {
    for (const place of this.judgements.keys())
      if (Number(/^c(\d+)_/.exec(place)?.[1]) >= length) {
        this.judgements.delete(place);
        this.runs.delete(place);
      }
  }
}

function applyStep(core: ToolCore, witness: Observations, step: Step): void {
  if (step.do === 'post') core.post('go on', { to: [at(AGENTS, step.pick) ?? 'pm'] });
  else if (step.do === 'answer') {
    const call = at(core.calls, step.pick);
    if (call) core.actOn(call, 'words', step.calls);
  } else if (step.do === 'finish') {
    const tool = at(core.tools, step.pick);
    if (tool) core.finish(tool);
  } else if (step.do === 'repeat') repeat(core, at([...witness.runs.values()], step.pick));
  else if (step.do === 'word') {
    const approval = at(pendingApprovals(core.conversation.state), step.pick);
    if (approval) core.answerApprovalId(approval.approvalId, step.word);
  } else if (step.do === 'expire') {
    const asked = at(typed(core.entries, 'approval-requested'), step.pick); // Also one that is already answered.
    if (asked) core.expire(asked.approvalId);
  } else if (step.do === 'crash') crash(core, step.pick, witness);
  else if (step.do === 'ask') askForServer(core, at(core.tools, step.pick), step.pick);
  else if (step.do === 'policy') core.judge.policy = at<Policy>(POLICIES, step.pick) ?? 'by name';
  else core.do({ type: step.pick % 3 ? 'resume' : 'stop', agent: null, by: PERSON });
  witness.see(core);
  expectHeldAtRest(core);
}

/** The server of a running call asks a person, or waits no longer (SERVER-QUESTION-1). */
function askForServer(core: ToolCore, tool: RunTool | undefined, pick: number): void {
  if (!tool) return;
  const { agent, turnId, call } = tool;
  const asks = pick % 4 === 0 ? null : { server: 'forms', message: 'When?', schema: {} };
  core.do({ type: 'tool-asks', agent, turnId, call, asks });
}

/** TURN-WATCH-6: between two appends a watch of the log agrees with the agents. */
function expectHeldAtRest(core: ToolCore): void {
  const { state, entries } = core.conversation;
  if (AGENTS.some((agent) => isStopped(state, agent))) return; // A stopped agent has outstanding work that does not run.
  const watch = createTurnWatch();
  for (const entry of entries) {
    if (entry.type === 'message' && entry.author.kind === 'person')
      watch.addOutstanding(entry.index, entry.to ?? []);
    watch.observe(entry);
  }
  const runs = AGENTS.some((agent) => {
    const { turn } = state.agents[agent] ?? {};
    return turn?.status === 'running' && !turn.openCalls.some(({ question }) => question);
  });
  expect([entries.length, watch.held]).toEqual([entries.length, !runs]);
}

/** A result that is repeated, late or from before a crash adds at most one note and changes no view. */
function repeat(core: ToolCore, tool: RunTool | undefined): void {
  if (!tool || core.tools.some((other) => wireCallId(other.call) === wireCallId(tool.call))) return;
  const before = visibleState(core);
  const { entries, effects } = core.finish(tool, 'late');
  expect([entries.length <= 1, entries.every((entry) => entry.type === 'note'), effects]).toEqual([
    true,
    true,
    [],
  ]);
  expect(visibleState(core)).toEqual(before);
}

/** Sometimes the crash loses the last batch; sometimes the audit log has the result, or proves that none ran. */
function crash(core: ToolCore, pick: number, witness: Observations): void {
  const [tool] = core.tools;
  const audited = tool && pick % 3 < 2 ? [{ ...tool.call, content: pick % 3 === 0 ? 'audited' : null }] : [];
  witness.forget(core.boundaries.at(pick % 4 === 1 ? -2 : -1) ?? 0);
  core.crash(pick % 4 === 1 ? 1 : 0, audited);
}

/** A call that needed an approval or was risky at its request is no safer at its start, under any policy (L11). */
function expectNoLooser(log: readonly Entry[], { judgements }: Observations): void {
  const words = new Set<string>();
  for (const entry of withoutQuestions(log)) {
    if (entry.type === 'approval-answered' && entry.call && ['approve', 'rerun'].includes(entry.answer))
      words.add(wireCallId(entry.call));
    if (entry.type !== 'tool-started') continue;
    const place = wireCallId(entry.call);
    const before = judgements.get(place);
    expect([entry.index, before?.kind]).not.toEqual([entry.index, 'refuse']);
    if (before?.kind === 'ask') expect([entry.index, words.has(place)]).toEqual([entry.index, true]);
    if (before?.kind !== 'refuse' && before?.risk === 'risky')
      expect([entry.index, entry.risk]).toEqual([entry.index, 'risky']);
  }
}

/** No call runs twice without an approval, has two results, or starts after an expiry. */
function expectOnce(log: readonly Entry[]): void {
  const starts = new Map<string, number>();
  const words = new Map<string, number>();
  const results = new Set<string>();
  for (const entry of withoutQuestions(log)) {
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

/** Without what servers ask: it starts and ends no call. */
function withoutQuestions(entries: readonly Entry[]): Entry[] {
  const asked = typed(entries, 'approval-requested').filter(({ asks }) => asks);
  const ids = new Set(asked.map(({ approvalId }) => approvalId));
  return entries.filter((entry) => !('approvalId' in entry && ids.has(entry.approvalId)));
}

function visibleState(core: ToolCore) {
  return [core.pending(), ...AGENTS.map((agent) => messagesOf(core.view(agent)))];
}

describe('any interleaving of calls, results, answers, expiries, policies and crashes', () => {
  it('L10 to L13: every request passes the guard, a call has one result, and a risky call starts once per approval', () => {
    const reached = { starts: 0, asked: 0, again: 0, expired: 0, late: 0 };
    fc.assert(
      fc.property(fc.array(stepArbitrary, { minLength: 25, maxLength: 60 }), (steps) => {
        const core = new ToolCore(AGENTS);
        const witness = new Observations();
        core.post('go');
        for (const step of steps) applyStep(core, witness, step);
        expectOnce(core.entries);
        expectNoLooser(core.entries, witness);
        for (const entry of core.entries) {
          if (entry.type === 'tool-started') reached.starts++;
          if (entry.type === 'note') reached.late++;
          if (entry.type === 'approval-answered' && entry.answer === 'expired') reached.expired++;
          if (entry.type === 'approval-requested' && !entry.asks)
            reached[entry.mayHaveRun ? 'again' : 'asked']++;
        }
        // Recovery is idempotent when no tool is left to run again.
        for (let crashes = 0; core.crash() && core.tools.length > 0; crashes++)
          expect(crashes).toBeLessThan(100);
        const before = visibleState(core);
        core.crash();
        expect(visibleState(core)).toEqual(before);
        // Every conversation ends without outstanding work.
        core.do({ type: 'resume', agent: null, by: PERSON });
        for (let rounds = 0; rounds < 200; rounds++) {
          core.drain();
          const [approval] = pendingApprovals(core.conversation.state);
          if (!approval) break;
          core.answerApprovalId(approval.approvalId, approval.mayHaveRun ? 'failed' : 'approve');
        }
        expect(core.pending()).toEqual([]);
        expect(checkLaws(core.entries)).toEqual([]);
        expectOnce(core.entries);
        expectNoLooser(core.entries, witness);
      }),
      { numRuns: size(150) },
    );
    expect(Math.min(...Object.values(reached))).toBeGreaterThan(0);
  });
});
