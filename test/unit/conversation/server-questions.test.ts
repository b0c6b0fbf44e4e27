import { describe, expect, it } from 'vitest';
import {
  askedText,
  checkLaws,
  createTurnWatch,
  OpenCalls,
  pendingApprovals,
  type ServerAsks,
} from '../../../src/conversation/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { kinds } from './team-core.ts';
import { ToolCore } from './tool-core.ts';

const ASKS: ServerAsks = {
  server: 'files',
  message: 'Which\u202eday?',
  schema: {
    type: 'object',
    properties: {
      day: { type: 'string', description: 'ISO date' },
      seats: { type: 'integer', default: 2 },
      note: { type: 'string' },
    },
    required: ['day'],
  },
};

function asked(name = 'risky', asks: ServerAsks | null = ASKS): ToolCore {
  const core = ToolCore.calling(name);
  ask(core, name, asks);
  return core;
}

function ask(core: ToolCore, name = 'risky', asks: ServerAsks | null = ASKS) {
  const { agent, turnId, call } = core.tool(name);
  return core.do({ type: 'tool-asks', agent, turnId, call, asks });
}

const ANSWER = { arguments: '{"day":"2026-12-01"}' };

const idOf = (core: ToolCore) => pendingApprovals(core.conversation.state)[0]?.approvalId ?? '';

