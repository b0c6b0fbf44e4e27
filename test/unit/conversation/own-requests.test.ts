import { describe, expect, it } from 'vitest';
import { pendingApprovals, Roots, type ToolCallRequest } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { type Called, Team } from './team.ts';
import type { CallModel } from './world.ts';

/** A call of `write` needs an approval, and no publisher may release a call of its own request. */
function strict(): Team {
  const judge = ({ name }: ToolCallRequest) =>
    name === 'write'
      ? ({ kind: 'ask', risk: 'risky', why: 'it writes' } as const)
      : ({ kind: 'run', risk: 'safe' } as const);
  const team = new Team({ tools: { judge, fingerprint: (text) => text } }, false);
  Object.assign(team.rules, { ownRequests: false });
  return team;
}

const WRITE: Called = ['write', { path: 'a' }];
const delegate = (to: string): Called => ['delegate', { to, request: 'please' }];

type Word = 'approve' | 'deny' | 'rerun' | 'failed' | 'result';

function answer(
  team: Team,
  id: string,
  word: Word = 'approve',
  isStranger = false,
  reason?: string,
  changed?: string,
) {
  const [pending] = pendingApprovals(team.conversation.state);
  const approvalId = pending?.approvalId ?? expect.unreachable('no call waits');
  const by = { kind: 'person', id, name: id } as const;
  const { reply } = team.do({
    type: 'answer',
    approvalId,
    answer: word,
    by,
    isStranger,
    reason,
    arguments: changed,
  });
  return reply.kind === 'refused' ? reply.refusal.message : reply.kind;
}

const OWN = /^alice\S* may not approve a call that answers a request of alice$/;

