import { describe, expect, it } from 'vitest';
import { hasOutstandingWork } from '../../../src/conversation/index.ts';
import { kinds, PERSON } from './team.ts';
import { ToolTeam } from './tool-life.ts';

const errorOf = (text: string) => JSON.parse(text).error;

describe('an approval that expires', () => {
  it('an expired approval is an entry of its own, and its call gets an error that differs from a denial', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    const { entries, reply } = team.expire(id);
    expect(kinds(entries)).toEqual(['approval-answered', 'tool pm', 'turn-started pm']);
    expect(reply.kind).toBe('done');
    expect(team.last('approval-answered')).toMatchObject({
      approvalId: id,
      answer: 'expired',
      author: { kind: 'system' },
    });
    expect(errorOf(team.result('gated'))).toMatchObject({ code: 'APPROVAL_EXPIRED' });
    expect([team.running(), team.pending(), team.calls.length]).toEqual([[], [], 1]);
  });

  it('L12: an expired approval of a call that may have run reports an unknown outcome, never a failure', () => {
    const team = ToolTeam.calling('risky');
    team.crash();
    team.expire(team.approvalOf('risky'));
    expect(errorOf(team.result('risky'))).toMatchObject({ code: 'UNKNOWN' });
    expect(team.result('risky')).not.toContain('not run');
    expect(team.running()).toEqual([]);
  });

  it('L11: an answer after the expiry is refused and starts nothing', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.expire(id);
    const late = team.answerApprovalId(id, 'approve');
    expect(late.entries).toEqual([]);
    expect(late.reply).toMatchObject({ kind: 'refused', refusal: { code: 'APPROVAL_EXPIRED' } });
    expect(team.starts('gated')).toEqual([]);
  });

  it.each(['approve', 'deny'] as const)('L11: an expiry after the answer %s changes nothing', (answer) => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.answerApprovalId(id, answer);
    expect(team.expire(id)).toMatchObject({ entries: [], effects: [], reply: { kind: 'stale' } });
  });

  it('a repeated expiry and the expiry of an unknown approval change nothing', () => {
    const team = ToolTeam.calling('gated1', 'gated2');
    const id = team.approvalOf('gated1');
    team.expire(id);
    expect(team.expire(id).entries).toEqual([]);
    expect(team.expire('foreign').entries).toEqual([]);
    expect(team.pending()).toEqual(['gated2']);
    expect(hasOutstandingWork(team.conversation.state)).toBe(true);
  });

  it('an expiry keeps the order of the later calls', () => {
    const team = ToolTeam.calling('gated', 'safe', 'risky');
    team.expire(team.approvalOf('gated'));
    expect(team.running()).toEqual(['safe']);
  });

  it('an expiry changes nothing after its turn was stopped', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.do({ type: 'stop', agent: null, by: PERSON });
    expect(team.expire(id).entries).toEqual([]);
  });

  it('recovery requests the approval again under the same id when a crash loses the expiry', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.expire(id);
    team.crash(1);
    expect(team.approvalOf('gated')).toBe(id);
    team.answerApproval('gated', 'approve');
    expect(team.running()).toEqual(['gated']);
  });
});