describe('a question of the server of a running call', () => {
  it('is an approval that says who asks what and where the answer goes, and the call runs on', () => {
    const core = asked();
    expect(core.last('approval-requested')).toMatchObject({
      tool: 'risky',
      arguments: '{"day":"","seats":2}',
      mayHaveRun: false,
      asks: { server: 'files' },
      why: expect.stringMatching(
        /^the server “files”, a program outside.*Which.*day \(ISO date, required\).*no passwords/su,
      ),
    });
    expect(core.running()).toEqual(['risky']);
    expect(core.turn('pm')?.status).toBe('running');
    const calls = new OpenCalls();
    for (const entry of core.entries) calls.observe(entry);
    expect(calls.of(() => true)).toMatchObject([
      { arguments: '{"day":"","seats":2}', question: expect.stringContaining('Which\\u202eday?') },
    ]);
  });

  it('is one line for each field, with the titles of choices in each form, and hides nothing', () => {
    const properties = {
      day: { type: 'string', title: 'Day', description: 'ISO\n  seats (any)' },
      seat: { type: 'string', enum: ['w', 'a'], enumNames: ['Window', 'a'] },
      meal: { type: 'string', oneOf: [{ const: 'v', title: 'Vegetarian' }, { const: 'no' }] },
      extras: { type: 'array', items: { anyOf: [{ const: 'b', title: 'Bag\u202e' }] } },
      kinds: { type: 'array', items: { enum: [1, 2] } },
      seats: { type: 'integer', minimum: 1, maximum: 12 },
      note: { type: 'string', description: 'For the crew', maxLength: 80 },
    };
    const schema = { type: 'object', properties, required: ['day'] };
    expect(askedText({ server: 'air', message: 'Who?', schema }).split('\n')).toEqual([
      'the server “air”, a program outside of Parley, asks “Who?”:',
      '  day (Day, ISO\\n  seats (any), required)',
      '  seat (one of "w" for Window, "a")',
      '  meal (one of "v" for Vegetarian, "no")',
      '  extras (any of "b" for Bag\\u202e)',
      '  kinds (any of 1, 2)',
      '  seats (1 to 12, integer)',
      '  note (For the crew, at most 80 characters)',
      'The answer goes to that server and is kept in the log: give it no passwords or keys',
    ]);
  });

  it('holds its turn while it is open, as an approval does (TURN-WATCH-5)', () => {
    const heldBy = (core: ToolCore) => {
      const watch = createTurnWatch();
      for (const entry of core.entries) watch.observe(entry);
      return watch.held;
    };
    const core = asked();
    expect(heldBy(core)).toBe(true);
    core.answerApprovalId(idOf(core), 'approve', ANSWER);
    expect(heldBy(core)).toBe(false);
    ask(core);
    expect(heldBy(core)).toBe(true);
    core.done('risky');
    expect(heldBy(core)).toBe(false);
  });

  it('the answer of a person goes to the call, which neither starts again nor ends', () => {
    const core = asked();
    const { entries } = core.answerApprovalId(idOf(core), 'approve', ANSWER);
    expect(kinds(entries)).toEqual(['approval-answered']);
    expect(core.answered).toMatchObject([{ content: { day: '2026-12-01' } }]);
    expect(core.pending()).toEqual([]);
    core.done('risky', 'booked');
    expect(core.last('message').content).toBe('booked'); // and no word about changed arguments
  });

  it('a denial goes to the call as declined, and a second answer is refused', () => {
    const core = asked();
    const id = idOf(core);
    core.answerApprovalId(id, 'deny', { reason: 'private' });
    expect(core.answered).toMatchObject([{ content: null }]);
    expect(core.answerApprovalId(id, 'approve').reply).toMatchObject({
      refusal: { code: 'APPROVAL_ANSWERED' },
    });
  });

  it('the call may ask again after an answer, and not before', () => {
    const core = asked();
    expect(ask(core).reply).toEqual({ kind: 'stale' });
    core.answerApprovalId(idOf(core), 'approve', ANSWER);
    expect(ask(core).reply).toEqual({ kind: 'done' });
    expect(core.pending()).toEqual(['risky']);
  });

  it('answers that do not fit are refused, and the question stays open', () => {
    const core = asked();
    core.judge.argumentsFault = (name, _schema, given) =>
      'day' in (given as object) ? null : `${name}: day is missing`;
    for (const [answer, more, code] of [
      ['approve', { arguments: '{"seats":1}' }, 'INVALID_ARGUMENTS'],
      ['approve', { arguments: '[' }, 'INVALID_ARGUMENTS'],
      ['approve', { always: true }, 'ANSWER_DOES_NOT_FIT'],
      ['result', { result: 'x' }, 'ANSWER_DOES_NOT_FIT'],
    ] as const)
      expect(core.answerApprovalId(idOf(core), answer, more).reply).toMatchObject({ refusal: { code } });
    expect(core.pending()).toEqual(['risky']);
  });

  it('an approval without an answer sends none that no person gave: it is refused with the fields and an example', () => {
    const core = asked();
    expect(core.answerApprovalId(idOf(core), 'approve').reply).toMatchObject({
      refusal: errorWith(
        'INVALID_ARGUMENTS',
        /^no answer is given: .*asks “Which.*\n {2}day \(ISO date, required\)\n/su,
        'approve with arguments such as {"day":"","seats":2}, or deny',
      ),
    });
    expect(core.pending()).toEqual(['risky']);
    const confirmed = asked('risky', { ...ASKS, schema: { type: 'object' } });
    confirmed.answerApprovalId(idOf(confirmed), 'approve');
    expect(confirmed.answered).toMatchObject([{ content: {} }]);
  });

  it('expires as cancelled, and the call runs on', () => {
    const core = asked();
    core.expire(idOf(core));
    expect(core.last('approval-answered')).toMatchObject({ answer: 'expired' });
    expect(core.answered).toMatchObject([{ content: undefined }]);
    expect(core.running()).toEqual(['risky']);
  });

  it('is closed when the server waits no longer, and when the call has its result', () => {
    const core = asked();
    expect(kinds(ask(core, 'risky', null).entries)).toEqual(['approval-answered']);
    expect(ask(core, 'risky', null).reply).toEqual({ kind: 'stale' });
    ask(core);
    expect(kinds(core.done('risky').entries)).toEqual(['approval-answered', 'tool pm']);
    expect(core.pending()).toEqual([]);
  });

  it('L12: a crash closes it, and a person is asked what the call did', () => {
    const core = asked();
    const { entries } = core.crash();
    expect(kinds(entries)).toEqual([
      'turn-started pm',
      'approval-answered',
      'approval-requested',
      'turn-ended pm waiting',
    ]);
    expect(core.last('approval-requested')).toMatchObject({ mayHaveRun: true, arguments: '{}' });
    core.answerApproval('risky', 'failed', { reason: 'nothing was booked' });
    expect(core.last('message').content).toContain('nothing was booked');
  });

  it('a crash closes it and starts a safe call once more', () => {
    const core = asked('safe');
    expect(kinds(core.crash().entries)).toEqual(['turn-started pm', 'approval-answered', 'tool-started']);
    expect(core.pending()).toEqual([]);
  });

  it('each crash closes it once, and the second ends a safe call', () => {
    const core = asked('safe1');
    core.crash();
    ask(core, 'safe1');
    core.crash();
    expect(core.result('safe1')).toContain('INTERRUPTED');
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('a stop closes it with the call', () => {
    const core = asked();
    core.do({ type: 'stop', agent: 'pm', by: { kind: 'person', id: 'alice', name: 'Alice' } });
    core.done('risky', '[aborted]');
    expect(core.pending()).toEqual([]);
    expect(kinds(core.entries).slice(-3)).toEqual(['approval-answered', 'tool pm', 'turn-ended pm aborted']);
  });

  it('a call that does not run asks nothing', () => {
    const core = asked();
    const { agent, turnId, call } = core.tool('risky');
    core.done('risky');
    expect(core.do({ type: 'tool-asks', agent, turnId, call, asks: ASKS }).reply).toEqual({ kind: 'stale' });
  });
});