describe('a call that answers the request of a publisher', () => {
  it('the publisher cannot release the call under any name, and another publisher can', () => {
    const team = strict().posted('go', { by: 'alice' });
    team.act('pm', null, WRITE);
    expect(answer(team, 'alice')).toMatch(OWN);
    expect(answer(team, 'alice/Bob')).toMatch(OWN);
    expect(answer(team, 'bob/alice')).toBe('done');
  });

  it('who changed the arguments of a call cannot release the next one, which answers those words too', () => {
    const team = strict().posted('go', { by: 'alice' });
    team.act('pm', null, WRITE);
    expect(answer(team, 'bob', 'approve', false, undefined, '{"path":"b"}')).toBe('done');
    const [call] = team.turn('pm')?.openCalls ?? [];
    const done = {
      agent: 'pm',
      turnId: team.turn('pm')?.turnId ?? '',
      call: call?.place ?? { index: 0, position: 0 },
    };
    team.do({ type: 'tool-finished', ...done, result: 'written', duration: 1 });
    team.act('pm', null, WRITE);
    expect(answer(team, 'bob')).toMatch(/^bob may not approve a call that answers a request of bob$/);
    expect(answer(team, 'carol')).toBe('done');
  });

  it('the publisher releases the call where the configuration allows it', () => {
    const team = strict();
    Object.assign(team.rules, { ownRequests: true });
    team.post('go', { by: 'alice' });
    team.act('pm', null, WRITE);
    expect(answer(team, 'alice')).toBe('done');
  });

  it('the publisher may deny the call, approver or not', () => {
    for (const isStranger of [false, true]) {
      const team = strict().posted('go', { by: 'alice' });
      team.act('pm', null, WRITE);
      expect(answer(team, 'alice', 'deny', isStranger)).toBe('done');
    }
  });

  it('another publisher that is no approver cannot deny the call', () => {
    const team = strict().posted('go', { by: 'alice' });
    team.act('pm', null, WRITE);
    expect(answer(team, 'mallory', 'deny', true)).toBe('mallory may not answer approvals');
    expect(answer(team, 'alice', 'approve', true)).toBe('alice may not answer approvals');
  });

  it.each<[string, ...[agent: string, words: string | null, call?: Called][]]>([
    ['a delegation', ['pm', null, delegate('dev')], ['dev', null, WRITE]],
    [
      'a delegation of a delegation',
      ['pm', null, delegate('dev')],
      ['dev', null, delegate('qa')],
      ['qa', null, WRITE],
    ],
    ['a handoff', ['pm', null, ['handoff', { to: 'dev', summary: 'yours' }]], ['dev', null, WRITE]],
    ['the answer to a delegation', ['pm', null, delegate('dev')], ['dev', 'it is fine'], ['pm', null, WRITE]],
  ])('the publisher cannot release the call after %s', (_, ...acts) => {
    const team = strict().posted('go', { by: 'alice' });
    for (const [agent, words, call] of acts) team.act(agent, words, ...(call ? [call] : []));
    expect(answer(team, 'alice')).toMatch(OWN);
    expect(answer(team, 'bob')).toBe('done');
  });

  it('the publisher cannot release the call of a later node of its run', () => {
    const team = strict();
    const by = { kind: 'person', id: 'alice', name: 'Alice' } as const;
    team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', input: 'build a clock', by });
    team.act('pm', null, ['complete_node', { outcome: 'planned', summary: 'planned' }]);
    team.act('dev', null, WRITE);
    const roots = new Roots();
    for (const entry of team.entries) roots.observe(entry);
    const input = typed(team.entries, 'message').find(({ content }) => content === 'build a clock');
    expect(roots.of(typed(team.entries, 'turn-started').at(-1)?.turnId ?? '')).toEqual([input?.index]);
    expect(answer(team, 'alice')).toMatch(OWN);
    expect(answer(team, 'bob')).toBe('done');
  });

  it('a publisher whose message reached the turn before the call cannot release it', () => {
    const team = strict().posted('go', { by: 'bob' });
    const early = team.callOf('pm');
    team.post('and write it', { by: 'alice' });
    team.actOn(early as CallModel, null, [['look', {}]]);
    team.finish(team.tools[0] ?? expect.unreachable(), 'seen');
    team.act('pm', null, WRITE);
    expect(answer(team, 'bob')).toMatch(/request of bob$/);
    expect(answer(team, 'alice')).toMatch(OWN);
    expect(answer(team, 'carol')).toBe('done');
  });

  it('a publisher whose message reached the delegate cannot release a later call of the delegating agent', () => {
    const team = strict().posted('go', { by: 'bob' });
    team.act('pm', null, delegate('dev'));
    team.post('write it', { by: 'alice', to: ['dev'] });
    team.act('dev', null, ['look', {}]);
    team.finish(team.tools[0] ?? expect.unreachable(), 'seen');
    team.act('dev', 'write it');
    team.act('pm', null, WRITE);
    expect(answer(team, 'alice')).toMatch(OWN);
    expect(answer(team, 'carol')).toBe('done');
  });

  it('a publisher that posts after the call, or was answered before, releases the call', () => {
    const team = strict().posted('hello', { by: 'alice' });
    team.act('pm', 'hello');
    team.post('go', { by: 'bob' });
    team.act('pm', null, WRITE);
    team.post('please do', { by: 'alice' });
    expect(answer(team, 'alice')).toBe('done');
  });

  it.each([
    ['with a reason', 'write b instead', 'carol'],
    ['without a reason', undefined, 'alice'],
  ])(
    'after a denial %s a publisher whose words the model has not read releases the next call',
    (_, reason, other) => {
      const team = strict().posted('go', { by: 'bob' });
      team.act('pm', null, WRITE);
      expect(answer(team, 'alice', 'deny', false, reason)).toBe('done');
      team.act('pm', null, WRITE);
      if (reason) expect(answer(team, 'alice')).toMatch(OWN);
      expect(answer(team, other)).toBe('done');
    },
  );

  it('a publisher whose reason for a denial reached the delegate cannot release a later call of the delegating agent', () => {
    const team = strict().posted('go', { by: 'bob' });
    team.act('pm', null, delegate('dev'));
    team.act('dev', null, WRITE);
    answer(team, 'alice', 'deny', false, 'let pm write');
    team.act('dev', 'write it');
    team.act('pm', null, WRITE);
    expect(answer(team, 'alice')).toMatch(OWN);
    expect(answer(team, 'carol')).toBe('done');
  });
});
