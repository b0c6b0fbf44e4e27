import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/client/index.ts';
import { createTurnWatch } from '../../../src/conversation/progress/turn-watch.ts';
import { agent, ended, entryOf, person, started } from '../cli/support.ts';
import { type AnswerWord, ToolCore } from './tool-core.ts';

const handoff = (index: number, from: string, to: string): Entry =>
  entryOf('handoff', index, { from, to, summary: 's' });

const calling = (index: number, tool: string): Entry =>
  agent(index, 'pm', null, {
    tool_calls: [{ id: 'call_0', type: 'function', function: { name: tool, arguments: '{}' } }],
  });

/** Observes one entry after the other and says after which one the watch is settled, or null. */
const settledAfter = (agents: string[], entries: Entry[]) => indexWhen('settled', agents, entries);
const quietAfter = (agents: string[], entries: Entry[]) => indexWhen('quiet', agents, entries);

function indexWhen(state: 'settled' | 'quiet', agents: string[], entries: Entry[]): number | null {
  const watch = createTurnWatch();
  watch.addOutstanding(0, agents);
  for (const entry of entries) {
    watch.observe(entry);
    if (watch[state]) return entry.index;
  }
  return null;
}

const delegation = entryOf('delegation-requested', 3, {
  ...{ from: 'pm', to: 'dev', request: 'r' },
  call: { index: 2, position: 0 },
});

