import { describe, expect, it } from 'vitest';
import {
  askedText,
  createTurnWatch,
  OpenCalls,
  pendingApprovals,
  type ServerAsks,
} from '../../../src/conversation/index.ts';
import { kinds } from './team.ts';
import { ToolTeam } from './tool-life.ts';

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

function asked(name = 'risky', asks: ServerAsks | null = ASKS): ToolTeam {
  const team = ToolTeam.calling(name);
  ask(team, name, asks);
  return team;
}

function ask(team: ToolTeam, name = 'risky', asks: ServerAsks | null = ASKS) {
  const { agent, turnId, call } = team.tool(name);
  return team.do({ type: 'tool-asks', agent, turnId, call, asks });
}

const idOf = (team: ToolTeam) => pendingApprovals(team.conversation.state)[0]?.approvalId ?? '';

describe('a question of the server of a running call', () => {
  it('is an approval that says who asks what and where the answer goes, and the call runs on', () => {
    const team = asked();
    expect(team.last('approval-requested')).toMatchObject({
      tool: 'risky',
      arguments: '{"day":"","seats":2}',
      mayHaveRun: false,
      asks: { server: 'files' },
      why: expect.stringMatching(
        /^the server files, a program outside.*Which.*day \(ISO date, required\).*no passwords/su,
      ),
    });
    expect(team.running()).toEqual(['risky']);
    expect(team.turn('pm')?.status).toBe('running');
    const calls = new OpenCalls();
    for (const entry of team.entries) calls.observe(entry);
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
      seats: { type: 'integer' },
    };
    const schema = { type: 'object', properties, required: ['day'] };
    expect(askedText({ server: 'air', message: 'Who?', schema }).split('\n')).toEqual([
      'the server air, a program outside of Parley, asks “Who?”:',
      '  day (Day, ISO\\n  seats (any), required)',
      '  seat (one of "w" for Window, "a")',
      '  meal (one of "v" for Vegetarian, "no")',
      '  extras (any of "b" for Bag\\u202e)',
      '  kinds (any of 1, 2)',
      '  seats (integer)',
      'The answer goes to that server and is kept in the log: give it no passwords or keys',
    ]);
  });

  it('holds its turn while it is open, as an approval does (TURN-WATCH-5)', () => {
    const heldBy = (team: ToolTeam) => {
      const watch = createTurnWatch();
      for (const entry of team.entries) watch.observe(entry);
      return watch.held;
    };
    const team = asked();
    expect(heldBy(team)).toBe(true);
    team.answerApprovalId(idOf(team), 'approve');
    expect(heldBy(team)).toBe(false);
    ask(team);
    expect(heldBy(team)).toBe(true);
    team.done('risky');
    expect(heldBy(team)).toBe(false);
  });

  it('the answer of a person goes to the call, which neither starts again nor ends', () => {
    const team = asked();
    const { entries } = team.answerApprovalId(idOf(team), 'approve', { arguments: '{"day":"2026-12-01"}' });
    expect(kinds(entries)).toEqual(['approval-answered']);
    expect(team.answered).toMatchObject([{ content: { day: '2026-12-01' } }]);
    expect(team.pending()).toEqual([]);
    team.done('risky', 'booked');
    expect(team.last('message').content).toBe('booked'); // and no word about changed arguments
  });

  it('a denial goes to the call as declined, and a second answer is refused', () => {
    const team = asked();
    const id = idOf(team);
    team.answerApprovalId(id, 'deny', { reason: 'private' });
    expect(team.answered).toMatchObject([{ content: null }]);
    expect(team.answerApprovalId(id, 'approve').reply).toMatchObject({
      refusal: { code: 'APPROVAL_ANSWERED' },
    });
  });

  it('the call may ask again after an answer, and not before', () => {
    const team = asked();
    expect(ask(team).reply).toEqual({ kind: 'stale' });
    team.answerApprovalId(idOf(team), 'approve');
    expect(ask(team).reply).toEqual({ kind: 'done' });
    expect(team.pending()).toEqual(['risky']);
  });

  it('answers that do not fit are refused, and the question stays open', () => {
    const team = asked();
    team.judge.argumentsFault = (name, _schema, given) =>
      'day' in (given as object) ? null : `${name}: day is missing`;
    for (const [answer, more, code] of [
      ['approve', { arguments: '{"seats":1}' }, 'INVALID_ARGUMENTS'],
      ['approve', { arguments: '[' }, 'INVALID_ARGUMENTS'],
      ['approve', { always: true }, 'ANSWER_DOES_NOT_FIT'],
      ['result', { result: 'x' }, 'ANSWER_DOES_NOT_FIT'],
    ] as const)
      expect(team.answerApprovalId(idOf(team), answer, more).reply).toMatchObject({ refusal: { code } });
    expect(team.pending()).toEqual(['risky']);
  });

  it('expires as cancelled, and the call runs on', () => {
    const team = asked();
    team.expire(idOf(team));
    expect(team.last('approval-answered')).toMatchObject({ answer: 'expired' });
    expect(team.answered).toMatchObject([{ content: undefined }]);
    expect(team.running()).toEqual(['risky']);
  });

  it('is closed when the server waits no longer, and when the call has its result', () => {
    const team = asked();
    expect(kinds(ask(team, 'risky', null).entries)).toEqual(['approval-answered']);
    expect(ask(team, 'risky', null).reply).toEqual({ kind: 'stale' });
    ask(team);
    expect(kinds(team.done('risky').entries)).toEqual(['approval-answered', 'tool pm']);
    expect(team.pending()).toEqual([]);
  });

  it('L12: a crash closes it, and a person is asked what the call did', () => {
    const team = asked();
    const { entries } = team.crash();
    expect(kinds(entries)).toEqual([
      'turn-started pm',
      'approval-answered',
      'approval-requested',
      'turn-ended pm waiting',
    ]);
    expect(team.last('approval-requested')).toMatchObject({ mayHaveRun: true, arguments: '{}' });
    team.answerApproval('risky', 'failed', { reason: 'nothing was booked' });
    expect(team.last('message').content).toContain('nothing was booked');
  });

  it('a crash closes it and starts a safe call once more', () => {
    const team = asked('safe');
    expect(kinds(team.crash().entries)).toEqual(['turn-started pm', 'approval-answered', 'tool-started']);
    expect(team.pending()).toEqual([]);
  });

  it('a stop closes it with the call', () => {
    const team = asked();
    team.do({ type: 'stop', agent: 'pm', by: { kind: 'person', id: 'alice', name: 'Alice' } });
    team.done('risky', '[aborted]');
    expect(team.pending()).toEqual([]);
    expect(kinds(team.entries).slice(-3)).toEqual(['approval-answered', 'tool pm', 'turn-ended pm aborted']);
  });

  it('a call that does not run asks nothing', () => {
    const team = asked();
    const { agent, turnId, call } = team.tool('risky');
    team.done('risky');
    expect(team.do({ type: 'tool-asks', agent, turnId, call, asks: ASKS }).reply).toEqual({ kind: 'stale' });
  });
});
