import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Conversation, checkKnowledge, planRepair } from '../../../src/conversation/index.ts';
import { runs } from '../../support/runs.ts';
import { expectCursors, messagesOf } from './core.ts';
import { typed } from './life.ts';
import { expectGuarded, expectNoCycle, expectSound, type TeamCore } from './team-core.ts';
import { applyStep, settle, type TeamStep, teamOf, teamSizes, teamSteps } from './team-life.ts';

/** Any interleaving of the actions of a team and its people, with crashes. On failure fast-check prints seed and path. */

type Sizes = Parameters<typeof teamOf>[0];

function lives(numRuns: number, check: boolean, property: (core: TeamCore, steps: TeamStep[]) => void): void {
  fc.assert(
    fc.property(teamSizes, teamSteps, (sizes: Sizes, steps) => property(teamOf(sizes, check), steps)),
    { numRuns: runs(numRuns) },
  );
}

/** One turn processes each routed entry, or the entry answers one question; every turn ends once. */
function expectAllAnswered(core: TeamCore): void {
  const { entries } = core;
  const started = typed(entries, 'turn-started');
  const ended = typed(entries, 'turn-ended').filter((entry) => entry.outcome !== 'waiting');
  expect(ended.map((entry) => entry.turnId).sort()).toEqual(
    [...new Set(started.map((entry) => entry.turnId))].sort(),
  );
  const tools = typed(entries, 'message').filter((entry) => entry.role === 'tool');
  for (const entry of entries) {
    const to =
      entry.type === 'handoff' || entry.type === 'delegation-requested'
        ? [entry.to]
        : entry.type === 'node-entered' || (entry.type === 'message' && entry.role === 'user')
          ? (entry.to ?? [])
          : [];
    for (const agent of to) {
      const turns = started.filter((turn) => turn.agent === agent && turn.trigger.includes(entry.index));
      const delivered = typed(entries, 'message-delivered').filter(
        (one) => one.agent === agent && one.entries.includes(entry.index),
      );
      const turnIds = new Set([...turns, ...delivered].map((one) => one.turnId));
      const asAnswer = tools.filter(
        (tool) => tool.author.id === agent && tool.answers?.includes(entry.index),
      );
      if (asAnswer.length > 0) for (const { turnId } of asAnswer) turnIds.delete(turnId ?? '');
      const times = turnIds.size + asAnswer.length;
      if (times !== 1) throw new Error(`entry ${entry.index}: ${agent} dealt with it ${times} times`);
    }
  }
}

/** Every call has one result; every delegation has one answer, late if and only if the call already had a result. */
function expectCallsAnswered(core: TeamCore): void {
  const { entries } = core;
  const messages = typed(entries, 'message');
  const results = messages.filter((entry) => entry.role === 'tool');
  const places = messages.flatMap((entry) =>
    (entry.tool_calls ?? []).map((_, position) => `${entry.index}_${position}`),
  );
  expect(results.map((entry) => `${entry.call?.index}_${entry.call?.position}`).sort()).toEqual(
    places.sort(),
  );
  const asked = typed(entries, 'delegation-requested');
  const answered = typed(entries, 'delegation-answered');
  const placeOf = (call: { index: number; position: number } | undefined) =>
    `${call?.index}_${call?.position}`;
  expect(answered.map((entry) => placeOf(entry.call)).sort()).toEqual(
    asked.map((entry) => placeOf(entry.call)).sort(),
  );
  for (const answer of answered) {
    const request = asked.find((entry) => placeOf(entry.call) === placeOf(answer.call));
    expect([answer.from, answer.to]).toEqual([request?.to, request?.from]);
    const result = results.find((entry) => placeOf(entry.call) === placeOf(answer.call));
    expect([answer.index, answer.late]).toEqual([answer.index, (result?.index ?? 0) < answer.index]);
    if (!answer.late) expect(result?.answers ?? []).toEqual(answer.answers);
    for (const index of answer.answers) expect(core.entries[index]?.author.id).toBe(answer.from);
  }
}

function expectWithinLimits(core: TeamCore): void {
  const { hopsPerTrigger, modelCallsPerTurn } = core.rules.limits;
  for (const started of typed(core.entries, 'turn-started')) {
    expect(started.hops).toBeLessThanOrEqual(hopsPerTrigger);
    const calls = typed(core.entries, 'message').filter(
      (entry) => entry.role === 'assistant' && entry.turnId === started.turnId,
    );
    expect(calls.length).toBeLessThanOrEqual(modelCallsPerTurn);
  }
}

describe('any interleaving of a team at work', () => {
  it('V1 to V14: every request is what the rules give, byte for byte, and extends the one before', () => {
    lives(30, true, (core, steps) => {
      for (const step of steps) applyStep(core, step);
      settle(core);
      expectCursors(core.entries);
      expect(checkKnowledge(core.entries)).toEqual([]);
    });
  });

  it('V17: with small windows a summary replaces what it names, and no other message moves', () => {
    let summaries = 0;
    // Some seeds make few summaries: more runs, until there are enough.
    for (let tries = 0; tries < 10 && summaries <= 10; tries++)
      lives(60, true, (core, steps) => {
        core.window = 200 + 10 * (steps.length % 20);
        for (const step of steps) applyStep(core, step);
        settle(core);
        expectCursors(core.entries);
        expect(checkKnowledge(core.entries)).toEqual([]);
        summaries += typed(core.entries, 'summary').length;
      });
    expect(summaries).toBeGreaterThan(0); // Otherwise the test would check nothing.
  });

  it('TURNS-5, TURNS-6: after every append no work is lost, no agent waits for itself, and the guard accepts every request', () => {
    lives(60, false, (core, steps) => {
      for (const step of steps) {
        applyStep(core, step);
        expectSound(core);
        expectNoCycle(core);
        expectGuarded(core);
      }
    });
  });

  it('every conversation ends without outstanding work: each trigger, call, delegation and question is answered once, within the limits', () => {
    lives(60, false, (core, steps) => {
      for (const step of steps) applyStep(core, step);
      settle(core);
      expectAllAnswered(core);
      expectCallsAnswered(core);
      expectWithinLimits(core);
      expect(planRepair(core.entries)).toEqual([]);
    });
  });

  it('a crash at any append loses nothing and repeats nothing', () => {
    fc.assert(
      fc.property(teamSizes, teamSteps, fc.nat(), (sizes, steps, cut) => {
        const core = teamOf(sizes, true);
        for (const step of steps) applyStep(core, step);
        core.crash(cut % core.boundaries.length);
        expectSound(core);
        expectGuarded(core);
        settle(core);
        expectAllAnswered(core);
        expectCallsAnswered(core);
        expectWithinLimits(core);
        expectCursors(core.entries);
      }),
      { numRuns: 40 },
    );
  });

  it('L1: state and views are a fold of the log', () => {
    lives(12, false, (core, steps) => {
      for (const step of steps) applyStep(core, step);
      const log = JSON.parse(JSON.stringify(core.entries));
      const reader = new Conversation(core.rules, log);
      expect(reader.state).toEqual(core.conversation.state);
      for (const agent of core.rules.roster.agents.keys())
        expect(messagesOf(reader.view(agent).build())).toEqual(messagesOf(core.view(agent)));
    });
  });
});