describe('the turns that a message still needs', () => {
  it('a message that was routed to no agent is settled at once', () => {
    const watch = createTurnWatch();
    watch.addOutstanding(0, []);
    expect(watch.settled).toBe(true);
  });

  it('a message is settled when its turn has ended', () => {
    expect(
      settledAfter(['pm'], [person(0, 'hi'), started(1, 'pm', [0]), agent(2, 'pm', 'ho'), ended(3, 'pm')]),
    ).toBe(3);
  });

  it('a message is outstanding until the turn of every addressed agent has ended', () => {
    const entries = [started(1, 'pm', [0]), ended(2, 'pm'), started(3, 'dev', [0]), ended(4, 'dev')];
    expect(settledAfter(['pm', 'dev'], entries)).toBe(4);
  });

  it('an earlier turn of the same agent does not settle a message', () => {
    const entries = [ended(1, 'pm', 'completed', 'old'), started(2, 'pm', [0]), ended(3, 'pm')];
    expect(settledAfter(['pm'], entries)).toBe(3);
  });

  it('a message is outstanding until the running turn that it was delivered to has ended', () => {
    const delivered = entryOf('message-delivered', 1, { turnId: 'old', agent: 'pm', entries: [0] });
    expect(settledAfter(['pm'], [delivered, agent(2, 'pm', 'x'), ended(3, 'pm', 'completed', 'old')])).toBe(
      3,
    );
  });

  it('a handoff keeps a message outstanding until the turn of its receiver has ended', () => {
    const entries = [
      started(1, 'pm', [0]),
      handoff(2, 'pm', 'dev'),
      ended(3, 'pm'),
      started(4, 'dev', [2]),
      ended(5, 'dev'),
    ];
    expect(settledAfter(['pm'], entries)).toBe(5);
  });

  it('a delegation keeps a message outstanding until the turn of its asker has ended', () => {
    const result = agent(7, 'pm', 'r', { role: 'tool', answers: [6], call: { index: 2, position: 0 } });
    const entries = [
      started(1, 'pm', [0]),
      calling(2, 'delegate'),
      delegation,
      ended(4, 'pm', 'waiting'),
      started(5, 'dev', [3]),
      ended(6, 'dev'),
      result,
      started(8, 'pm', [6]),
      ended(9, 'pm'),
    ];
    expect(settledAfter(['pm'], entries)).toBe(9);
    expect(quietAfter(['pm'], entries)).toBe(9);
  });

  it('a watch is quiet while only a question is open, and not between its answer and the next turn', () => {
    const answer = agent(5, 'pm', 'yes', { role: 'tool', answers: [4], call: { index: 2, position: 0 } });
    const asked = [started(1, 'pm', [0]), calling(2, 'ask'), ended(3, 'pm', 'waiting')];
    expect(quietAfter(['pm'], asked)).toBe(3);
    const watch = createTurnWatch();
    const steps: [boolean, readonly string[]][] = [];
    for (const entry of [...asked, person(4, 'yes'), answer, started(6, 'pm', [4]), ended(7, 'pm')]) {
      watch.observe(entry);
      if (entry.index >= 3) steps.push([watch.quiet, watch.asking]);
    }
    expect(steps).toEqual([
      [true, ['pm']],
      [true, ['pm']],
      [false, []],
      [false, []],
      [true, []],
    ]);
  });

  it('a watch is quiet while a delegate waits for a person', () => {
    const asked = [
      started(1, 'pm', [0]),
      calling(2, 'delegate'),
      delegation,
      ended(4, 'pm', 'waiting'),
      started(5, 'dev', [3], 'u'),
      agent(6, 'dev', null, {
        turnId: 'u',
        tool_calls: [{ id: 'call_0', type: 'function', function: { name: 'ask', arguments: '{}' } }],
      }),
      ended(7, 'dev', 'waiting', 'u'),
    ];
    expect(quietAfter(['pm'], asked)).toBe(7);
    const watch = createTurnWatch();
    for (const entry of [...asked, ended(8, 'dev', 'completed', 'u')]) watch.observe(entry);
    expect(watch.quiet).toBe(false); // The answer is about to resume the asker.
  });

  it('a delegation to a stopped agent keeps no message outstanding', () => {
    const entries = [started(1, 'pm', [0]), calling(2, 'delegate'), delegation, ended(4, 'pm', 'waiting')];
    expect(quietAfter(['pm'], entries)).toBeNull();
    expect(quietAfter(['pm'], [...entries, entryOf('agent-stopped', 5, { agent: 'dev', by: 'alice' })])).toBe(
      5,
    );
  });

  it('a delegation whose agent was stopped and resumed still keeps its asker waiting', () => {
    const place = { index: 2, position: 0 };
    const approval = (index: number, who: string, position: number) =>
      entryOf('approval-requested', index, {
        ...{ turnId: who === 'dev' ? who : undefined, agent: who, approvalId: `${who}${position}` },
        call: { index: who === 'pm' ? 2 : 5, position },
      });
    const entries = [
      started(1, 'pm', [0]),
      calling(2, 'delegate'),
      entryOf('delegation-requested', 3, { from: 'pm', to: 'dev', request: 'r', call: place }),
      started(4, 'dev', [3], 'dev'),
      entryOf('agent-stopped', 6, { agent: null, by: 'alice' }),
      entryOf('agent-resumed', 7, { agent: null, by: 'alice' }),
      approval(8, 'pm', 1),
      ended(9, 'pm', 'waiting'),
      approval(10, 'dev', 0),
      ended(11, 'dev', 'waiting', 'dev'),
    ];
    expect(quietAfter(['pm'], entries)).toBe(11);
    // The result of one call: the other is still open.
    const result = agent(12, 'pm', 'r', { role: 'tool', call: { index: 2, position: 1 } });
    const watch = createTurnWatch();
    watch.addOutstanding(0, ['pm']);
    for (const entry of [...entries, result]) watch.observe(entry);
    expect(watch.quiet).toBe(true);
  });

  it('an entered node keeps a message outstanding until the turn of its agent has ended', () => {
    const node = entryOf('node-entered', 2, { runId: 'r', node: 'build', to: ['dev'] });
    const entries = [started(1, 'pm', [0]), node, ended(3, 'pm'), started(4, 'dev', [2]), ended(5, 'dev')];
    expect(settledAfter(['pm'], entries)).toBe(5);
  });

  it('an answer to a question is outstanding until the rest of the asking turn has ended', () => {
    const result = agent(1, 'pm', 'yes', { role: 'tool', answers: [0] });
    expect(settledAfter(['pm'], [result, started(2, 'pm', [0]), ended(3, 'pm')])).toBe(3);
    expect(settledAfter(['pm'], [result, agent(2, 'pm', 'So.'), ended(3, 'pm')])).toBe(3); // The turn ran meanwhile.
  });

  it('a stop settles the messages of the stopped agents', () => {
    const stop = (who: string | null) => entryOf('agent-stopped', 1, { agent: who, by: 'alice' });
    expect(settledAfter(['pm', 'dev'], [stop(null)])).toBe(1);
    expect(settledAfter(['pm', 'dev'], [stop('pm')])).toBeNull();
  });

  it('a turn that ended before the reply to the post arrived settles its message', () => {
    const watch = createTurnWatch();
    for (const entry of [person(0, 'hi'), started(1, 'pm', [0]), ended(2, 'pm')]) watch.observe(entry);
    watch.addOutstanding(0, ['pm']);
    expect(watch.settled).toBe(true);
  });

  it('a watch lists the turns that ended other than completed', () => {
    const watch = createTurnWatch();
    for (const entry of [started(1, 'pm', [0]), ended(2, 'pm', 'failed')]) watch.observe(entry);
    expect(watch.unfinished).toEqual([{ agent: 'pm', outcome: 'failed' }]);
  });

  it('a watch is quiet, though not settled, while a turn waits for a person', () => {
    const watch = createTurnWatch();
    watch.observe(started(1, 'pm', [0]));
    expect(watch.quiet).toBe(false);
    watch.observe(ended(2, 'pm', 'waiting'));
    expect([watch.quiet, watch.settled]).toEqual([true, false]);
  });

  it('TURN-WATCH-6: a watch is held, not quiet, while a message waits for an agent whose own turn waits for a person', () => {
    const watch = createTurnWatch();
    const asks = agent(2, 'pm', null, {
      tool_calls: [{ id: 'x', type: 'function', function: { name: 'ask', arguments: '{}' } }],
    });
    for (const entry of [started(1, 'pm', [0]), asks, ended(3, 'pm', 'waiting')]) watch.observe(entry);
    watch.addOutstanding(4, ['pm']);
    expect([watch.quiet, watch.held]).toEqual([false, true]);
    watch.addOutstanding(4, ['dev']);
    expect([watch.quiet, watch.held]).toEqual([false, false]);
  });
});

