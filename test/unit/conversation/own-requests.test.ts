import { describe, expect, it } from 'vitest';
import { pendingApprovals, Roots, type ToolCallRequest } from '../../../src/conversation/index.ts';
import type { CallModel } from './core.ts';
import { typed } from './life.ts';
import { type Called, TeamCore } from './team-core.ts';

/** A call of `write` needs an approval, and no publisher may release a call of its own request. */
function strict(): TeamCore {
  const judge = ({ name }: ToolCallRequest) =>
    name === 'write'
      ? ({ kind: 'ask', risk: 'risky', why: 'it writes' } as const)
      : ({ kind: 'run', risk: 'safe' } as const);
  const core = new TeamCore({ tools: { judge, fingerprint: (text) => text } }, false);
  Object.assign(core.rules, { ownRequests: false });
  return core;
}

const WRITE: Called = ['write', { path: 'a' }];
const delegate = (to: string): Called => ['delegate', { to, request: 'please' }];

type Word = 'approve' | 'deny' | 'rerun' | 'failed' | 'result';

function answer(
  core: TeamCore,
  id: string,
  word: Word = 'approve',
  isStranger = false,
  reason?: string,
  changed?: string,
) {
  const [pending] = pendingApprovals(core.conversation.state);
  const approvalId = pending?.approvalId ?? expect.unreachable('no call waits');
  const by = { kind: 'person', id, name: id } as const;
  const { reply } = core.do({
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
    const core = strict().posted('go', { by: 'alice' });
    core.act('pm', null, WRITE);
    expect(answer(core, 'alice')).toMatch(OWN);
    expect(answer(core, 'alice/Bob')).toMatch(OWN);
    expect(answer(core, 'bob/alice')).toBe('done');
  });

  it.each([
    ['changed the arguments of', undefined, '{"path":"b"}'],
    ['said something with the approval of', 'then write c', undefined],
  ])('who %s a call cannot release the next one, which answers those words too', (_, reason, changed) => {
    const core = strict().posted('go', { by: 'alice' });
    core.act('pm', null, WRITE);
    expect(answer(core, 'bob', 'approve', false, reason, changed)).toBe('done');
    const [call] = core.turn('pm')?.openCalls ?? [];
    const done = {
      agent: 'pm',
      turnId: core.turn('pm')?.turnId ?? '',
      call: call?.place ?? { index: 0, position: 0 },
    };
    core.do({ type: 'tool-finished', ...done, result: 'written', duration: 1 });
    core.act('pm', null, WRITE);
    expect(answer(core, 'bob')).toMatch(/^bob may not approve a call that answers a request of bob$/);
    expect(answer(core, 'carol')).toBe('done');
  });

  it('the publisher releases the call where the configuration allows it', () => {
    const core = strict();
    Object.assign(core.rules, { ownRequests: true });
    core.post('go', { by: 'alice' });
    core.act('pm', null, WRITE);
    expect(answer(core, 'alice')).toBe('done');
  });

  it('the publisher may deny the call, approver or not', () => {
    for (const isStranger of [false, true]) {
      const core = strict().posted('go', { by: 'alice' });
      core.act('pm', null, WRITE);
      expect(answer(core, 'alice', 'deny', isStranger)).toBe('done');
    }
  });

  it('another publisher that is no approver cannot deny the call', () => {
    const core = strict().posted('go', { by: 'alice' });
    core.act('pm', null, WRITE);
    expect(answer(core, 'mallory', 'deny', true)).toBe('mallory may not answer approvals');
    expect(answer(core, 'alice', 'approve', true)).toBe('alice may not answer approvals');
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
    const core = strict().posted('go', { by: 'alice' });
    for (const [agent, words, call] of acts) core.act(agent, words, ...(call ? [call] : []));
    expect(answer(core, 'alice')).toMatch(OWN);
    expect(answer(core, 'bob')).toBe('done');
  });

  it('the publisher cannot release the call of a later node of its run', () => {
    const core = strict();
    const by = { kind: 'person', id: 'alice', name: 'Alice' } as const;
    core.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', input: 'build a clock', by });
    core.act('pm', null, ['complete_node', { outcome: 'planned', summary: 'planned' }]);
    core.act('dev', null, WRITE);
    const roots = new Roots();
    for (const entry of core.entries) roots.observe(entry);
    const input = typed(core.entries, 'message').find(({ content }) => content === 'build a clock');
    expect(roots.of(typed(core.entries, 'turn-started').at(-1)?.turnId ?? '')).toEqual([input?.index]);
    expect(answer(core, 'alice')).toMatch(OWN);
    expect(answer(core, 'bob')).toBe('done');
  });

  it('a publisher whose message reached the turn before the call cannot release it', () => {
    const core = strict().posted('go', { by: 'bob' });
    const early = core.callOf('pm');
    core.post('and write it', { by: 'alice' });
    core.actOn(early as CallModel, null, [['look', {}]]);
    core.finish(core.tools[0] ?? expect.unreachable(), 'seen');
    core.act('pm', null, WRITE);
    expect(answer(core, 'bob')).toMatch(/request of bob$/);
    expect(answer(core, 'alice')).toMatch(OWN);
    expect(answer(core, 'carol')).toBe('done');
  });

  it('a publisher whose message reached the delegate cannot release a later call of the delegating agent', () => {
    const core = strict().posted('go', { by: 'bob' });
    core.act('pm', null, delegate('dev'));
    core.post('write it', { by: 'alice', to: ['dev'] });
    core.act('dev', null, ['look', {}]);
    core.finish(core.tools[0] ?? expect.unreachable(), 'seen');
    core.act('dev', 'write it');
    core.act('pm', null, WRITE);
    expect(answer(core, 'alice')).toMatch(OWN);
    expect(answer(core, 'carol')).toBe('done');
  });

  it('a publisher that posts after the call, or was answered before, releases the call', () => {
    const core = strict().posted('hello', { by: 'alice' });
    core.act('pm', 'hello');
    core.post('go', { by: 'bob' });
    core.act('pm', null, WRITE);
    core.post('please do', { by: 'alice' });
    expect(answer(core, 'alice')).toBe('done');
  });

  it.each([
    ['with a reason', 'write b instead', 'carol'],
    ['without a reason', undefined, 'alice'],
  ])(
    'after a denial %s a publisher whose words the model has not read releases the next call',
    (_, reason, other) => {
      const core = strict().posted('go', { by: 'bob' });
      core.act('pm', null, WRITE);
      expect(answer(core, 'alice', 'deny', false, reason)).toBe('done');
      core.act('pm', null, WRITE);
      if (reason) expect(answer(core, 'alice')).toMatch(OWN);
      expect(answer(core, other)).toBe('done');
    },
  );

  it('a publisher whose reason for a denial reached the delegate cannot release a later call of the delegating agent', () => {
    const core = strict().posted('go', { by: 'bob' });
    core.act('pm', null, delegate('dev'));
    core.act('dev', null, WRITE);
    answer(core, 'alice', 'deny', false, 'let pm write');
    core.act('dev', 'write it');
    core.act('pm', null, WRITE);
    expect(answer(core, 'alice')).toMatch(OWN);
    expect(answer(core, 'carol')).toBe('done');
  });
});
