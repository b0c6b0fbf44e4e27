import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CallersResult,
  type FilePart,
  planRepair,
  type Reply,
  resultFailure,
  toolError,
} from '../../../src/conversation/index.ts';
import { runs } from '../../support/runs.ts';
import { messagesOf, type RunTool } from './core.ts';
import { typed } from './life.ts';
import { type Called, kinds, PERSON } from './team-core.ts';
import { type Policy, ToolCore } from './tool-core.ts';

describe('the calls of one answer', () => {
  it('contiguous safe calls start together; a risky call runs alone and in its position', () => {
    const core = ToolCore.calling('safe1', 'safe2', 'risky', 'safe3', 'safe4');
    expect(core.running()).toEqual(['safe1', 'safe2']);
    core.done('safe2');
    expect(core.running()).toEqual(['safe1']);
    core.done('safe1');
    expect(core.running()).toEqual(['risky']);
    core.done('risky');
    expect(core.running()).toEqual(['safe3', 'safe4']);
    core.done('safe4');
    core.done('safe3');
    expect(core.calls.map((call) => call.agent)).toEqual(['pm']);
    expect(core.shown()).toEqual(['did safe1', 'did safe2', 'did risky', 'did safe3', 'did safe4']);
  });

  it('two risky calls run one after the other', () => {
    const core = ToolCore.calling('risky1', 'risky2');
    expect(core.running()).toEqual(['risky1']);
    core.done('risky1');
    expect(core.running()).toEqual(['risky2']);
  });

  it.each([
    ['unknown', {}, 'TOOL_NOT_AVAILABLE'],
    ['forbidden', {}, 'FORBIDDEN'],
    ['safe', 'wrong', 'INVALID_ARGUMENTS'],
  ])('a call of %s (%j) is answered with %s and runs nothing', (name, given, code) => {
    const core = ToolCore.calling([name, given]);
    expect(core.running()).toEqual([]);
    expect(core.starts(name)).toEqual([]);
    expect(JSON.parse(core.result(name)).error.code).toBe(code);
    expect(core.calls.length).toBe(1);
  });

  it('the calls beside a refused call run, with results in call order', () => {
    const core = ToolCore.calling('safe1', 'unknown', 'safe2');
    expect(core.running()).toEqual(['safe1', 'safe2']);
    core.done('safe2');
    core.done('safe1');
    expect(core.shown()).toEqual(['did safe1', expect.stringContaining('TOOL_NOT_AVAILABLE'), 'did safe2']);
  });

  it('calls that became forbidden after the request do not start', () => {
    const core = ToolCore.calling('risky1', 'safe1', 'risky2');
    core.judge.policy = 'forbid everything';
    core.done('risky1');
    expect(core.running()).toEqual([]);
    expect(core.shown()).toEqual([
      'did risky1',
      expect.stringContaining('FORBIDDEN'),
      expect.stringContaining('FORBIDDEN'),
    ]);
  });

  it('L9: the intent is in the log before the tool runs, with the risk', () => {
    const core = ToolCore.calling('safe', 'risky');
    expect(core.tools.map((tool) => core.entries[tool.key]?.type)).toEqual(['tool-started']);
    core.done('safe');
    expect(typed(core.entries, 'tool-started').map((entry) => entry.risk)).toEqual(['safe', 'risky']);
  });

  it('TURNS-3: a repeated report, and one of a call that has not started, change nothing', () => {
    const core = ToolCore.calling('safe', 'risky');
    const run = core.tool('safe');
    const early = core.finish({ ...run, call: { ...run.call, position: 1 } });
    expect([early.reply.kind, early.entries]).toEqual(['stale', []]);
    core.done('safe');
    const again = core.finish(run, 'did safe');
    expect([again.reply.kind, again.entries]).toEqual(['stale', []]);
    expect(core.result('safe')).toBe('did safe');
  });

  it('V13: a turn waits for its delegation, its question and its tool', () => {
    const core = ToolCore.calling(
      ['delegate', { to: 'dev', request: 'look' }],
      'safe',
      ['ask', { question: 'why?' }],
      'gated',
    );
    expect(core.running()).toEqual(['safe']);
    expect(core.turn('pm')?.status).toBe('running');
    core.done('safe');
    expect(core.turn('pm')?.status).toBe('waiting');
    core.act('dev', 'looked');
    expect(core.turn('pm')?.status).toBe('waiting');
    core.answerApproval('gated', 'approve');
    expect(core.running()).toEqual(['gated']);
    core.done('gated');
    expect(core.turn('pm')?.status).toBe('waiting');
    core.post('because');
    expect(core.shown()).toEqual(['looked', 'did safe', 'because', 'did gated']);
    expect(core.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('a handoff is carried out after the tools beside it, also after one with an approval', () => {
    const core = ToolCore.calling(['handoff', { to: 'dev', summary: 'yours' }], 'safe', 'gated');
    core.done('safe');
    expect(core.turn('dev')).toBeNull();
    core.answerApproval('gated', 'deny');
    expect(core.turn('pm')).toBeNull();
    expect(core.calls.map((call) => call.agent)).toEqual(['dev']);
  });

  it('a stop while tools run starts none of the others', () => {
    const core = ToolCore.calling('safe', 'risky');
    core.do({ type: 'stop', agent: null, by: PERSON });
    core.done('safe');
    expect(core.running()).toEqual([]);
    expect(core.outcomes('pm')).toEqual(['aborted']);
    expect(core.result('risky')).toContain('not run');
  });
});

describe('tools after a crash', () => {
  it('a started safe call runs once more after a crash, with a mark, and not a third time', () => {
    const core = ToolCore.calling('safe');
    const { reply } = core.crash();
    expect(reply).toEqual({ kind: 'recovered', count: { repaired: 0, retried: 1, unknown: 0 } });
    expect(core.running()).toEqual(['safe']);
    expect(core.starts('safe').map((entry) => entry.rerun ?? false)).toEqual([false, true]);
    expect(core.crash().reply).toMatchObject({ count: { retried: 0, unknown: 1 } });
    expect(core.running()).toEqual([]);
    expect(core.result('safe')).toContain('INTERRUPTED');
    expect(core.starts('safe').length).toBe(2);
    expect(core.calls.length).toBe(1);
  });

  it('TOOLS-3: recovery requests an approval for a started risky call, and runs nothing', () => {
    const core = ToolCore.calling('risky', 'safe');
    const { entries } = core.crash();
    expect(kinds(entries)).toEqual(['turn-started pm', 'approval-requested', 'turn-ended pm waiting']);
    expect(core.running()).toEqual([]);
    expect(core.last('approval-requested')).toMatchObject({ tool: 'risky', mayHaveRun: true });
    expect(core.crash().entries).toEqual([]); // Requested once.
    core.answerApproval('risky', 'rerun');
    expect(core.running()).toEqual(['risky']);
    core.done('risky');
    expect(core.running()).toEqual(['safe']);
  });

  it.each([
    ['result', { result: 'it was sent' }, 'it was sent'],
    ['failed', { reason: 'no mail came' }, 'no mail came'],
    ['failed', {}, 'did not happen'],
  ] as const)('the answer %s (%j) of a person runs nothing', (answer, more, shown) => {
    const core = ToolCore.calling('risky');
    core.crash();
    core.answerApproval('risky', answer, more);
    expect(core.running()).toEqual([]);
    expect(core.result('risky')).toContain(shown);
    expect(core.calls.length).toBe(1);
  });

  it.each(['risky', 'safe'])('recovery takes the result of a %s call from the audit log', (name) => {
    const core = ToolCore.calling(name);
    const { index, position } = core.tool(name).call;
    const { reply } = core.crash(0, [{ index, position, content: 'it happened' }]);
    expect(reply).toEqual({ kind: 'recovered', count: { repaired: 1, retried: 0, unknown: 0 } });
    expect(core.result(name)).toBe('it happened');
    expect([core.running(), core.pending(), core.calls.length]).toEqual([[], [], 1]);
  });

  it.each(['safe', 'risky', 'gated'])(
    'B4: recovery runs a %s call that provably did not run, by its one start and without a question',
    (name) => {
      const next = name === 'safe' ? 'risky2' : 'safe2';
      const core = ToolCore.calling(name, next);
      if (name === 'gated') core.answerApproval(name, 'approve');
      const { call } = core.tool(name);
      for (let crashes = 0; crashes < 3; crashes++) {
        const { reply, entries } = core.crash(0, [{ ...call, content: null }]);
        expect(reply).toMatchObject({ count: { repaired: 0, unknown: 0 } });
        expect(kinds(entries)).not.toContain('approval-requested');
        expect(core.tool(name).call).toEqual(call);
      }
      expect(core.starts(name)).toHaveLength(1);
      core.done(name);
      expect(core.running()).toEqual([next]); // Each call keeps its position.
      expect(core.result(name)).not.toContain('unknown');
    },
  );

  it.each<[string, Policy]>([
    ['risky', 'forbid everything'],
    ['risky', 'ask everything'],
    ['gated', 'forbid everything'],
    ['safe', 'ask everything'],
  ])(
    'TOOLS-4: recovery requests an approval for a %s call that did not run if the policy now says %s',
    (name, policy) => {
      const core = ToolCore.calling(name);
      if (name === 'gated') core.answerApproval(name, 'approve');
      const { call } = core.tool(name);
      core.judge.policy = policy;
      core.crash(0, [{ ...call, content: null }]);
      expect([core.running(), core.pending()]).toEqual([[], [name]]);
      expect(core.last('approval-requested')).toMatchObject({ mayHaveRun: true });
    },
  );

  it('TOOLS-4: recovery runs nothing for a turn that was stopped, though the call did not run', () => {
    const core = ToolCore.calling('risky');
    const { call } = core.tool('risky');
    core.do({ type: 'stop', agent: null, by: PERSON });
    core.crash(0, [{ ...call, content: null }]);
    expect([core.running(), core.pending()]).toEqual([[], []]);
    expect(core.outcomes('pm')).toEqual(['aborted']);
  });

  it('recovery takes the result from the audit log for a turn that was stopped, too', () => {
    const core = ToolCore.calling('risky');
    const { index, position } = core.tool('risky').call;
    core.do({ type: 'stop', agent: null, by: PERSON });
    core.crash(0, [{ index, position, content: 'it happened' }]);
    expect(core.result('risky')).toBe('it happened');
    expect(core.outcomes('pm')).toEqual(['aborted']);
  });

  it('recovery gives a safe call that is forbidden now an error result', () => {
    const core = ToolCore.calling('safe');
    core.judge.policy = 'forbid everything';
    core.crash();
    expect(core.running()).toEqual([]);
    expect(core.result('safe')).toContain('FORBIDDEN');
  });

  it('L12: recovery reports an unknown outcome for a call that had started when its turn was stopped', () => {
    const core = ToolCore.calling('risky');
    core.do({ type: 'stop', agent: null, by: PERSON });
    core.crash();
    expect(core.result('risky')).toContain('unknown');
  });

  it('L12: recovery reports an unknown outcome after a stop during the request for an approval, too', () => {
    const core = ToolCore.calling('risky');
    core.crash();
    core.do({ type: 'stop', agent: null, by: PERSON });
    expect(core.result('risky')).toContain('unknown');
  });

  it('recovery repairs the calls of several agents independently', () => {
    const core = ToolCore.calling(['delegate', { to: 'dev', request: 'look' }], 'risky');
    core.act('dev', null, ['safe'], ['gated']);
    core.crash();
    expect([core.running(), core.pending().sort()]).toEqual([['safe'], ['gated', 'risky']]);
    core.done('safe');
    core.answerApproval('gated', 'deny', { reason: 'no' });
    core.act('dev', 'looked');
    core.answerApproval('risky', 'failed');
    expect(core.shown()).toEqual(['looked', expect.stringContaining('FAILED')]);
  });
});

function stoppedInTheMiddle(name: string) {
  const core = ToolCore.calling(name);
  const tool = core.tool(name);
  core.do({ type: 'stop', agent: null, by: PERSON });
  core.crash(); // The outcome of the running call is recorded as unknown.
  return { core, tool };
}

describe('a late result', () => {
  it('L12: a late result of an aborted turn is a note that names the call', () => {
    const { core, tool } = stoppedInTheMiddle('risky');
    const { entries, effects, reply } = core.finish(tool, 'it was sent');
    expect([reply.kind, entries.length, effects]).toEqual(['done', 1, []]);
    expect(core.last('note')).toMatchObject({
      author: { kind: 'system' },
      call: tool.call,
      toolName: 'risky',
      content: `a late result of risky (call c${tool.call.index}_0): it was sent`,
    });
    expect(core.result('risky')).toContain('unknown'); // The first result counts.
    expect(planRepair(core.entries)).toEqual([]);
  });

  it('a late result changes nothing after a person answered that the call failed', () => {
    const core = ToolCore.calling('risky');
    const tool = core.tool('risky');
    core.crash();
    core.answerApproval('risky', 'failed');
    const before = core.shown();
    core.finish(tool, 'it was sent');
    expect(core.last('note').content).toContain('it was sent');
    expect(core.shown()).toEqual(before);
  });

  it('a late result leaves a pending approval to the person', () => {
    const core = ToolCore.calling('risky');
    const tool = core.tool('risky');
    core.crash();
    core.finish(tool, 'it was sent');
    expect(core.last('note').content).toContain('it was sent');
    expect(core.pending()).toEqual(['risky']);
    core.answerApproval('risky', 'result', { result: 'sent' });
    expect(core.shown()).toEqual(['sent']);
  });

  it('L18: a late result is in no view', () => {
    const { core, tool } = stoppedInTheMiddle('risky');
    core.finish(tool, 'it was sent');
    core.do({ type: 'resume', agent: null, by: PERSON });
    core.post('and?', { to: ['pm', 'dev'] });
    for (const agent of ['pm', 'dev'])
      expect(JSON.stringify(messagesOf(core.view(agent)))).not.toContain('it was sent');
  });

  it('a large late result keeps its file under the same id', () => {
    const { core, tool } = stoppedInTheMiddle('risky');
    const { agent, turnId, call } = tool;
    const large = { id: 'big', fullOutputPath: '@state/logs/tool-results/demo/big.json' };
    const report = {
      type: 'tool-finished',
      agent,
      turnId,
      call,
      duration: 1,
      result: 'the beginning',
    } as const;
    core.do({ ...report, ...large });
    expect(core.last('note')).toMatchObject(large);
  });

  it('TURNS-3: a late result is kept once, however often it is reported', () => {
    const { core, tool } = stoppedInTheMiddle('risky');
    for (const result of ['half \ud800', 'half \ud800', 'other', 'half \ud800']) core.finish(tool, result);
    expect(typed(core.entries, 'note').length).toBe(2);
  });

  it.each<[string, Partial<RunTool>]>([
    ['of another agent', { agent: 'dev' }],
    ['of another turn', { turnId: 'another' }],
    ['of no call', { call: { index: 0, position: 0 } }],
    ['of a position that was not called', { call: { index: 2, position: 7 } }],
  ])('TURNS-3: a late result %s is not kept', (_, other) => {
    const { core, tool } = stoppedInTheMiddle('risky');
    expect(tool.call.index).toBe(2);
    const decision = core.finish({ ...tool, ...other }, 'it was sent');
    expect([decision.reply.kind, decision.entries]).toEqual(['stale', []]);
  });

  it('TURNS-3: a late result of a call that never started is not kept', () => {
    const core = ToolCore.calling('safe', 'gated');
    const safe = core.tool('safe');
    core.do({ type: 'stop', agent: null, by: PERSON });
    core.done('safe');
    const decision = core.finish({ ...safe, call: { ...safe.call, position: 1 } }, 'it was sent');
    expect([decision.reply.kind, decision.entries]).toEqual(['stale', []]);
  });
});

describe('the failure of a call', () => {
  const fails = (core: ToolCore) =>
    typed(core.entries, 'message').flatMap(({ role, content }) =>
      role === 'tool' ? [resultFailure(content ?? '')?.code] : [],
    );

  it('is found after what a person said and changed with the approval, and before the notice that it repeats itself', () => {
    const failed = toolError('NOT_FOUND', 'no such file');
    const core = ToolCore.calling('gated');
    const answer = { type: 'answer', answer: 'approve', by: PERSON, reason: 'go on' } as const;
    core.do({ ...answer, approvalId: core.approvalOf('gated'), arguments: '{"path":"b"}' });
    core.done('gated', failed);
    expect(core.last('message').content).toMatch(/^\[.* changed .*\n\[.* approved .*\n\{"error"/);
    for (let call = 1; call <= 3; call += 1) round(core, [['safe']], [failed]);
    expect(noticed(core)).toContain(true);
    expect(fails(core)).toEqual(['NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND']);
  });

  it.each([
    '{"error":{"code":"A"}}\n{"error":{"code":"B"}}',
    '{"error":"A"}',
    'x\n{"error":{"code":"A"}}',
    '',
  ])('is not the output %j', (content) => {
    expect(resultFailure(content)).toBeNull();
  });
});

const started = () => {
  const core = new ToolCore().posted('go');
  return core;
};

/** One answer with calls, and the result of each. */
function round(core: ToolCore, calls: readonly Called[], results: readonly string[], words = ''): void {
  core.act('pm', words, ...calls);
  for (const [at, result] of results.entries()) core.done(calls[at]?.[0] ?? '', result);
}

const isOpen = (core: ToolCore) => core.turn('pm') !== null;
const limits = (core: ToolCore) => typed(core.entries, 'limit-reached').map(({ limit }) => limit);
const noticed = (core: ToolCore) =>
  typed(core.entries, 'message').flatMap(({ role, content }) =>
    role === 'tool' ? [content?.includes('three times in a row') ?? false] : [],
  );

describe('an agent that repeats a call', () => {
  it('gets a notice with the third same result, and its turn ends after the fifth with a limit that people see', () => {
    const core = started();
    for (let call = 1; call <= 5; call += 1) {
      expect(isOpen(core)).toBe(true);
      // Spaces and what it says beside the call do not make another call of it.
      const given = call % 2 === 0 ? '{ "path": "a" }' : '{"path":"a"}';
      round(core, [['safe', given]], ['nothing'], `try ${call}`);
    }
    expect(isOpen(core)).toBe(false);
    expect(noticed(core)).toEqual([false, false, true, false, false]);
    expect(limits(core)).toEqual(['repeatedCalls']);
    expect(typed(core.entries, 'turn-ended').at(-1)?.outcome).toBe('limited');
    expect(typed(core.entries, 'limit-reached')[0]?.content).toBe(
      'pm made the same calls with the same results 5 times in a row',
    );
  });

  it('is noticed with refused calls and with several calls in one answer, too', () => {
    const both = started();
    for (let call = 1; call <= 5; call += 1) {
      both.act('pm', '', ['safe1'], ['unknown'], ['safe2']);
      both.done('safe2', 'b');
      both.done('safe1', 'a');
    }
    expect(isOpen(both)).toBe(false);
    expect(noticed(both).filter(Boolean)).toEqual([true]);
  });

  it.each<[string, (core: ToolCore, call: number) => void]>([
    ['another result', (core, call) => round(core, [['safe']], [`step ${call}`])],
    ['other arguments', (core, call) => round(core, [['safe', { page: call }]], ['nothing'])],
    ['another tool', (core, call) => round(core, [[`safe${call}`]], ['nothing'])],
    [
      'the same permission, which is given',
      (core) => {
        core.judge.policy = 'run everything';
        round(core, [['permit_execute', { command: 'npm test' }]], ['permitted']);
      },
    ],
    [
      'another call beside it',
      (core, call) => round(core, [['safe'], [`safe${call}`]], ['nothing', 'nothing']),
    ],
  ])('may continue with %s', (_, repeat) => {
    const core = started();
    for (let call = 1; call <= 12; call += 1) repeat(core, call);
    expect(isOpen(core)).toBe(true);
    expect(limits(core)).toEqual([]);
    expect(noticed(core)).not.toContain(true);
  });

  it('may go on with more permissions than a turn may have model calls; those that are refused count', () => {
    const asks = (core: ToolCore, call: number) =>
      core.act('pm', '', ['permit_execute', { command: `npm test ${call}` }]);
    const core = started();
    core.judge.policy = 'run everything';
    for (let call = 1; call <= 60; call += 1) {
      asks(core, call);
      core.done('permit_execute', 'permitted');
    }
    expect(isOpen(core)).toBe(true);
    const other = started();
    other.judge.policy = 'forbid everything';
    for (let call = 1; call <= 50; call += 1) asks(other, call);
    expect(limits(other)).toEqual(['modelCallsPerTurn']);
  });

  it('begins anew with a message that a person sends into the turn, with the answer of a person, and in the next turn', () => {
    const core = started();
    for (let call = 1; call <= 4; call += 1) round(core, [['safe']], ['nothing']);
    core.act('pm', '', ['safe']);
    core.post('try harder', { delivery: 'steer' });
    core.done('safe', 'nothing');
    for (let call = 1; call <= 4; call += 1) round(core, [['safe']], ['nothing']);
    expect(isOpen(core)).toBe(true);
    round(core, [['safe']], ['nothing']);
    expect(limits(core)).toEqual(['repeatedCalls']);
    core.post('once more');
    for (let call = 1; call <= 4; call += 1) round(core, [['safe']], ['nothing']);
    expect(isOpen(core)).toBe(true);

    const asking = started();
    for (let call = 1; call <= 8; call += 1) {
      asking.act('pm', '', ['ask', { question: 'go on?' }]);
      asking.post('yes');
    }
    expect(limits(asking)).toEqual([]);
  });

  it.each([
    ['two rounds', 2],
    ['three rounds', 3],
    ['four rounds', 4],
  ])('gets the notice and the limit in a loop of %s, too', (_, length) => {
    const core = started();
    for (let call = 0; call < 5 * length; call += 1) {
      expect(isOpen(core)).toBe(true);
      round(core, [['safe', { page: call % length }]], ['nothing']);
    }
    expect(isOpen(core)).toBe(false);
    expect(noticed(core).flatMap((is, at) => (is ? [at + 1] : []))).toEqual([3 * length]);
    expect(limits(core)).toEqual(['repeatedCalls']);
  });

  it('the turn ends with the fifth repetition of one to four rounds, and with no other', () => {
    const steps = fc.array(
      fc.record({ call: fc.constantFrom('safe1', 'safe2'), result: fc.constantFrom('a', 'b') }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const core = started();
        const made: string[] = [];
        for (const { call, result } of all) {
          round(core, [[call]], [result]);
          made.push(call + result);
          const repeats = (times: number) =>
            [1, 2, 3, 4].some(
              (length) =>
                made.length >= times * length &&
                made.slice(-times * length).every((one, at, last) => one === last[at % length]),
            );
          expect(isOpen(core)).toBe(!repeats(5));
          if (repeats(5)) return;
          if (noticed(core).at(-1)) expect(repeats(3)).toBe(true);
        }
      }),
      { numRuns: runs(100) },
    );
  });
});

const fileOf = (digit: string): FilePart => ({
  ...{ type: 'file', sha256: digit.repeat(64), name: `${digit}.png`, mediaType: 'image/png', size: 10 },
});
const [A, B] = [fileOf('a'), fileOf('b')];

type Answer = Omit<CallersResult, 'call'>;

/** A turn whose newest request calls a tool of its caller. */
function called(known?: ToolCore): ToolCore {
  const core = known ?? new ToolCore(['pm', 'dev'], false);
  if (!known) core.post('go', { by: PERSON.id, tools: [{ name: 'theirs' }] });
  core.act('pm', null, ['theirs']);
  return core;
}

function answer(core: ToolCore, result: Answer): Reply | undefined {
  const asked = typed(core.entries, 'message').findLast(({ tool_calls }) => tool_calls !== undefined);
  const call = { index: asked?.index ?? 0, position: 0 };
  return core.do({ type: 'answer-calls', results: [{ call, ...result }], by: PERSON }).reply;
}

it('CALLER-CALLS-2: the arguments of a tool without parameters are checked, too', () => {
  const core = new ToolCore(['pm', 'dev'], false);
  core.judge.argumentsFault = () => 'too large';
  core.post('go', { by: PERSON.id, tools: [{ name: 'theirs' }] });
  called(core);
  expect(core.result('theirs')).toContain('too large');
});

describe('a repetition of a result of a caller', () => {
  const first: Answer = { content: 'seen', files: [A] };

  it('is answered with the entry of the first one, and changes nothing', () => {
    const core = called();
    const reply = answer(core, first);
    const { length } = core.entries;
    expect(answer(core, first)).toEqual(reply);
    expect(core.entries).toHaveLength(length);
  });

  it.each<[string, Answer]>([
    ['other files', { content: 'seen', files: [B] }],
    ['one more file', { content: 'seen', files: [A, B] }],
    ['no file', { content: 'seen' }],
    ['another text', { content: 'unseen', files: [A] }],
  ])('with %s is refused, so that nothing is lost silently', (_, second) => {
    const core = called();
    answer(core, first);
    expect(answer(core, second)).toMatchObject({ kind: 'refused', refusal: { code: 'CALL_OVER' } });
  });

  it('is known where the model was shown a notice with the first one', () => {
    const core = called();
    answer(core, first);
    answer(called(core), first);
    const reply = answer(called(core), first);
    expect(typed(core.entries, 'message').at(-1)?.content).toMatch(/^seen\n\n\[The same calls/);
    expect(answer(core, first)).toEqual(reply);
  });
});