/** Whether the watch is held after each append of the decider, the last of which ends the turn. */
function heldAfterEach(core: ToolCore): boolean[] {
  const watch = createTurnWatch();
  watch.addOutstanding(0, ['pm']);
  return core.boundaries.slice(1).map((end, batch) => {
    for (const entry of core.entries.slice(core.boundaries[batch], end)) watch.observe(entry);
    return watch.held;
  });
}

describe('TURN-WATCH-5: a turn whose approval was answered', () => {
  const ended = (core: ToolCore) => {
    core.act('pm', 'done');
    return heldAfterEach(core);
  };

  it('a turn runs from the approval until its tool has a result and its model has answered', () => {
    const core = ToolCore.calling('gated');
    core.answerApproval('gated', 'approve');
    core.done('gated');
    expect(ended(core)).toEqual([false, true, false, false, true]);
  });

  it('a turn runs after `rerun` as well', () => {
    const core = ToolCore.calling('risky');
    core.crash();
    core.answerApproval('risky', 'rerun');
    core.done('risky');
    expect(ended(core)).toEqual([false, false, true, false, false, true]);
  });

  it.each<[string, AnswerWord]>([
    ['gated', 'deny'],
    ['risky', 'result'],
    ['risky', 'failed'],
  ])('a turn continues at once where no tool is to run: %s, %s', (tool, word) => {
    const core = ToolCore.calling(tool);
    if (tool === 'risky') core.crash();
    core.answerApproval(tool, word);
    expect(ended(core).slice(-3)).toEqual([true, false, true]);
  });

  it('a turn continues when the approval expired', () => {
    const core = ToolCore.calling('gated');
    core.expire(core.approvalOf('gated'));
    expect(ended(core)).toEqual([false, true, false, true]);
  });

  it('a turn still waits for another pending approval, and runs when that is answered', () => {
    const core = ToolCore.calling('gated1', 'gated2');
    core.answerApproval('gated2', 'approve');
    core.answerApproval('gated1', 'approve');
    core.done('gated1');
    core.done('gated2');
    expect(ended(core)).toEqual([false, true, true, false, false, false, true]);
  });

  it('a turn waits again when its tool has ended and a question of the same answer is open', () => {
    const core = ToolCore.calling('gated', ['ask', { question: 'why?' }]);
    core.answerApproval('gated', 'approve');
    core.done('gated');
    expect(heldAfterEach(core)).toEqual([false, true, false, true]);
  });

  it('a message that is posted while the tool runs is outstanding until the end of the turn', () => {
    const core = ToolCore.calling('gated');
    core.answerApproval('gated', 'approve');
    const watch = createTurnWatch();
    for (const entry of core.entries) watch.observe(entry);
    const { entries } = core.post('and?');
    watch.addOutstanding(entries[0]?.index ?? -1, ['pm']);
    const seen = () => {
      for (const entry of core.entries.slice(entries[0]?.index)) watch.observe(entry);
      return [watch.quiet, watch.held, watch.settled];
    };
    expect(seen()).toEqual([false, false, false]);
    core.done('gated');
    expect(seen()).toEqual([false, false, false]);
    core.act('pm', 'done');
    expect(seen()).toEqual([true, true, true]);
  });
});
